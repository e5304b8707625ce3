"""Register eviction at -O2: which live range gives up its register, decided inside of the plugin.

Read ``problem`` first; it names the rest. ``question`` says what the compiler asks, ``log`` how
the plugin writes it down, ``channel``, ``default``, ``live`` and ``object_cost`` serve the
Gymnasium environment, which asks without the plugin. What eviction shares with the other problem of
register allocation is in :mod:`nestor.regalloc`.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nestor.problems.regalloc_eviction.problem import PROBLEM as PROBLEM

ENVIRONMENT: Final = "RegallocEviction"
"""The name under which Gymnasium finds the environment."""


def __getattr__(name: str) -> object:
    # Commands that need only a name start without the rest.
    if name == "PROBLEM":
        from nestor.problems.regalloc_eviction.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
