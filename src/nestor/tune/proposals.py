"""Whole sets of overrides that a problem proposes from what a build tells, before single moves.

A proposal is built and judged as a whole, and once more without those parts of it that seem to have
made it worse. How far it should go is sought: farther while the score falls and the limits hold,
less far otherwise, and in the end between the two.
"""

import math
from dataclasses import dataclass
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
_WITH_PLAIN: Final = 2.0
"""Compiles with which the build without inlining leaves one for a proposal."""
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
    plain = _plain(builder, moves, start) if most >= _WITH_PLAIN else None
    own = _Proposals(builder, moves, plain, limits, most, progress)
    before, best = start, own.best_on(start)
    while best is not before:
        before, best = best, own.best_on(best)
    return best


def _plain(builder: ProgramBuilder, moves: MoveSource, start: ProgramBuild) -> ProgramBuild | None:
    """Return the build whose run tells of all calls, if there is one."""
    overrides = moves.plain(start)
    if not overrides:
        return None
    try:
        return builder.build(overrides)
    except BuildError:
        return None


@dataclass(frozen=True)
class _Proposals:
    """What the proposals of one search have in common."""

    builder: ProgramBuilder
    moves: MoveSource
    plain: ProgramBuild | None
    limits: Limits
    most: float
    progress: Progress

    def best_on(self, base: ProgramBuild) -> ProgramBuild:
        """Return the best of the proposals on ``base``, or ``base``."""
        best, extent = base, FIRST_EXTENT
        least_bad, most_good = math.inf, 0.0
        verdicts: list[tuple[Overrides, bool]] = []
        for _ in range(_EXTENTS):
            overrides = {**base.overrides, **self.moves.proposal(base, self.plain, extent)}
            if self.builder.compiles + 1 > self.most or overrides == base.overrides:
                break
            good = next((good for own, good in verdicts if own == overrides), None)
            if good is None:
                self.progress("Building proposals", int(self.builder.compiles), int(self.most))
                builds = self._builds(base, overrides)
                allowed = [
                    one for one in builds if within(one, self.limits) and one.total <= best.total
                ]
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

    def _builds(self, base: ProgramBuild, overrides: Overrides) -> list[ProgramBuild]:
        """Return the build under ``overrides``, and the one without what made it worse."""
        found: list[ProgramBuild] = []
        try:
            found.append(self.builder.build(overrides))
            revised = self.moves.revised(base, found[0])
            fits = self.builder.compiles + 1 <= self.most
            if revised not in (overrides, base.overrides) and fits:
                found.append(self.builder.build(revised))
        except BuildError:
            pass  # the next one may build
        return found
