"""The end of a step: builds of what was found to save, of which the best one counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nestor.build.incremental import ProgramBuild
from nestor.tune.moves import Candidate
from nestor.tune.steps.builds import StepBuilds
from nestor.tune.steps.choice import Choice
from nestor.tune.steps.findings import Findings
from nestor.tune.steps.limits import Limits, priced, room, within

_SURE_SAVINGS: Final = (0.0, 8.0, 32.0)
"""In units of the score; when a verification fails, moves that saved less are dropped first."""

_CHOICES: Final = 3
"""Builds of moves within a limit, at most, until one holds it."""

_SLACK: Final = 0.001
"""Of a column, kept free of its limit once a build was beyond it, but no more than it was."""


@dataclass(frozen=True)
class Verification:
    """Verifies what a step found: whatever a credit said, only a build counts."""

    builds: StepBuilds
    findings: Findings
    limits: Limits
    unit: float
    """What of the score counts as a byte does where sizes are searched."""

    @property
    def is_short(self) -> bool:
        """Whether more is known to save than the limit has room for."""
        return self.findings.is_priced and self._choice().is_short

    def best(self) -> ProgramBuild:
        """Return the build of all accepted moves, or of the surest, or the verified one."""
        if self.findings.is_priced:
            return self._best_within()
        findings, before = self.findings, None
        for least in _SURE_SAVINGS:
            most = -least * self.unit
            sure = [candidate for change, candidate in findings.accepted if change <= most]
            if not sure or len(sure) == before:
                continue
            before = len(sure)
            best = self._best_of(self._built(sure))
            if best is not None:
                findings.doubt(c for change, c in findings.accepted if change > most)
                return best
        findings.doubt(candidate for _, candidate in findings.accepted)
        return self.builds.verified

    def _best_within(self) -> ProgramBuild:
        """Return the build of what saves most within the limits, or the verified one."""
        verified = self.builds.verified
        mode, column = priced(verified)
        slack = _SLACK * verified.columns[mode][column.column]
        choice = self._choice()
        chosen: list[Candidate] = []
        for _ in range(_CHOICES):
            chosen = [candidate for offer in choice.offers for candidate in offer.moves]
            builds = self._built(chosen) if chosen else []
            if not builds:
                break
            best = self._best_of(builds)
            if best is not None:
                return best
            left = max(room(build, self.limits) for build in builds)
            if left < 0:
                choice = choice.with_less_room(min(-left, slack) - left)
            else:
                self.findings.doubt(chosen)
                choice = choice.of_the_surest()
        self.findings.doubt(chosen)  # or the next step would choose them again
        return verified

    def _choice(self) -> Choice:
        """Return the choice from what is known so far."""
        verified = self.builds.verified
        price = priced(verified)[1].price
        return Choice(self.findings.offers(), room(verified, self.limits), price)

    def _built(self, moves: Sequence[Candidate]) -> list[ProgramBuild]:
        return self.builds.to_verify([candidate.move for candidate in moves])

    def _best_of(self, builds: Sequence[ProgramBuild]) -> ProgramBuild | None:
        """Return the best of ``builds`` that gains and holds the limits, if there is one."""
        allowed = [
            build
            for build in builds
            if build.total < self.builds.verified.total and within(build, self.limits)
        ]
        return min(allowed, key=lambda build: build.total, default=None)
