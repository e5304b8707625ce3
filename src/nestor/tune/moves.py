"""Moves: what a search may change, as a problem describes it.

A *move* answers a question, or a group of questions, the other way. Its *reach* are the functions
whose bytes (or whatever the score counts) it can change. Moves whose reaches are disjoint can be
tried in one build, and what each of them did is read off the functions.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from nestor.build.calls import Calls
from nestor.build.incremental import ProgramBuild
from nestor.compiler.toolchain import Toolchain
from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import Answer, Key, Overrides
from nestor.problem.problem import Problem
from nestor.problem.trajectory import Trajectory
from nestor.tune.improvement import ExpectedImprovement
from nestor.tune.state import Tried
from nestor.tune.steps.estimates import Combination

Trajectories = Mapping[str, Trajectory]
"""Of one build, by back end."""


@dataclass(frozen=True)
class Question:
    """One question of a program as a build saw it; equal questions of several units are one."""

    key: Key
    """Of an override that answers it and nothing else."""
    answer: Answer
    default: Answer
    """What the default heuristic answers."""
    row: tuple[str, int]
    """Back end and row of its features in the trajectory."""


@dataclass(frozen=True)
class Move:
    """Overrides that answer ``questions`` otherwise than they are answered now."""

    overrides: tuple[tuple[Key, Answer], ...]
    questions: tuple[Question, ...]
    clears: tuple[Key, ...] = ()
    """Keys of overrides that go when the move is made, and that hold nothing while it is tried."""
    part: int | None = None
    """Functions about which the move decides as a whole, by a number: a move replaces an earlier
    one of its part."""

    @staticmethod
    def one(
        key: Key, answer: Answer, questions: tuple[Question, ...], clears: tuple[Key, ...] = ()
    ) -> "Move":
        """Return a move of one override."""
        return Move(((key, answer),), questions, clears)

    @property
    def key(self) -> Key:
        """The key of its first override."""
        return self.overrides[0][0]

    @property
    def answer(self) -> Answer:
        """The answer of its first override."""
        return self.overrides[0][1]

    @cached_property
    def identity(self) -> int:
        """A 64-bit number that is the same for equal overrides in every process."""
        text = "\n".join(sorted(f"{key} {answer}" for key, answer in self.overrides))
        import xxhash  # what explains itself only needs none

        return xxhash.xxh3_64_intdigest(text.encode())


@dataclass(frozen=True)
class Candidate:
    """A move that may be tried."""

    move: Move
    claims: frozenset[int]
    """Ids of the functions that no other move of the build may reach."""
    distance: float
    """How far its questions are from being answered otherwise, in the search's scale; moves of
    small distance are tried first, and it may be negative."""
    context: int = 0
    """A 64-bit hash of the answers on which its effect depends: it is tried again only when they
    have changed."""
    near: frozenset[int] = frozenset()
    """Ids of the functions that its questions are about; a pair of moves shares one."""
    combination: Combination | None = None
    """What a move that decides about functions as a whole adds up to."""
    units: frozenset[str] = frozenset()
    """The back ends that ask its questions, and so are compiled again to try it."""
    found: float | None = None
    """What its parts changed together, each tried alone."""
    frees: bool = False
    """Whether it may be expected to take less of what has a limit."""


@dataclass(frozen=True)
class Candidates:
    """Every move on a build, in groups."""

    first: Sequence[Sequence[Candidate]] = ()
    """Drawn from before all others, in this order."""
    turns: Sequence[Sequence[Candidate]] = ()
    """Take turns to be drawn from next."""
    last: Sequence[Candidate] = ()
    """Drawn from when nothing else is left."""
    besides: Sequence[Candidate] = ()
    """Tried in units that are compiled anyway for others, or when nothing else is left."""

    @cached_property
    def every(self) -> Sequence[Candidate]:
        """All of them, in the order of the groups."""
        groups = (*self.first, *self.turns, self.last, self.besides)
        return [candidate for group in groups for candidate in group]


@dataclass(frozen=True)
class Evidence:
    """What a build says of its functions, and its run of their calls where it is run."""

    functions: Mapping[int, float] = field(default_factory=dict)
    """What of the score each function takes, by id."""
    calls: Calls | None = None
    """Of the build's run."""
    written: Calls | None = None
    """Of a run of the build under :meth:`MoveSource.plain`; its edges have every call that was
    written, those that never ran too."""


class Reach(Protocol):
    """Which functions moves can change."""

    def of(self, move: Any) -> frozenset[int]:
        """Return the ids of the functions that ``move``, one of the problem's own, can change."""

    def above(self, function: int) -> frozenset[int]:
        """Return ``function`` and all functions that hold a copy of it."""

    def indirect(self, move: Any, functions: frozenset[int]) -> Mapping[int, int]:
        """Return those of ``functions`` that ``move`` may have changed if no move reaches them.

        With each, how many calls lead from the move to it.
        """


class MoveSource(Protocol):
    """The moves of one problem."""

    @property
    def starts(self) -> tuple[str, ...]:
        """Names of policies that a search from the default heuristic tries first."""

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of policies of which a search starts from the best if its user names none."""

    @property
    def improvement(self) -> ExpectedImprovement | None:
        """What a move may be expected to save, by what is known of it.

        None where nothing has been learned of that: the distances order the moves then.
        """

    def reach(self, *builds: Trajectories) -> Reach:
        """Return the reach of moves between builds with these trajectories."""

    def candidates(
        self,
        trajectories: Trajectories,
        reach: Reach,
        scale: float,
        exact: int = 0,
        evidence: Evidence | None = None,
    ) -> Candidates:
        """Return every move on a build.

        :param reach: of that build.
        :param scale: the gain (in units of the score) or deviation that makes a distance of 1.
        :param exact: where at most so many questions depend on one another and on no other, every
            combination of their answers is a move.
        :param evidence: of that build.
        """

    def features(
        self,
        trajectories: Trajectories,
        candidates: Sequence[Candidate],
        reach: Reach,
        evidence: Evidence,
        tried: Mapping[int, Tried],
    ) -> npt.NDArray[np.float64]:
        """Return what is known of each candidate before it is built, ``[candidates, features]``.

        The features are those of :attr:`improvement`, if there is one.

        :param reach: of the build of ``trajectories``.
        :param evidence: of that build.
        :param tried: what moves were found to do so far, by the move's identity.
        """

    def plain(self, build: ProgramBuild) -> Overrides:
        """Return overrides under which a run tells of all calls; none if no run is of use."""

    def written(self, plain: ProgramBuild) -> Calls | None:
        """Return the calls that the run of the build under :meth:`plain` tells of."""

    def proposal(self, build: ProgramBuild, written: Calls | None, extent: float) -> Overrides:
        """Return overrides that may make ``build`` better as a whole; none if nothing says so.

        :param written: what :meth:`written` returned of the program, if there is such a run.
        :param extent: the part by which they may make the program larger, by an estimate.
        """

    def revised(self, before: ProgramBuild, after: ProgramBuild) -> Overrides:
        """Return the overrides of ``after`` without what seems to have made ``before`` worse."""

    def pins(self, trajectories: Trajectories) -> dict[Key, Answer]:
        """Return overrides that hold every single question to the answer that it has."""

    def effective(self, build: ProgramBuild, policy: NamedPolicy) -> dict[Key, Answer]:
        """Return the overrides of ``build`` without those that change no answer of ``policy``."""

    def comments(self, toolchain: Toolchain, build: ProgramBuild) -> Mapping[Key, str]:
        """Return what each override of ``build`` is about, in the names of the source."""


def moves_of(problem: Problem, summary: str | None = None) -> MoveSource:
    """Return what a search may change under ``problem``.

    :param summary: the text of the program's summary, if there is one.
    :raises ProblemError: if it has no moves, or the summary cannot be read.
    """
    return cast(MoveSource, problem.moves(summary))


def features(
    trajectories: Trajectories, questions: Sequence[Question], names: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Return the features ``names`` of ``questions``, ``[questions, names]``."""
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for index, question in enumerate(questions):
        rows[question.row[0]].append((index, question.row[1]))
    result = np.empty((len(questions), len(names)))
    for back_end, pairs in rows.items():
        where, which = zip(*pairs, strict=True)
        result[list(where)] = trajectories[back_end].rows(names)[list(which)]
    return result


__all__ = [
    "Answer",
    "Candidate",
    "Candidates",
    "Combination",
    "Evidence",
    "Key",
    "Move",
    "MoveSource",
    "Overrides",
    "Question",
    "Reach",
    "Trajectories",
    "features",
    "moves_of",
]
