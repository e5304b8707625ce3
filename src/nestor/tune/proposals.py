"""Whole sets of overrides that a problem proposes from what a build tells, before single moves.

A proposal is built and judged as a whole, and once more without those parts of it that seem to have
made it worse. How far it should go is sought: farther while the limits hold, less far otherwise,
and between the two once something was gained.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nestor.build.build import BuildError
from nestor.build.calls import Calls
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.problem.overrides import Overrides
from nestor.progress import Progress, silent
from nestor.tune.moves import MoveSource
from nestor.tune.steps.limits import Limits, within

FIRST_EXTENT: Final = 0.02
"""The part by which a proposal may make the program larger, by its own estimate."""
_FACTOR: Final = 2.5
"""From one extent to the next."""
_WITH_PLAIN: Final = 2.0
"""Compiles with which the plain build leaves one for a proposal."""
_EXTENTS: Final = 5
"""That are tried on top of one build."""
_LITTLE: Final = 0.001
"""A gain of a smaller part of the score is not worth going on for: single moves find more."""


def propose(
    builder: ProgramBuilder,
    moves: MoveSource,
    start: ProgramBuild,
    limits: Limits,
    most: float,
    progress: Progress = silent,
) -> tuple[ProgramBuild, Calls | None]:
    """Return the best build of proposals, and of proposals on top of it; or ``start``.

    With it comes what the plain build told of the calls that were written, if there was one.

    :param most: whole-program compiles to spend.
    """
    written = _written(builder, moves, start) if most >= _WITH_PLAIN else None
    own = _Proposals(builder, moves, written, limits, most, progress)
    before, best = start, own.best_on(start)
    while best.total < (1 - _LITTLE) * before.total:
        before, best = best, own.best_on(best)
    return best, written


def _written(builder: ProgramBuilder, moves: MoveSource, start: ProgramBuild) -> Calls | None:
    """Return what the build whose run tells of all calls tells, if there is one."""
    overrides = moves.plain(start)
    if not overrides:
        return None
    try:
        return moves.written(builder.build(overrides))
    except BuildError:
        return None


_Verdict = Literal["good", "no gain", "too far"]
"""Of a proposal: one without a gain may not go far enough, one beyond a limit goes too far."""


@dataclass(frozen=True)
class _Proposals:
    """What the proposals of one search have in common."""

    builder: ProgramBuilder
    moves: MoveSource
    written: Calls | None
    limits: Limits
    most: float
    progress: Progress

    def best_on(self, base: ProgramBuild) -> ProgramBuild:
        """Return the best of the proposals on ``base``, or ``base``."""
        best, extent = base, FIRST_EXTENT
        too_far, most_good = math.inf, 0.0
        verdicts: list[tuple[Overrides, _Verdict]] = []
        for _ in range(_EXTENTS):
            overrides = {**base.overrides, **self.moves.proposal(base, self.written, extent)}
            if self.builder.compiles + 1 > self.most or overrides == base.overrides:
                break
            verdict = next((verdict for own, verdict in verdicts if own == overrides), None)
            if verdict is None:
                self.progress("Building proposals", int(self.builder.compiles), int(self.most))
                builds = self._builds(base, overrides)
                allowed = [
                    one for one in builds if within(one, self.limits) and one.total <= best.total
                ]
                best = min((best, *allowed), key=lambda build: build.total)
                verdict = self._verdict(builds, allowed)
                verdicts.append((overrides, verdict))
            if verdict == "good":
                most_good = extent
            elif verdict == "too far" or most_good:
                too_far = extent
            if most_good and too_far < math.inf:
                if best.total >= (1 - _LITTLE) * base.total:
                    break
                extent = math.sqrt(most_good * too_far)
            else:
                extent *= _FACTOR if too_far == math.inf else 1 / _FACTOR
        return best

    def _verdict(self, builds: Sequence[ProgramBuild], allowed: Sequence[ProgramBuild]) -> _Verdict:
        """Say how far a proposal went: one that changes nothing did not go far enough."""
        if allowed:
            return "good"
        fits = any(within(build, _without(self.limits, build.score)) for build in builds)
        return "no gain" if fits else "too far"

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


def _without(limits: Limits, column: str) -> Limits:
    """Return ``limits`` without those of one column."""
    return {
        mode: {name: most for name, most in own.items() if name != column}
        for mode, own in limits.items()
    }
