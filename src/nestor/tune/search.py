"""Search for the decisions that make one program smallest.

A step draws many moves with disjoint reaches, tries them all in one build, keeps those that saved
something (``tune.credit``), does so a few times more with other moves, and then verifies: only a
build that is smaller than the verified one before it takes its place. So the result is never larger
than the start, however wrong a credit was. While moves are tried, every other question is held to
its answer (``hold``): a policy sees what moves do to functions, and would answer elsewhere
otherwise, for a change that no move is the cause of.
What is random is drawn from (seed, step), and a state is all that a step depends on: a search that
is resumed goes the same way.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.build.build import BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.problem.overrides import Answer, Key, Overrides
from nestor.progress import Progress, silent
from nestor.tune.credit import assign, changes
from nestor.tune.moves import Candidate, Move, MoveSource

_SURE_SAVING = 8.0
"""In units of the score; when a verification fails, moves that saved less are dropped first."""


@dataclass(frozen=True)
class SearchSettings:
    """How far a search goes."""

    compiles: float = 25.0
    """Whole-program compiles to spend (units compiled, over the program's units)."""
    tries: int = 3
    """Builds that try moves before one that verifies."""
    scale: float = 30.0
    """Predicted gain, in units of the score, that counts like one earlier try."""
    chance: float = 0.2
    """What chance adds to a move's rank, at most, in earlier tries."""
    hold: bool = True
    """Hold all other questions to their answers while moves are tried."""


@dataclass(frozen=True)
class Trial:
    """One move that was tried alone in its reach, and what it cost."""

    move: Move
    change: Mapping[str, float]
    """Change of the score by mode; negative is a saving."""


@dataclass(frozen=True)
class Point:
    """The best verified build after so many whole-program compiles."""

    compiles: float
    total: float
    """The score, the mean over the modes."""
    others: Mapping[str, float] = field(default_factory=dict)
    """The program's other columns, likewise."""

    @staticmethod
    def of(compiles: float, build: ProgramBuild) -> "Point":
        """Return where ``build`` stands after so many compiles."""
        first = next(iter(build.columns.values()))
        others = {name: build.mean(name) for name in first if name != build.score}
        return Point(compiles, build.total, others)

    def to_json(self) -> dict[str, float]:
        """Return the point as plain data."""
        return {"compiles": self.compiles, "total": self.total, **self.others}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Point":
        """Return the point of which ``data`` is :meth:`to_json`."""
        others = {name: float(v) for name, v in data.items() if name not in ("compiles", "total")}
        return Point(float(data["compiles"]), float(data["total"]), others)


@dataclass(frozen=True)
class State:
    """Everything that the next step depends on."""

    step: int = 0
    overrides: Overrides = field(default_factory=dict)
    tried: Mapping[Key, int] = field(default_factory=dict)
    """How often each move was tried."""
    curve: tuple[Point, ...] = ()


Observer = Callable[[ProgramBuild, Sequence[Trial]], None]
"""Receives the trials of a build, with the verified build that their questions refer to."""


def search(
    builder: ProgramBuilder,
    moves: MoveSource,
    state: State,
    settings: SearchSettings,
    seed: int,
    *,
    progress: Progress = silent,
    observe: Observer = lambda build, trials: None,
    keep: Callable[[State], None] = lambda state: None,
    limits: Mapping[str, float] | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> State:
    """Take steps until the compiles are spent and return the best verified state.

    :param limits: scores by mode that no verified build may exceed.
    :param enough: ends the search between two builds, where trials are wanted and not the result.
    :param observe: is called with every trial.
    :param keep: is called with the state after every step, to resume from.
    """
    verified = builder.build(state.overrides)
    spent = state.curve[-1].compiles
    while spent + settings.tries + 1 <= settings.compiles and not enough():
        progress("Searching", int(spent), int(settings.compiles))
        builder.keep_only(verified.overrides)
        builder.compiled = 0
        rng = np.random.default_rng([seed, state.step])
        step = _Step(builder, moves, verified, state, settings, rng)
        for number in range(settings.tries):
            if enough():
                return state
            observe(verified, step.attempt(turn=number + state.step))
        verified = step.verify(limits or {})
        # At least one, so that a search with nothing left to try comes to an end.
        spent += max(1.0, builder.compiles)
        state = replace(
            state,
            step=state.step + 1,
            overrides=verified.overrides,
            tried=dict(step.tried),
            curve=(*state.curve, Point.of(spent, verified)),
        )
        keep(state)
    progress("Searching", int(settings.compiles), int(settings.compiles))
    return state


class _Step:
    """The tries between two verified builds."""

    def __init__(
        self,
        builder: ProgramBuilder,
        moves: MoveSource,
        verified: ProgramBuild,
        state: State,
        settings: SearchSettings,
        rng: np.random.Generator,
    ):
        self._builder = builder
        self._moves = moves
        self._verified = verified
        self._settings = settings
        self._rng = rng
        self._reach = moves.reach(verified.trajectories)
        self._pins = moves.pins(verified.trajectories) if settings.hold else {}
        self._groups = moves.candidates(verified.trajectories, self._reach, settings.scale)
        # What each function should weigh if the accepted moves, and no others, were made.
        self._expected = {mode: dict(verified.functions[mode]) for mode in builder.modes}
        self._accepted: list[tuple[float, Move]] = []
        self._taken: set[int] = set()
        self.tried = Counter(state.tried)

    def attempt(self, turn: int) -> list[Trial]:
        """Try many moves at once on top of those accepted; return what each was found to do.

        :param turn: says which group of moves is drawn from first.
        """
        moves = self._choose(turn)
        if not moves:
            return []
        self.tried.update(move.key for move in moves)
        accepted = [move for _, move in self._accepted]
        try:
            build = self._builder.build(self._holding([*accepted, *moves]))
        except BuildError:
            return []  # tried, and never again as this set
        reach = self._moves.reach(self._verified.trajectories, build.trajectories)
        changed = {
            mode: changes(self._expected[mode], build.functions[mode])
            for mode in self._builder.modes
        }
        credit = assign([self._reach.of(m) | reach.of(m) for m in moves], _mean(changed))
        trials = []
        for share in credit.shares:
            if share.change < 0:
                self._expect(build, share.functions)
                self._taken |= share.functions
                for index in share.moves:
                    self._accepted.append((share.change, moves[index]))
                    self._taken |= self._reach.of(moves[index])
            if len(share.moves) == 1:
                by_mode = {
                    mode: sum(change.get(function, 0) for function in share.functions)
                    for mode, change in changed.items()
                }
                trials.append(Trial(moves[share.moves[0]], by_mode))
        self._expect(build, credit.unexplained)
        return trials

    def _expect(self, build: ProgramBuild, functions: Iterable[int]) -> None:
        """Take over what ``functions`` weigh in ``build``."""
        for mode, expected in self._expected.items():
            for function in functions:
                expected[function] = build.functions[mode].get(function, 0)

    def verify(self, limits: Mapping[str, float]) -> ProgramBuild:
        """Return the build of all accepted moves, or of the surest, or the one before."""
        for least in (0.0, _SURE_SAVING):
            moves = [move for change, move in self._accepted if change <= -least]
            if not moves:
                continue
            allowed = [
                build
                for build in self._builds_of(moves)
                if build.total < self._verified.total
                and all(build.scores()[mode] <= most for mode, most in limits.items())
            ]
            if allowed:
                return min(allowed, key=lambda build: build.total)
        return self._verified

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
        after = self._moves.pins(build.trajectories)
        return {
            key: answer
            for key, answer in self._pins.items()
            if key not in moved and after.get(key, answer) != answer
        }

    def _choose(self, turn: int) -> list[Move]:
        """Draw moves of disjoint reaches, untried and promising ones first."""
        chosen: list[Move] = []
        claimed = set(self._taken)
        first = turn % max(1, len(self._groups))
        for group in (*self._groups[first:], *self._groups[:first]):
            for index in np.argsort(self._ranks(group), kind="stable"):
                candidate = group[index]
                if claimed.isdisjoint(candidate.claims):
                    claimed |= candidate.claims
                    chosen.append(candidate.move)
        return chosen

    def _ranks(self, group: Sequence[Candidate]) -> npt.NDArray[np.float64]:
        tried = np.array([self.tried[candidate.move.key] for candidate in group], float)
        distance = np.array([candidate.distance for candidate in group], float)
        drawn = self._rng.random(len(group))
        ranks = tried + self._settings.chance * drawn + np.minimum(1.5, distance)
        return np.asarray(ranks, dtype=np.float64)

    def _holding(self, moves: Sequence[Move]) -> dict[Key, Answer]:
        """Return the overrides with ``moves``, all other questions held to their answers."""
        if not self._settings.hold:
            return self._with(moves)
        moved = {question.key: move.answer for move in moves for question in move.questions}
        return self._pins | moved | self._with(moves)

    def _with(self, moves: Sequence[Move]) -> dict[Key, Answer]:
        """Return the verified overrides without those that ``moves`` clear, and ``moves``."""
        cleared = {key for move in moves for key in move.clears}
        kept = {k: answer for k, answer in self._verified.overrides.items() if k not in cleared}
        return kept | {move.key: move.answer for move in moves}


def _mean(changed: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Return the mean over the modes of every function's change."""
    total: dict[int, float] = {}
    for change in changed.values():
        for function, difference in change.items():
            total[function] = total.get(function, 0) + difference
    return {function: difference / len(changed) for function, difference in total.items()}
