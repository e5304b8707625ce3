"""Search for the decisions that make one program smallest.

A step draws many moves with disjoint reaches, tries them all in one build, keeps those that paid
(``tune.credit``), does so a few times more with other moves, and then verifies: only a build that
is smaller than the verified one before it takes its place. So the result is never larger than the
start, however wrong a credit was. While moves are tried, every other site is held to its answer
(``hold``): a policy sees what moves do to functions, and would turn around for bytes that no move
has earned.
What is random is drawn from (seed, step), and a state is all that a step depends on: a search that
is resumed goes the same way.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nestor.corpus.relink import LinkMode
from nestor.policy.overrides import Key, Overrides
from nestor.progress import Progress, silent
from nestor.tune.build import Build, BuildError, ProgramBuilder
from nestor.tune.credit import assign, changes
from nestor.tune.moves import Move, Reach, Site, callee_moves, pins_of, site_moves, sites_of

_SURE_SAVING = 8.0
"""Bytes; when a verification fails, moves that saved less are dropped first."""

_SHARED_CALLEE = 4
"""A callee of more sites than this will not disappear because one of them goes."""


@dataclass(frozen=True)
class SearchSettings:
    """How far a search goes."""

    compiles: float = 25.0
    """Whole-program compiles to spend (modules compiled, over the program's modules)."""
    tries: int = 3
    """Builds that try moves before one that verifies."""
    scale: float = 30.0
    """Bytes of predicted gain (or half the cost units) that count like one earlier try."""
    chance: float = 0.2
    """What chance adds to a move's rank, at most, in earlier tries."""
    hold: bool = True
    """Hold all other sites to their answers while moves are tried."""


@dataclass(frozen=True)
class Trial:
    """One move that was tried alone in its reach, and what it cost."""

    move: Move
    bytes: Mapping[LinkMode, int]
    """Change of the linked bytes by link mode; negative is a saving."""


@dataclass(frozen=True)
class Point:
    """The best verified build after so many whole-program compiles."""

    compiles: float
    total: float
    text: float


@dataclass(frozen=True)
class State:
    """Everything that the next step depends on."""

    step: int = 0
    overrides: Overrides = field(default_factory=dict)
    tried: Mapping[Key, int] = field(default_factory=dict)
    """How often each move was tried."""
    curve: tuple[Point, ...] = ()


Observer = Callable[[Build, Sequence[Trial]], None]
"""Is told what was learned, with the verified build in which the moves' sites are described."""


def search(
    builder: ProgramBuilder,
    state: State,
    settings: SearchSettings,
    seed: int,
    *,
    progress: Progress = silent,
    observe: Observer = lambda build, trials: None,
    keep: Callable[[State], None] = lambda state: None,
    limits: Mapping[LinkMode, int] | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> State:
    """Take steps until the compiles are spent and return the best verified state.

    :param limits: linked bytes by link mode that no verified build may exceed.
    :param enough: ends the search between two builds, for who wants the trials and not the result.
    :param observe: is given every trial.
    :param keep: is given the state after every step, to be resumed from.
    """
    verified = builder.build(state.overrides)
    spent = state.curve[-1].compiles
    while spent + settings.tries + 1 <= settings.compiles and not enough():
        progress("Searching", int(spent), int(settings.compiles))
        builder.keep_only(verified.overrides)
        builder.compiled = 0
        step = _Step(builder, verified, state, settings, np.random.default_rng([seed, state.step]))
        for number in range(settings.tries):
            if enough():
                return state
            observe(verified, step.attempt(callees_first=(number + state.step) % 2 == 0))
        verified = step.verify(limits or {})
        # At least one, so that a search with nothing left to try comes to an end.
        spent += max(1.0, builder.compiles)
        state = replace(
            state,
            step=state.step + 1,
            overrides=verified.overrides,
            tried=dict(step.tried),
            curve=(*state.curve, Point(spent, verified.total, verified.text)),
        )
        keep(state)
    progress("Searching", int(settings.compiles), int(settings.compiles))
    return state


@dataclass(frozen=True)
class _Candidate:
    """A move that may be tried in this step."""

    move: Move
    claims: frozenset[int]
    """The functions that no other move of the build may reach."""
    distance: float
    """How far its sites are from being answered otherwise."""


class _Step:
    """The tries between two verified builds."""

    def __init__(
        self,
        builder: ProgramBuilder,
        verified: Build,
        state: State,
        settings: SearchSettings,
        rng: np.random.Generator,
    ):
        self._builder = builder
        self._verified = verified
        self._settings = settings
        self._rng = rng
        self._sites = sites_of(verified.trajectories)
        self._uses = Counter(site.callee for site in self._sites)
        self._reach = Reach(verified.trajectories)
        self._pins = pins_of(verified.trajectories) if settings.hold else {}
        self._owner = {site.key: site.callee for site in self._sites}
        self._callee_moves = [self._candidate(move) for move in callee_moves(self._sites)]
        self._site_moves = [self._candidate(move) for move in site_moves(self._sites)]
        # What each function should weigh if the accepted moves, and no others, were made.
        self._expected = {mode: dict(verified.functions[mode]) for mode in builder.modes}
        self._accepted: list[tuple[float, Move]] = []
        self._taken: set[int] = set()
        self.tried = Counter(state.tried)

    def attempt(self, *, callees_first: bool) -> list[Trial]:
        """Try many moves at once on top of those accepted; return what each was found to do."""
        moves = self._choose(callees_first)
        if not moves:
            return []
        self.tried.update(move.key for move in moves)
        accepted = [move for _, move in self._accepted]
        try:
            build = self._builder.build(self._holding([*accepted, *moves]))
        except BuildError:
            return []  # tried, and never again as this set
        reach = Reach(self._verified.trajectories, build.trajectories)
        changed = {
            mode: changes(self._expected[mode], build.functions[mode])
            for mode in self._builder.modes
        }
        credit = assign([self._reach.of(m) | reach.of(m) for m in moves], _mean(changed))
        trials = []
        for share in credit.shares:
            if share.bytes < 0:
                self._expect(build, share.functions)
                self._taken |= share.functions
                for index in share.moves:
                    self._accepted.append((share.bytes, moves[index]))
                    self._taken |= self._reach.of(moves[index])
            if len(share.moves) == 1:
                by_mode = {
                    mode: sum(change.get(function, 0) for function in share.functions)
                    for mode, change in changed.items()
                }
                trials.append(Trial(moves[share.moves[0]], by_mode))
        self._expect(build, credit.unexplained)
        return trials

    def _expect(self, build: Build, functions: Iterable[int]) -> None:
        """Take over what ``functions`` weigh in ``build``."""
        for mode, expected in self._expected.items():
            for function in functions:
                expected[function] = build.functions[mode].get(function, 0)

    def verify(self, limits: Mapping[LinkMode, int]) -> Build:
        """Return the build of all accepted moves, or of the surest, or the one before."""
        for least in (0.0, _SURE_SAVING):
            moves = [move for change, move in self._accepted if change <= -least]
            if not moves:
                continue
            allowed = [
                build
                for build in self._builds_of(moves)
                if build.total < self._verified.total
                and all(build.sizes[m].loadable <= most for m, most in limits.items())
            ]
            if allowed:
                return min(allowed, key=lambda build: build.total)
        return self._verified

    def _builds_of(self, moves: Sequence[Move]) -> list[Build]:
        """Build ``moves``, and once more with the answers held that turned around unasked."""
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

    def _turned(self, build: Build, moves: Sequence[Move]) -> dict[Key, bool]:
        """Return the verified answers of sites that answer otherwise in ``build`` unasked."""
        asked = {site.key for move in moves for site in move.sites}
        after = pins_of(build.trajectories)
        return {
            key: answer
            for key, answer in self._pins.items()
            if key.number not in asked and after.get(key, answer) != answer
        }

    def _candidate(self, move: Move) -> "_Candidate":
        reach, site = self._reach.of(move), move.sites[0]
        if len(move.sites) == 1 and self._uses[site.callee] > _SHARED_CALLEE:
            reach -= {site.callee}
        return _Candidate(move, reach, sum(map(self._distance, move.sites)) / len(move.sites))

    def _choose(self, callees_first: bool) -> list[Move]:
        """Draw moves of disjoint reaches, untried and promising ones first."""
        chosen: list[Move] = []
        claimed = set(self._taken)
        groups = [self._callee_moves, self._site_moves]
        for group in groups if callees_first else reversed(groups):
            for index in np.argsort(self._ranks(group), kind="stable"):
                candidate = group[index]
                if claimed.isdisjoint(candidate.claims):
                    claimed |= candidate.claims
                    chosen.append(candidate.move)
        return chosen

    def _ranks(self, group: Sequence["_Candidate"]) -> npt.NDArray[np.float64]:
        tried = np.array([self.tried[candidate.move.key] for candidate in group], float)
        distance = np.array([candidate.distance for candidate in group], float)
        drawn = self._rng.random(len(group))
        ranks = tried + self._settings.chance * drawn + np.minimum(1.5, distance)
        return np.asarray(ranks, dtype=np.float64)

    def _distance(self, site: Site) -> float:
        """How far the site is from being answered otherwise."""
        units = abs(site.logit) if site.logit else abs(site.cost - 5) / 2
        return units / self._settings.scale

    def _holding(self, moves: Sequence[Move]) -> dict[Key, bool]:
        """Return the overrides with ``moves``, and the answers of all other sites as they are."""
        if not self._settings.hold:
            return self._with(moves)
        moved = {Key("site", site.key): move.answer for move in moves for site in move.sites}
        return self._pins | moved | self._with(moves)

    def _with(self, moves: Sequence[Move]) -> dict[Key, bool]:
        """Return the verified overrides and ``moves``; a callee's clears its sites'."""
        callees = {move.key.number for move in moves if move.key.kind == "callee"}
        result = {
            key: answer
            for key, answer in self._verified.overrides.items()
            if key.kind != "site" or self._owner.get(key.number) not in callees
        }
        return result | {move.key: move.answer for move in moves}


def _mean(changed: Mapping[LinkMode, Mapping[int, int]]) -> dict[int, float]:
    """Return the mean over the link modes of every function's change."""
    total: Counter[int] = Counter()
    for change in changed.values():
        total.update(change)
    return {function: change / len(changed) for function, change in total.items()}
