"""Whole sets of overrides that a problem proposes from what a build tells, before single moves.

A proposal is built and judged as a whole, and once more without those parts of it that seem to have
made it worse. How far it should go is sought: farther while the score falls and the limits hold,
less far otherwise, and in the end between the two.
"""

import math
from typing import Final

from nestor.build.build import BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.problem.overrides import Overrides
from nestor.progress import Progress, silent
from nestor.tune.moves import MoveSource
from nestor.tune.step import Limits, within

FIRST_EXTENT: Final = 0.02
"""The part by which a proposal may make the program larger, by its own estimate."""
_FACTOR: Final = 2.5
"""From one extent to the next."""
_EXTENTS: Final = 5
"""That are tried on top of one build."""


def propose(
    builder: ProgramBuilder,
    moves: MoveSource,
    start: ProgramBuild,
    limits: Limits,
    most: float,
    progress: Progress = silent,
) -> ProgramBuild:
    """Return the best build of proposals, and of proposals on top of it; or ``start``.

    :param most: whole-program compiles to spend.
    """
    best = _best_on(builder, moves, start, limits, most, progress)
    before = start
    while best is not before:
        before, best = best, _best_on(builder, moves, best, limits, most, progress)
    return best


def _best_on(
    builder: ProgramBuilder,
    moves: MoveSource,
    base: ProgramBuild,
    limits: Limits,
    most: float,
    progress: Progress,
) -> ProgramBuild:
    """Return the best of the proposals on ``base``, or ``base``."""
    best, extent = base, FIRST_EXTENT
    least_bad, most_good = math.inf, 0.0
    verdicts: list[tuple[Overrides, bool]] = []
    for _ in range(_EXTENTS):
        overrides = {**base.overrides, **moves.proposal(base, extent)}
        if builder.compiles + 1 > most or overrides == base.overrides:
            break
        good = next((good for own, good in verdicts if own == overrides), None)
        if good is None:
            progress("Building proposals", int(builder.compiles), int(most))
            builds = _builds(builder, moves, base, overrides, most)
            allowed = [one for one in builds if within(one, limits) and one.total <= best.total]
            best = min((best, *allowed), key=lambda build: build.total)
            good = bool(allowed)  # one that changes nothing did not go far enough
            verdicts.append((overrides, good))
        if good:
            most_good = extent
        else:
            least_bad = extent
        if most_good and least_bad < math.inf:
            extent = math.sqrt(most_good * least_bad)
        else:
            extent *= _FACTOR if most_good else 1 / _FACTOR
    return best


def _builds(
    builder: ProgramBuilder,
    moves: MoveSource,
    base: ProgramBuild,
    overrides: Overrides,
    most: float,
) -> list[ProgramBuild]:
    """Return the build under ``overrides``, and the one without what made it worse."""
    found: list[ProgramBuild] = []
    try:
        found.append(builder.build(overrides))
        revised = moves.revised(base, found[0])
        if revised not in (overrides, base.overrides) and builder.compiles + 1 <= most:
            found.append(builder.build(revised))
    except BuildError:
        pass  # the next one may build
    return found
