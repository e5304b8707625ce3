"""Build one program again and again under changing overrides, for searches and guards.

A compile depends on the answers to the questions that it asked and on nothing else, so it is run
again only if an override of such a question has changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from nestor.build.calls import Calls
from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import Overrides, QuestionKeys
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class Priced:
    """A column with a limit, of which the functions' part of the score holds some at a price."""

    column: str
    price: float
    """Of the score, for one of the column."""
    functions: Mapping[int, float]
    """What of the column each function takes, by id."""


@dataclass(frozen=True)
class ProgramBuild:
    """A program under some overrides, in every mode of its builder."""

    overrides: Overrides
    score: str
    """The column that is made small."""
    columns: Mapping[str, Mapping[str, float]]
    """What the program comes to, by mode and column."""
    functions: Mapping[str, Mapping[int, float]]
    """What of the score each function takes, by mode and function id."""
    trajectories: Mapping[str, Trajectory]
    """By back end: the module, or a part of the program that is optimised by itself."""
    modules: Mapping[str, tuple[str, ...]]
    """Which of the program's modules each back end optimises."""
    objects: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each module's object; empty where modules have none."""
    calls: Mapping[str, Calls] = field(default_factory=dict)
    """By mode: what a run called, where the score comes from a run."""
    priced: Mapping[str, Priced] = field(default_factory=dict)
    """By mode, where another column than the score has a limit and a price."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """By mode: SHA-256 of what the run printed and left, likewise."""
    scored: Callable[[str], Mapping[str, float]] = field(
        default=lambda mode: {}, repr=False, compare=False
    )
    """What of the score in a mode is each back end's; worked out when it is called."""

    @property
    def total(self) -> float:
        """The score, the mean over the modes: what a search makes small."""
        return self.mean(self.score)

    def mean(self, column: str) -> float:
        """Return the mean of a column over the modes."""
        return sum(columns[column] for columns in self.columns.values()) / len(self.columns)

    def scores(self) -> dict[str, float]:
        """Return the score by mode."""
        return {mode: columns[self.score] for mode, columns in self.columns.items()}

    def other_outputs(self, stock: "ProgramBuild") -> tuple[str, ...]:
        """Return the modes in which a run printed or left something else than that of ``stock``."""
        return tuple(
            mode for mode, left in self.outputs.items() if stock.outputs.get(mode, left) != left
        )


class ProgramBuilder(Protocol):
    """Builds of one program under one policy."""

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes of every build."""

    @property
    def policy(self) -> NamedPolicy:
        """What answers where no override does."""

    compiled: float
    """Units compiled so far, or what counts like them; a search that is resumed sets it back."""
    rollouts: int
    """Compilers ever run for their decisions."""
    cpu_seconds: float
    """What all of them took."""

    @property
    def compiles(self) -> float:
        """Whole-program compiles so far: units compiled over the program's units."""

    def build(
        self,
        overrides: Overrides,
        progress: Progress = silent,
        modes: Sequence[str] | None = None,
    ) -> ProgramBuild:
        """Build under ``overrides`` what is not there yet.

        :param modes: put the program together in these modes instead of the builder's.
        :raises BuildError: if something cannot be compiled or linked.
        """

    def keep_only(self, overrides: Overrides) -> None:
        """Forget what a build under ``overrides`` does not need."""

    def keep_on_disk(self, folder: Path) -> None:
        """Write to ``folder`` what :meth:`keep_only` has left, so that it need not be built again.

        :raises OSError: if it cannot be written.
        """

    def take_from_disk(self, folder: Path) -> None:
        """Take back what is in ``folder``, which the same builder of another process wrote there.

        What is absent or damaged is compiled when it is needed.
        """

    def close(self) -> None:
        """Forget everything; the builder may not be used any more."""


@dataclass(frozen=True)
class Kept:
    """Something that was compiled, with what it asked."""

    questions: QuestionKeys
    answers: object
    """The overrides among the questions it asked."""


AnyKept = TypeVar("AnyKept", bound=Kept)


def find_kept(compiled: Iterable[AnyKept], index: Any) -> AnyKept | None:
    """Return what compiling again under the overrides of ``index`` would give, if it is there."""
    for kept in compiled:
        if kept.answers == kept.questions.among(index) or kept.questions.answered_alike(index):
            return kept
    return None
