"""Limits that no verified build may exceed."""

import math
from collections.abc import Mapping

from nestor.build.incremental import Priced, ProgramBuild

Limits = Mapping[str, Mapping[str, float]]
"""The largest value of a column that a verified build may have, by mode and column."""


def within(build: ProgramBuild, limits: Limits) -> bool:
    """Tell whether ``build`` exceeds none of ``limits``."""
    return all(
        build.columns[mode][column] <= most
        for mode, columns in limits.items()
        for column, most in columns.items()
    )


def priced(build: ProgramBuild) -> tuple[str, Priced]:
    """Return the mode and the column that has a price; ``build`` must have one."""
    return next(iter(build.priced.items()))


def room(build: ProgramBuild, limits: Limits) -> float:
    """Return what ``build`` leaves of the limit of the column that has a price."""
    mode, of = priced(build)
    return limits.get(mode, {}).get(of.column, math.inf) - build.columns[mode][of.column]
