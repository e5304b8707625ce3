"""One step of a search: builds that try moves, and one that verifies those that saved something."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from nestor.build.build import BuildError
from nestor.build.incremental import Priced, ProgramBuild, ProgramBuilder
from nestor.tune.moves import Candidate, Evidence, Move, MoveSource
from nestor.tune.state import State, Tried
from nestor.tune.steps.builds import StepBuilds
from nestor.tune.steps.choice import Choice, Offer
from nestor.tune.steps.credit import assign, changes
from nestor.tune.steps.order import Order
from nestor.tune.steps.pairs import pairs
from nestor.tune.steps.settings import StepSettings

_SURE_SAVINGS: Final = (0.0, 8.0, 32.0)
"""In units of the score; when a verification fails, moves that saved less are dropped first."""

_CHOICES: Final = 3
"""Builds of moves within a limit, at most, until one holds it."""

_SLACK: Final = 0.001
"""Of a column, kept free of its limit once a build was beyond it, but no more than it was."""

Limits = Mapping[str, Mapping[str, float]]
"""The largest value of a column that a verified build may have, by mode and column."""


def within(build: ProgramBuild, limits: Limits) -> bool:
    """Tell whether ``build`` exceeds none of ``limits``."""
    return all(
        build.columns[mode][column] <= most
        for mode, columns in limits.items()
        for column, most in columns.items()
    )


@dataclass(frozen=True)
class Trial:
    """One move that was tried alone in its reach, and what it cost."""

    candidate: Candidate
    change: Mapping[str, float]
    """Change of the score by mode; negative is a saving."""

    @property
    def move(self) -> Move:
        """What was tried."""
        return self.candidate.move


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
        self._limits = limits
        self._moves = moves
        self._verified = verified
        self._settings = settings
        self._builds = StepBuilds(builder, moves, verified, settings.hold)
        self._reach = moves.reach(verified.trajectories)
        trajectories = verified.trajectories
        mode = builder.modes[0]
        self.evidence = Evidence(
            _mean(verified.functions),
            verified.calls.get(mode),
            state.written,
        )
        candidates = moves.candidates(
            trajectories, self._reach, settings.scale, settings.exact, self.evidence
        )
        if settings.pairs:
            last = pairs(candidates.every, state.tried, settings.scale)
            candidates = replace(candidates, last=last)
        savings, improvement = None, moves.improvement
        if settings.learned and improvement is not None:
            x = moves.features(
                trajectories, candidates.every, self._reach, self.evidence, state.tried
            )
            savings = improvement.of(x)
        self._candidates = candidates
        self._order = Order(candidates, savings, partial(_total, verified), settings, rng)
        # What each function should weigh if the accepted moves, and no others, were made.
        self._expected = {mode: dict(verified.functions[mode]) for mode in builder.modes}
        self._amounts = {mode: dict(one.functions) for mode, one in verified.priced.items()}
        self._accepted: list[tuple[float, Candidate]] = []
        self._joint: list[Offer] = []
        self._taken: set[int] = set()
        self.tried = dict(state.tried)
        """By the move's identity, this step's included."""
        self.attempted = False
        """Whether there was something to try."""

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
        kept = [c.move for _, c in self._accepted if c.move.part not in replaced]
        try:
            build = self._builds.held([*kept, *moves])
        except BuildError:
            for candidate in chosen:
                self._remember(candidate, None)
            return []
        reach = self._moves.reach(self._verified.trajectories, build.trajectories)
        changed = {
            mode: changes(self._expected[mode], build.functions[mode])
            for mode in self._verified.functions
        }
        reaches = [reach.of(c.move) | c.claims for c in chosen]
        credit = assign(reaches, _mean(changed), lambda index, of: reach.indirect(moves[index], of))
        amounts = _mean(
            {m: changes(own, build.priced[m].functions) for m, own in self._amounts.items()}
        )
        trials = []
        for share in credit.shares:
            alone = len(share.moves) == 1
            amount = sum(amounts.get(function, 0.0) for function in sorted(share.functions))
            if share.change < 0:
                if not alone and self._amounts:
                    own = tuple(chosen[index] for index in share.moves)
                    self._joint.append(self._offer(own, share.change, amount))
                self._expect(build, share.functions)
                self._taken |= share.functions
                for index in share.moves:
                    self._accept(share.change, chosen[index])
            for index in share.moves:
                total = _total(build, chosen[index].claims)
                self._remember(
                    chosen[index], share.change if alone else None, total, amount if alone else None
                )
            if alone:
                by_mode = {
                    mode: sum(change.get(function, 0) for function in share.functions)
                    for mode, change in changed.items()
                }
                trials.append(Trial(chosen[share.moves[0]], by_mode))
        self._expect(build, credit.unexplained)
        return trials

    def verify(self) -> ProgramBuild:
        """Return the build of all accepted moves, or of the surest, or the one before."""
        if self._amounts:
            return self._verify_within()
        before = None
        for least in _SURE_SAVINGS:
            sure = [
                candidate
                for change, candidate in self._accepted
                if change <= -least * self._settings.unit
            ]
            if not sure or len(sure) == before:
                continue
            before = len(sure)
            best = self._best(self._builds.to_verify([candidate.move for candidate in sure]))
            if best is not None:
                self._doubt(
                    c for change, c in self._accepted if change > -least * self._settings.unit
                )
                return best
        self._doubt(candidate for _, candidate in self._accepted)
        return self._verified

    def _verify_within(self) -> ProgramBuild:
        """Return the build of what saves most within the limits, or the one before."""
        mode, priced = self._priced
        slack = _SLACK * self._verified.columns[mode][priced.column]
        choice = self._choice()
        chosen: list[Candidate] = []
        for _ in range(_CHOICES):
            chosen = [candidate for offer in choice.offers for candidate in offer.moves]
            if not chosen:
                break
            builds = self._builds.to_verify([candidate.move for candidate in chosen])
            if not builds:
                break
            best = self._best(builds)
            if best is not None:
                return best
            room = max(self._room(build) for build in builds)
            if room < 0:
                choice = choice.with_less_room(min(-room, slack) - room)
            else:
                self._doubt(chosen)
                choice = choice.of_the_surest()
        self._doubt(chosen)  # or the next step would choose them again
        return self._verified

    def _best(self, builds: Sequence[ProgramBuild]) -> ProgramBuild | None:
        """Return the best of ``builds`` that gains and holds the limits, if there is one."""
        allowed = [
            build
            for build in builds
            if build.total < self._verified.total and within(build, self._limits)
        ]
        return min(allowed, key=lambda build: build.total, default=None)

    @property
    def _priced(self) -> tuple[str, Priced]:
        """The mode and the column that has a price, where there is one."""
        return next(iter(self._verified.priced.items()))

    def _choice(self) -> Choice:
        """Return the choice from what is known so far."""
        return Choice(self._offers(), self._room(self._verified), self._priced[1].price)

    def _room(self, build: ProgramBuild) -> float:
        """Return what ``build`` leaves of the limit of the column that has a price."""
        mode, priced = self._priced
        most = self._limits.get(mode, {}).get(priced.column, math.inf)
        return most - build.columns[mode][priced.column]

    def _offers(self) -> list[Offer]:
        """Return what is known of the moves on the verified build."""
        found = list(self._joint)
        for candidate in self._candidates.every:
            tried = self.tried.get(candidate.move.identity)
            if tried is None or tried.context != candidate.context:
                continue
            if tried.change is not None and tried.amount is not None:
                found.append(self._offer((candidate,), tried.change, tried.amount))
        return found

    def _offer(self, moves: tuple[Candidate, ...], change: float, amount: float) -> Offer:
        """Return what ``moves`` do: to the score itself, and to the column that has a price."""
        return Offer(moves, change - self._priced[1].price * amount, amount)

    def _remember(
        self,
        candidate: Candidate,
        change: float | None,
        total: float | None = None,
        amount: float | None = None,
    ) -> None:
        """Keep what ``candidate`` was found to do."""
        identity = candidate.move.identity
        before = self.tried.get(identity)
        same = before is not None and before.context == candidate.context
        times = before.times if before is not None and same else 0
        own = None if candidate.combination is None else total
        self.tried[identity] = Tried(
            candidate.context, times + 1, change, own, amount if self._amounts else None
        )

    def _doubt(self, candidates: Iterable[Candidate]) -> None:
        """Let moves be tried again whose savings did not show in a build of all of them."""
        for candidate in candidates:
            identity = candidate.move.identity
            self.tried[identity] = replace(self.tried[identity], change=None)

    def _accept(self, change: float, candidate: Candidate) -> None:
        """Take a move in, in the place of an earlier one of its part."""
        part = candidate.move.part
        if part is not None:
            change += sum(own for own, c in self._accepted if c.move.part == part)
            self._accepted = [(own, c) for own, c in self._accepted if c.move.part != part]
        self._accepted.append((change, candidate))
        self._taken |= self._reach.of(candidate.move) | candidate.claims

    def _expect(self, build: ProgramBuild, functions: Iterable[int]) -> None:
        """Take over what ``functions`` weigh in ``build``."""
        for mode, expected in self._expected.items():
            for function in functions:
                expected[function] = build.functions[mode].get(function, 0)
        for mode, amounts in self._amounts.items():
            for function in functions:
                amounts[function] = build.priced[mode].functions.get(function, 0)

    def _choose(self, turn: int) -> list[Candidate]:
        """Draw moves of disjoint reaches, promising ones first, and none that was tried."""
        chosen: list[Candidate] = []
        claimed: set[int] = set()
        # Where a limit leaves no room for what is known to save, every other build seeks room.
        frees_first = turn % 2 == 0 and bool(self._amounts) and self._choice().is_short
        for candidate in self._order.open(turn, self.tried, frees_first):
            # A move about a whole part may stand for the one that was accepted there.
            taken = candidate.move.part is None and not self._taken.isdisjoint(candidate.claims)
            if not taken and claimed.isdisjoint(candidate.claims):
                claimed |= candidate.claims
                chosen.append(candidate)
        chosen = self._order.worth_compiling(chosen, frees_first)
        units = frozenset[str]().union(*(candidate.units for candidate in chosen))
        claimed = {claim for candidate in chosen for claim in candidate.claims}
        for candidate in self._order.besides(self.tried):
            free = claimed.isdisjoint(candidate.claims) and self._taken.isdisjoint(candidate.claims)
            if free and (not units or candidate.units <= units):
                claimed |= candidate.claims
                chosen.append(candidate)
        return chosen


def _total(build: ProgramBuild, functions: Iterable[int]) -> float:
    """Return what ``functions`` come to, the mean over the modes."""
    own = list(functions)
    found = [sum(by.get(f, 0) for f in own) for by in build.functions.values()]
    return sum(found) / len(found)


def _mean(changed: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Return the mean over the modes of every function's change."""
    total: dict[int, float] = {}
    for change in changed.values():
        for function, difference in change.items():
            total[function] = total.get(function, 0) + difference
    return {function: difference / len(changed) for function, difference in total.items()}
