"""What the builds of a step find of its moves."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nestor.build.incremental import ProgramBuild
from nestor.tune.moves import Candidate, Move
from nestor.tune.state import Tried
from nestor.tune.steps.choice import Offer
from nestor.tune.steps.credit import Share, assign, changes
from nestor.tune.steps.limits import priced


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


class Findings:
    """What is known of the moves on one verified build, those of earlier steps included."""

    def __init__(
        self,
        verified: ProgramBuild,
        candidates: Sequence[Candidate],
        tried: Mapping[int, Tried],
        reach: Callable[[Move], frozenset[int]],
    ):
        """Begin with what earlier steps found.

        :param candidates: all moves on ``verified``.
        :param reach: the functions that a move can change in ``verified``.
        """
        self._candidates = candidates
        self._reach = reach
        # What each function should weigh if the accepted moves, and no others, were made.
        self._expected = {mode: dict(own) for mode, own in verified.functions.items()}
        self._amounts = {mode: dict(one.functions) for mode, one in verified.priced.items()}
        self._price = priced(verified)[1].price if self.is_priced else 0.0
        self._joint: list[Offer] = []
        self.tried = dict(tried)
        """By the move's identity."""
        self.accepted: list[tuple[float, Candidate]] = []
        """What saved something in this step, with its change of the score."""
        self.taken: set[int] = set()
        """The functions that accepted moves can change."""

    @property
    def is_priced(self) -> bool:
        """Whether there is a column with a limit, and so with a price."""
        return bool(self._amounts)

    def learn(
        self,
        build: ProgramBuild,
        moves: Sequence[Candidate],
        reaches: Sequence[frozenset[int]],
        indirect: Callable[[int, frozenset[int]], Mapping[int, int]],
    ) -> list[Trial]:
        """Put what ``build`` changed down to ``moves``; return those that it tells apart.

        :param reaches: the functions of each move.
        :param indirect: see :func:`nestor.tune.steps.credit.assign`.
        """
        changed = {
            mode: changes(expected, build.functions[mode])
            for mode, expected in self._expected.items()
        }
        amounts = mean(
            {m: changes(own, build.priced[m].functions) for m, own in self._amounts.items()}
        )
        credit = assign(reaches, mean(changed), indirect)
        trials = []
        for share in credit.shares:
            own = [moves[index] for index in share.moves]
            self._take_in(share, own, build, amounts)
            if len(own) == 1:
                by_mode = {
                    mode: sum(change.get(function, 0) for function in share.functions)
                    for mode, change in changed.items()
                }
                trials.append(Trial(own[0], by_mode))
        self._expect(build, credit.unexplained)
        return trials

    def unclear(self, moves: Iterable[Candidate]) -> None:
        """Keep that ``moves`` were tried and that nothing is known of them: no build came of it."""
        for candidate in moves:
            self._remember(candidate, None)

    def doubt(self, moves: Iterable[Candidate]) -> None:
        """Let moves be tried again whose savings did not show in a build of all of them."""
        for candidate in moves:
            identity = candidate.move.identity
            self.tried[identity] = replace(self.tried[identity], change=None)

    def offers(self) -> list[Offer]:
        """Return what is known of the moves on the verified build."""
        found = list(self._joint)
        for candidate in self._candidates:
            tried = self.tried.get(candidate.move.identity)
            if tried is None or tried.context != candidate.context:
                continue
            if tried.change is not None and tried.amount is not None:
                found.append(self._offer([candidate], tried.change, tried.amount))
        return found

    def _take_in(
        self,
        share: Share,
        moves: Sequence[Candidate],
        build: ProgramBuild,
        amounts: Mapping[int, float],
    ) -> None:
        """Accept the moves of ``share`` if they saved something, and keep what they did."""
        alone = len(moves) == 1
        amount = sum(amounts.get(function, 0.0) for function in sorted(share.functions))
        if share.change < 0:
            if not alone and self.is_priced:
                self._joint.append(self._offer(moves, share.change, amount))
            self._expect(build, share.functions)
            self.taken |= share.functions
            for candidate in moves:
                self._accept(share.change, candidate)
        change = share.change if alone else None
        for candidate in moves:
            total = total_of(build, candidate.claims)
            self._remember(candidate, change, total, amount if alone else None)

    def _offer(self, moves: Sequence[Candidate], change: float, amount: float) -> Offer:
        """Return what ``moves`` do: to the score itself, and to the column that has a price."""
        return Offer(tuple(moves), change - self._price * amount, amount)

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
            candidate.context, times + 1, change, own, amount if self.is_priced else None
        )

    def _accept(self, change: float, candidate: Candidate) -> None:
        """Take a move in, in the place of an earlier one of its part."""
        part = candidate.move.part
        if part is not None:
            change += sum(own for own, c in self.accepted if c.move.part == part)
            self.accepted = [(own, c) for own, c in self.accepted if c.move.part != part]
        self.accepted.append((change, candidate))
        self.taken |= self._reach(candidate.move) | candidate.claims

    def _expect(self, build: ProgramBuild, functions: Iterable[int]) -> None:
        """Take over what ``functions`` weigh in ``build``."""
        for mode, expected in self._expected.items():
            for function in functions:
                expected[function] = build.functions[mode].get(function, 0)
        for mode, amounts in self._amounts.items():
            for function in functions:
                amounts[function] = build.priced[mode].functions.get(function, 0)


def total_of(build: ProgramBuild, functions: Iterable[int]) -> float:
    """Return what ``functions`` come to, the mean over the modes."""
    own = list(functions)
    found = [sum(by.get(f, 0) for f in own) for by in build.functions.values()]
    return sum(found) / len(found)


def mean(by_mode: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Return the mean over the modes of what each function has."""
    total: dict[int, float] = {}
    for own in by_mode.values():
        for function, value in own.items():
            total[function] = total.get(function, 0) + value
    return {function: value / len(by_mode) for function, value in total.items()}
