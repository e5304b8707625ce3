"""Allocation order at -O2: how early each live range is allocated, decided inside of the plugin.

Read ``problem`` first; ``log`` says what the plugin writes, ``features`` what policies read. What
it shares with the other problem of register allocation is in :mod:`nestor.regalloc`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nestor.problems.regalloc_priority.problem import PROBLEM as PROBLEM


def __getattr__(name: str) -> object:
    # Commands that need only a name start without the rest.
    if name == "PROBLEM":
        from nestor.problems.regalloc_priority.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
