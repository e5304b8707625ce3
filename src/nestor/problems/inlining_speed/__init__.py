"""Inlining for speed: the call sites of -O2 and -O3, judged by what a program's run executes.

Read ``problem`` first. ``run_build`` links a program and counts its run under callgrind, ``moves``
says what a search may change. Questions, logs and overrides are those of inlining for size.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nestor.problems.inlining_speed.problem import PROBLEM as PROBLEM


def __getattr__(name: str) -> object:
    # Commands that need only a name start without the rest.
    if name == "PROBLEM":
        from nestor.problems.inlining_speed.problem import PROBLEM

        return PROBLEM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
