"""What a decision problem says of itself: everything that learners, searches and judges need.

A *problem* is a decision that a compiler takes by a heuristic and that a policy may take instead.
Its folder holds all that is particular to it; nothing else in Nestor knows it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Limits
from nestor.corpus.level import Level
from nestor.corpus.model import Corpus, Program
from nestor.errors import NestorError
from nestor.policy.names import NO_BUILTINS, Builtins, NamedPolicy, named_policy
from nestor.policy.rule import Rule
from nestor.policy.spec import Policy, PolicyError
from nestor.problem.benefit import Profiles
from nestor.problem.identity import Way
from nestor.problem.overrides import OverrideFormat
from nestor.problem.rollout import Request, Rollout, Store, Workplace
from nestor.problem.score import Credit, Report, Scorer, Scorers
from nestor.problem.trajectory import F64, Trajectory
from nestor.progress import Progress, silent

Item = TypeVar("Item")
Result = TypeVar("Result")


class ProblemError(NestorError):
    """A problem that does not exist, or that cannot do what is wanted of it."""


@dataclass(frozen=True)
class FeatureSets:
    """Which features policies read unless a user names others."""

    free: tuple[str, ...]
    """What the stock heuristic computes anyway: for clones of the default."""
    few: tuple[str, ...]
    """Few enough for learners that move a policy's parameters without gradients."""
    unit: tuple[str, ...]
    """All that are useful and follow from the unit alone: for learners by gradient."""
    program: tuple[str, ...]
    """The same and those of a summary of the whole program: for distillation."""
    extent: tuple[str, ...] = ()
    """Features that say how much a mistake can cost: the default answers for the largest values."""
    mode: str = ""
    """The feature of a summary that holds the link mode, as its place in ``modes``."""
    modes: tuple[str, ...] = ()


class Pool(Protocol):
    """Runs many rollouts at once, on this machine or on others."""

    @property
    def problem(self) -> "Problem":
        """What is decided."""

    @property
    def corpus(self) -> Corpus:
        """The units and programs."""

    @property
    def plugin(self) -> Plugin:
        """The plugin and the toolchain that compile."""

    @property
    def limits(self) -> Limits:
        """What each compiler may use."""

    @property
    def place(self) -> Workplace:
        """Where the work of :meth:`map` runs: this machine."""

    @property
    def jobs(self) -> int:
        """Compilers at once."""

    @property
    def cancelled(self) -> bool:
        """Whether nothing is compiled any more."""

    @property
    def objects(self) -> Store:
        """The objects of the requests that wanted them kept."""

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = "Compiling"
    ) -> list[Rollout]:
        """Run all requests and return their rollouts in the order of the requests."""

    def map(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        progress: Progress = silent,
        stage: str = "Linking",
    ) -> list[Result]:
        """Run ``work``, which waits for a local process, on every item; results in order."""

    def cancel(self) -> None:
        """Kill what runs and start nothing new; those rollouts fail as cancelled."""


@dataclass(frozen=True)
class Problem(ABC):
    """One decision problem; a frozen dataclass whose fields are its description."""

    name: str
    """In policy files and on the command line: small letters, digits and hyphens."""
    summary: str
    """What is decided, in one line."""
    rule: Rule
    """How logits become an answer."""
    levels: tuple[Level, ...]
    """The optimisation levels at which policies decide; the first is that of the usual corpora."""
    score: str
    """What a compile costs, in one phrase with its unit; lower is better."""
    default_column: str
    """The column of a trajectory, and the feature, that holds the default heuristic's answer."""
    features: FeatureSets
    report: Report
    builtins: Builtins = NO_BUILTINS
    """Policies that need no file."""
    imitated: tuple[str, ...] = ()
    """Built-in policies that are worth imitating where they do better than the default."""
    kept_columns: tuple[str, ...] = ()
    """Columns of a trajectory's decisions that :meth:`credit` reads, besides the answers."""
    credit_unit: float = 1.0
    """The change of score that is one unit of reward when decisions are rewarded one by one."""
    credit_clip: float = float("inf")
    """A change of score beyond this counts as this, in either direction."""
    together: bool = False
    """Whether a compile takes policies about other decisions too (``Request.also``)."""
    remark_passes: tuple[str, ...] = ()
    """Passes whose remarks say what stock makes of a question (:mod:`nestor.problem.places`)."""
    tries: bool = False
    """Whether the compiler tries a portfolio's members (:meth:`tried`, :meth:`only`)."""
    scores_units: bool = True
    """Whether a unit alone has a score (:meth:`scorers`), not only a whole program."""
    other_score: str = ""
    """The column by which programs are scored if not by the usual one (:meth:`scored_by`)."""
    outcome_in_object: bool = False
    """Whether an object says what its compile came to (:meth:`outcome_of`): then those of the stock
    compiler are kept, and elsewhere it runs again wherever its outcome is needed."""

    @abstractmethod
    def compile(self, request: Request, place: Workplace) -> Rollout:
        """Compile one unit; a failure of the compiler is a result, never an exception."""

    def outcome_of(self, compiled: Path) -> Any | None:
        """Return what a compile came to whose object is the file ``compiled``.

        None without :attr:`outcome_in_object`.

        :raises NestorError: if the file is no object.
        """
        return None

    @abstractmethod
    def columns(self, outcome: Any) -> Mapping[str, float]:
        """Return one unit's outcome by the columns of the report; they add up over units."""

    @abstractmethod
    def scorers(
        self,
        pool: Pool,
        programs: Sequence[Program],
        rollouts: Mapping[str, Rollout],
        progress: Progress = silent,
    ) -> Scorers:
        """Return a scorer for each unit.

        :param rollouts: of the default heuristic by the unit's name, with kept objects.
        """

    @abstractmethod
    def scorer(self, data: Mapping[str, Any]) -> Scorer:
        """Return the scorer of which ``data`` is :meth:`Scorer.to_json`."""

    @abstractmethod
    def credit(
        self,
        before: tuple[Trajectory, Mapping[str, float]],
        after: tuple[Trajectory, Mapping[str, float]],
    ) -> Credit:
        """Return the credit of every decision of ``after``.

        :param before: the trajectory and the score by part of the unit's stock compile.
        :param after: those of another compile.
        """

    @property
    def name_and_score(self) -> str:
        """Its name, and the score if that is not the usual one: what searches depend on."""
        return " by ".join(filter(None, (self.name, self.other_score)))

    def scored_by(self, column: str) -> "Problem":
        """Return the problem with its programs scored by another column.

        :raises ProblemError: if they cannot be.
        """
        raise ProblemError(f"{self.name} has no score '{column}': leave out --score.")

    def profiles(self) -> Profiles:
        """Return what profiles say of answers; raises ProblemError if they say nothing."""
        raise ProblemError(f"Profiles say nothing of {self.name}: take another learner.")

    def restrained(self, policy: Policy) -> Policy:
        """Return a learned policy without the deviations that learners are known to misjudge."""
        return policy

    def tried(self, outcome: Any) -> Mapping[str, F64]:
        """Return what a compile under a portfolio tells of its members, by part (function).

        :return: the score of a part over that under stock, ``[members]``; infinite where one
            failed. A part that no member would change is absent.
        :raises ProblemError: if the compiler tries nothing.
        """
        raise ProblemError(f"{self.name} has no trials within a compile: take another learner.")

    def only(self, trajectory: Trajectory, parts: Collection[str]) -> str:
        """Return the text of overrides that leave all parts of a unit but ``parts`` to stock.

        :param trajectory: of the unit's stock compile, with names.
        :raises ProblemError: if the compiler tries nothing.
        """
        raise ProblemError(f"{self.name} has no trials within a compile: take another learner.")

    @abstractmethod
    def builds(self) -> Mapping[str, object]:
        """Return the ways to build a whole program, by name; the first is the usual one.

        Each is a :class:`nestor.build.build.Build`, a protocol of the layer above, and taken from
        :func:`nestor.build.build.builds_of`. Where nothing is linked that is
        :func:`nestor.build.objects.object_builds`.
        """

    def overrides(self) -> OverrideFormat:
        """Return how answers that stand above a policy's are written.

        :raises ProblemError: if this problem has no overrides.
        """
        raise ProblemError(f"{self.name} has no overrides.")

    def moves(self, summary: str | None = None) -> object:
        """Return what a search may change, a :class:`nestor.tune.moves.MoveSource`.

        A search takes it from :func:`nestor.tune.moves.moves_of`.

        :param summary: the text of the program's summary, if there is one.
        :raises ProblemError: if this problem has no moves.
        """
        raise ProblemError(f"{self.name} has no moves to search: train a policy instead.")

    def compiler_search(self) -> object | None:
        """Return the search that the compiler runs by itself, if it can.

        A :class:`nestor.tune.compiler_search.CompilerSearch`; None: by :meth:`moves`.
        """
        return None

    def policy(self, name_or_path: str) -> NamedPolicy:
        """Return the policy that a user means: ``default``, a built-in, or a file.

        :raises PolicyError: if there is none, or it was made for another problem.
        """
        try:
            named = named_policy(name_or_path, self.builtins)
        except PolicyError:
            from nestor.problem.registry import owner_of  # It imports this module.

            owner = owner_of(name_or_path)
            if owner is None:
                raise
            raise PolicyError(
                f"The policy {name_or_path} is for {owner}, not for {self.name}: name that problem,"
                " or another policy."
            ) from None
        if named.policy is not None:
            named.policy.check_problem(self.name, name_or_path)
        return named

    def reads_summary(self, policy: Policy | None) -> bool:
        """Tell whether what ``policy`` (None: the default) decides depends on a summary."""
        own = set(self.features.program) - set(self.features.unit)
        return policy is not None and not own.isdisjoint(policy.features)

    def summaries(
        self,
        pool: Pool,
        programs: Sequence[Program],
        modes: Sequence[str],
        progress: Progress = silent,
    ) -> Mapping[tuple[str, str], str]:
        """Return summaries for policies that read them, by the program's name and the link mode."""
        return {}

    def ways(self, plugin: Plugin, policy: NamedPolicy, folder: Path) -> Sequence[Way]:
        """Return ways to compile that must give the same object; the first is the reference.

        :param policy: for the default heuristic, stock is the reference.
        :param folder: takes logs and other files; there is one for each unit.
        """
        return ()

    def estimating(self, pool: Pool, model: Path) -> tuple[Pool, float]:
        """Return a pool that predicts scores by a model file, and its part of a compile's price.

        :raises ProblemError: if this problem has no such model.
        """
        raise ProblemError(f"{self.name} has no model of its score: leave out --estimate.")

    def environment(self, **settings: Any) -> Any:
        """Return a Gymnasium environment in which an episode is one compile.

        :raises ProblemError: if this problem has none.
        """
        raise ProblemError(f"{self.name} has no environment.")

    def read_log(self, path: Path) -> Trajectory:
        """Read a trajectory that a compiler wrote to a file.

        :raises ProblemError: if this problem's compiler writes none.
        """
        raise ProblemError(f"{self.name} is not logged to a file.")

    def word(self, answer: Any) -> str:
        """Return an answer as people read it."""
        return str(answer)

    def describe(self, trajectory: Trajectory, row: int) -> dict[str, Any]:
        """Return one decision as ``nestor log`` shows it, by column."""
        default, answer = trajectory.default[row].item(), trajectory.answer[row].item()
        logit = float(trajectory.decisions["logit"][row])
        return {"question": row, "default": default, "answer": answer, "logit": logit}
