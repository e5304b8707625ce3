"""One step of a search: builds that try moves, and one that verifies those that saved something."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from nestor.build.build import BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.tune.moves import Candidate, Evidence, MoveSource
from nestor.tune.state import State, Tried
from nestor.tune.steps.builds import StepBuilds
from nestor.tune.steps.findings import Findings, Trial, mean, total_of
from nestor.tune.steps.limits import Limits
from nestor.tune.steps.order import Order
from nestor.tune.steps.pairs import pairs
from nestor.tune.steps.settings import StepSettings
from nestor.tune.steps.verification import Verification


class Step:
    """The tries between two verified builds."""

    def __init__(
        self,
        builder: ProgramBuilder,
        moves: MoveSource,
        verified: ProgramBuild,
        state: State,
        settings: StepSettings,
        rng: np.random.Generator,
        limits: Limits = MappingProxyType({}),
    ):
        """Prepare to try moves on ``verified``; nothing is built yet.

        :param limits: that what is verified holds.
        """
        self._moves = moves
        self._verified = verified
        self._builds = StepBuilds(builder, moves, verified, settings.hold)
        trajectories = verified.trajectories
        reach = moves.reach(trajectories)
        mode = builder.modes[0]
        self.evidence = Evidence(
            mean(verified.functions),
            verified.calls.get(mode),
            state.written,
        )
        candidates = moves.candidates(
            trajectories, reach, settings.scale, settings.exact, self.evidence
        )
        if settings.pairs:
            last = pairs(candidates.every, state.tried, settings.scale)
            candidates = replace(candidates, last=last)
        savings, improvement = None, moves.improvement
        if settings.learned and improvement is not None:
            x = moves.features(trajectories, candidates.every, reach, self.evidence, state.tried)
            savings = improvement.of(x)
        self._order = Order(candidates, savings, partial(total_of, verified), settings, rng)
        self._findings = Findings(verified, candidates.every, state.tried, reach.of)
        self._verification = Verification(self._builds, self._findings, limits, settings.unit)
        self.attempted = False
        """Whether there was something to try."""

    @property
    def tried(self) -> Mapping[int, Tried]:
        """What is known of moves by their identity, this step's included."""
        return self._findings.tried

    def attempt(self, turn: int) -> list[Trial]:
        """Try many moves at once on top of those accepted; return what each was found to do.

        :param turn: says which group of moves is drawn from first.
        """
        chosen = self._choose(turn)
        if not chosen:
            return []
        self.attempted = True
        moves = [candidate.move for candidate in chosen]
        replaced = {move.part for move in moves} - {None}
        accepted = [candidate.move for _, candidate in self._findings.accepted]
        try:
            build = self._builds.held([*(m for m in accepted if m.part not in replaced), *moves])
        except BuildError:
            self._findings.unclear(chosen)
            return []
        reach = self._moves.reach(self._verified.trajectories, build.trajectories)
        reaches = [reach.of(candidate.move) | candidate.claims for candidate in chosen]
        return self._findings.learn(
            build, chosen, reaches, lambda index, of: reach.indirect(moves[index], of)
        )

    def verify(self) -> ProgramBuild:
        """Return the best build of what was found to save, or the one before."""
        return self._verification.best()

    def _choose(self, turn: int) -> list[Candidate]:
        """Draw moves of disjoint reaches, promising ones first, and none that was tried."""
        chosen: list[Candidate] = []
        claimed: set[int] = set()
        taken = self._findings.taken
        # Where a limit leaves no room for what is known to save, every other build seeks room.
        frees_first = turn % 2 == 0 and self._verification.is_short
        for candidate in self._order.open(turn, self.tried, frees_first):
            # A move about a whole part may stand for the one that was accepted there.
            is_taken = candidate.move.part is None and not taken.isdisjoint(candidate.claims)
            if not is_taken and claimed.isdisjoint(candidate.claims):
                claimed |= candidate.claims
                chosen.append(candidate)
        chosen = self._order.worth_compiling(chosen, frees_first)
        units = frozenset[str]().union(*(candidate.units for candidate in chosen))
        claimed = {claim for candidate in chosen for claim in candidate.claims}
        for candidate in self._order.besides(self.tried):
            free = claimed.isdisjoint(candidate.claims) and taken.isdisjoint(candidate.claims)
            if free and (not units or candidate.units <= units):
                claimed |= candidate.claims
                chosen.append(candidate)
        return chosen
