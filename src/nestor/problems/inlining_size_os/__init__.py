"""Inlining for size at -Os: the call sites that inlining for size leaves alone.

At -Os LLVM inlines up to a cost of 50 where -Oz stops at 5, so what a policy can add or take back
is something else, and it has searches and policies of its own. All else is inlining for size.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nestor.problems.inlining_size_os.problem import PROBLEM as PROBLEM


def __getattr__(name: str) -> object:
    # Commands that need only a name start without the rest.
    if name == "PROBLEM":
        from nestor.problems.inlining_size_os.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
