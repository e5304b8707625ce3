"""Inlining for size: everything that is particular to call sites and linked bytes.

Read ``problem`` first; it names the rest. ``log`` says what the plugin logs, ``features`` what
policies read, ``credit`` and ``weights`` how bytes are credited, ``moves`` what a search tries.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nestor.problems.inlining_size.problem import PROBLEM as PROBLEM

ENVIRONMENT: Final = "InliningForSize"
"""The name under which Gymnasium finds the environment."""


def __getattr__(name: str) -> object:
    # Commands that need only a built-in policy's name or a summary start without the rest.
    if name == "PROBLEM":
        from nestor.problems.inlining_size.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
