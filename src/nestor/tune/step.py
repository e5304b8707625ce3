"""One step of a search: builds that try moves, and one that verifies those that saved something."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from nestor.build.build import BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.problem.overrides import Answer, Key
from nestor.tune.credit import assign, changes
from nestor.tune.estimates import Terms, hopes
from nestor.tune.moves import Candidate, Candidates, Move, MoveSource
from nestor.tune.pairs import pairs
from nestor.tune.state import State, Tried

_SURE_SAVINGS: Final = (0.0, 8.0, 32.0)
"""In units of the score; when a verification fails, moves that saved less are dropped first."""

_MOST_TIMES: Final = 3
"""A move whose effect stays unclear is tried so often as long as nothing changes around it."""

_FARTHEST: Final = 1.5
"""A distance beyond this counts as this."""


Limits = Mapping[str, Mapping[str, float]]
"""The largest value of a column that a verified build may have, by mode and column."""


def within(build: ProgramBuild, limits: Limits) -> bool:
    """Tell whether ``build`` exceeds none of ``limits``."""
    return all(
        build.columns[mode][column] <= most
        for mode, columns in limits.items()
        for column, most in columns.items()
    )


class StepSettings(Protocol):
    """What a step reads of :class:`nestor.tune.search.SearchSettings`."""

    @property
    def scale(self) -> float:
        """Predicted gain, in units of the score, that counts like one earlier try."""

    @property
    def chance(self) -> float:
        """What chance adds to a move's rank, at most."""

    @property
    def hold(self) -> bool:
        """Hold all other questions to their answers."""

    @property
    def exact(self) -> int:
        """Questions of which every combination of answers is tried, at most."""

    @property
    def unit(self) -> float:
        """What of the score counts as a byte does where sizes are searched."""

    @property
    def pairs(self) -> bool:
        """Try pairs of moves."""


@dataclass(frozen=True)
class Trial:
    """One move that was tried alone in its reach, and what it cost."""

    move: Move
    change: Mapping[str, float]
    """Change of the score by mode; negative is a saving."""


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
    ):
        """Prepare to try moves on ``verified``; nothing is built yet."""
        self._builder = builder
        self._moves = moves
        self._verified = verified
        self._settings = settings
        self._rng = rng
        self._reach = moves.reach(verified.trajectories)
        self._pins = moves.pins(verified.trajectories) if settings.hold else {}
        self._candidates = moves.candidates(
            verified.trajectories,
            self._reach,
            settings.scale,
            settings.exact,
            _mean(verified.functions),
            verified.calls.get(builder.modes[0]),
        )
        self._pairs = self._neighbours(state) if settings.pairs else []
        self._parts = _by_part(self._candidates)
        # What each function should weigh if the accepted moves, and no others, were made.
        self._expected = {mode: dict(verified.functions[mode]) for mode in builder.modes}
        self._accepted: list[tuple[float, Candidate]] = []
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
            build = self._builder.build(self._holding([*kept, *moves]))
        except BuildError:
            for candidate in chosen:
                self._remember(candidate, None)
            return []
        reach = self._moves.reach(self._verified.trajectories, build.trajectories)
        changed = {
            mode: changes(self._expected[mode], build.functions[mode])
            for mode in self._builder.modes
        }
        reaches = [self._reach.of(c.move) | reach.of(c.move) | c.claims for c in chosen]
        credit = assign(reaches, _mean(changed))
        trials = []
        for share in credit.shares:
            alone = len(share.moves) == 1
            if share.change < 0:
                self._expect(build, share.functions)
                self._taken |= share.functions
                for index in share.moves:
                    self._accept(share.change, chosen[index])
            for index in share.moves:
                total = _total(build, chosen[index].claims)
                self._remember(chosen[index], share.change if alone else None, total)
            if alone:
                by_mode = {
                    mode: sum(change.get(function, 0) for function in share.functions)
                    for mode, change in changed.items()
                }
                trials.append(Trial(moves[share.moves[0]], by_mode))
        self._expect(build, credit.unexplained)
        return trials

    def verify(self, limits: Limits) -> ProgramBuild:
        """Return the build of all accepted moves, or of the surest, or the one before."""
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
            allowed = [
                build
                for build in self._builds_of([candidate.move for candidate in sure])
                if build.total < self._verified.total and within(build, limits)
            ]
            if allowed:
                self._doubt(
                    c for change, c in self._accepted if change > -least * self._settings.unit
                )
                return min(allowed, key=lambda build: build.total)
        self._doubt(candidate for _, candidate in self._accepted)
        return self._verified

    def _neighbours(self, state: State) -> list[Candidate]:
        single = [*self._candidates.first, *self._candidates.turns]
        alone = [c for group in single for c in group if c.move.part is None]
        return pairs(alone, state.tried, self._settings.scale)

    def _remember(
        self, candidate: Candidate, change: float | None, total: float | None = None
    ) -> None:
        """Keep what ``candidate`` was found to do."""
        identity = candidate.move.identity
        before = self.tried.get(identity)
        same = before is not None and before.context == candidate.context
        times = before.times if before is not None and same else 0
        own = None if candidate.combination is None else total
        self.tried[identity] = Tried(candidate.context, times + 1, change, own)

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

    def _builds_of(self, moves: Sequence[Move]) -> list[ProgramBuild]:
        """Build ``moves``, and once more with those answers held that no move was to change."""
        overrides = self._with(moves)
        try:
            free = self._builder.build(overrides)
        except BuildError:
            return []
        turned = self._turned(free, moves)
        try:
            return [free, self._builder.build(overrides | turned)] if turned else [free]
        except BuildError:
            return [free]

    def _turned(self, build: ProgramBuild, moves: Sequence[Move]) -> dict[Key, Answer]:
        """Return the verified answers of questions that ``build`` answers otherwise unmoved."""
        moved = {question.key for move in moves for question in move.questions}
        moved.update(key for move in moves for key in move.clears)
        after = self._moves.pins(build.trajectories)
        return {
            key: answer
            for key, answer in self._pins.items()
            if key not in moved and after.get(key, answer) != answer
        }

    def _choose(self, turn: int) -> list[Candidate]:
        """Draw moves of disjoint reaches, promising ones first, and none that was tried."""
        chosen: list[Candidate] = []
        claimed: set[int] = set()
        for group in self._groups(self._candidates, turn):
            open_ = [candidate for candidate in group if self._is_open(candidate)]
            for index in np.argsort(self._ranks(open_), kind="stable"):
                candidate = open_[index]
                # A move about a whole part may stand for the one that was accepted there.
                taken = candidate.move.part is None and not self._taken.isdisjoint(candidate.claims)
                if not taken and claimed.isdisjoint(candidate.claims):
                    claimed |= candidate.claims
                    chosen.append(candidate)
        return chosen

    def _groups(self, candidates: Candidates, turn: int) -> list[Sequence[Candidate]]:
        """Return the groups in the order in which to draw from them."""
        first = turn % max(1, len(candidates.turns))
        turns = (*candidates.turns[first:], *candidates.turns[:first])
        return [*candidates.first, *turns, self._pairs]

    def _is_open(self, candidate: Candidate) -> bool:
        """Tell whether something new may come of trying a move."""
        found = self.tried.get(candidate.move.identity)
        if found is None or found.context != candidate.context:
            return True
        return found.change is None and found.times < _MOST_TIMES

    def _ranks(self, group: Sequence[Candidate]) -> npt.NDArray[np.float64]:
        tried = [self.tried.get(candidate.move.identity) for candidate in group]
        times = np.array([0 if found is None else found.times for found in tried], float)
        distance = np.array([candidate.distance for candidate in group], float)
        drawn = self._rng.random(len(group))
        ranks = times + self._settings.chance * drawn + np.minimum(_FARTHEST, distance)
        for part, numbers in _numbers_by_part(group).items():
            ranks[numbers] = self._hopes(part, [group[number] for number in numbers])
        return np.asarray(ranks, dtype=np.float64)

    def _hopes(self, part: int, open_: Sequence[Candidate]) -> npt.NDArray[np.float64]:
        """Return what combinations of answers of one part may come to, by those that were tried."""
        wanted = [c.combination.terms for c in open_ if c.combination is not None]
        seen: list[tuple[Terms, float]] = []
        for candidate in self._parts[part]:
            found = self.tried.get(candidate.move.identity)
            if candidate.combination is None:
                continue
            if not seen:
                total = _total(self._verified, candidate.claims)
                seen.append((candidate.combination.now, total))
            if found is not None and found.context == candidate.context and found.total is not None:
                seen.append((candidate.combination.terms, found.total))
        return hopes(wanted, seen, self._settings.unit)

    def _holding(self, moves: Sequence[Move]) -> dict[Key, Answer]:
        """Return the overrides with ``moves``, all other questions held to their answers."""
        cleared = {key for move in moves for key in move.clears}
        pins = {key: answer for key, answer in self._pins.items() if key not in cleared}
        return pins | self._with(moves)

    def _with(self, moves: Sequence[Move]) -> dict[Key, Answer]:
        """Return the verified overrides without those that ``moves`` clear, and ``moves``."""
        cleared = {key for move in moves for key in move.clears}
        kept = {k: answer for k, answer in self._verified.overrides.items() if k not in cleared}
        return kept | {key: answer for move in moves for key, answer in move.overrides}


def _by_part(candidates: Candidates) -> Mapping[int, Sequence[Candidate]]:
    """Return the combinations of answers of each part."""
    found: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in (c for group in (*candidates.first, *candidates.turns) for c in group):
        if candidate.move.part is not None and candidate.combination is not None:
            found[candidate.move.part].append(candidate)
    return found


def _numbers_by_part(group: Sequence[Candidate]) -> Mapping[int, Sequence[int]]:
    """Return the places in ``group`` of the combinations of each part."""
    found: dict[int, list[int]] = defaultdict(list)
    for number, candidate in enumerate(group):
        if candidate.move.part is not None and candidate.combination is not None:
            found[candidate.move.part].append(number)
    return found


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
