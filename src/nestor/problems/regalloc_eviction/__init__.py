"""Register eviction at -O2: which live range gives up its register, asked over LLVM's own channel.

Read ``problem`` first; it names the rest. ``question`` says what the compiler asks, ``default``
what its own heuristic would answer, ``compile`` how a module is compiled, ``cost`` and ``credit``
what that came to.
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
