"""Overrides: answers that stand above a policy's, as a reviewable text file.

A *key* says which questions an override answers: one, a group of them, or all of a unit. Keys can
be hashed and sorted, and ``str`` gives the words that stand for one in the file. What keys there
are, and what an answer is, is the problem's own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from nestor.errors import NestorError
from nestor.files import read_regular_text

if TYPE_CHECKING:  # commands that only check a file start without NumPy
    from nestor.compiler.toolchain import Toolchain
    from nestor.problem.trajectory import Trajectory

Key = Any
Answer = Any
Overrides = Mapping[Key, Answer]


MOST_BYTES: Final = 16 << 20
"""Of a file of overrides: more than half a million lines. Every compile reads them."""


class OverridesError(NestorError):
    """A file that holds no overrides; the text says where it is wrong."""


def read_overrides(path: Path) -> str:
    """Return the text of a file of overrides, whatever it says.

    :raises ReadError: if it is no regular file, or larger than a compiler would read.
    """
    return read_regular_text(path, "overrides", limit=MOST_BYTES)


class QuestionKeys(Protocol):
    """The questions that one compile asked.

    A compile depends on the answers to these and on nothing else.
    """

    def among(self, index: Any) -> object:
        """Return the overrides of ``index`` that answer one of these questions.

        What two indices give compares equal exactly if the compile gives the same under both.
        """

    def answered_alike(self, index: Any) -> bool:
        """Tell whether the overrides of ``index`` surely give every question its answer of then.

        Then the compile gives the same under them, though they may be others.
        """

    def matched_by(self, key: Key) -> bool:
        """Tell whether an override under ``key`` is about one of these questions."""


@dataclass(frozen=True)
class Deviation:
    """Decisions of one compile that left the default together."""

    replay: Overrides
    """Under the default heuristic these give the decisions their answers again, in the unit of
    the compile and in no other."""
    revert: Overrides
    """Under the policy these leave the decisions to the default."""
    about: str
    """In the names of the source."""


class OverrideFormat(Protocol):
    """The overrides of one problem."""

    def deviations(self, toolchain: "Toolchain", trajectory: "Trajectory") -> Sequence[Deviation]:
        """Return the decisions of a compile that left the default, in the order of the questions.

        All of them, replayed in the same unit under the default, give the same object.

        :param trajectory: with names.
        """

    def to_text(
        self, overrides: Overrides, comments: Mapping[Key, str] | None = None, title: str = ""
    ) -> str:
        """Return the file's text: ``title`` as a comment, then a line per override, sorted."""

    def parse(self, text: str) -> dict[Key, Answer]:
        """Read the text of a file.

        :raises OverridesError: with the line's number, as the compiler would.
        """

    def parse_comments(self, text: str) -> dict[Key, str]:
        """Return the comments behind the overrides in the text of a file; it must be sound."""

    def describe(
        self, toolchain: "Toolchain", trajectories: "Iterable[Trajectory]"
    ) -> Mapping[Key, str]:
        """Return the keys that answer something in these compiles, and what each is about.

        :param trajectories: with names; the words are those of a search's comments.
        """

    def key(self, words: str) -> Key:
        """Return the key of which ``str`` gives ``words``.

        :raises OverridesError: if there is none.
        """

    def replaced(self, text: str | None, others: Overrides) -> str:
        """Return the text of a file with ``others`` in the place of all lines about the same.

        Added to them they might change nothing: a line may be stronger than another about the same.

        :param text: of the file; None for one without lines.
        """

    def lines_about(self, text: str | None, others: Overrides) -> tuple[str, ...]:
        """Return the lines of a file that :meth:`replaced` takes away."""

    def index(self, overrides: Overrides) -> Any:
        """Look through ``overrides`` once, for comparing many compiles with them."""

    def question_keys(self, trajectories: "Iterable[Trajectory]") -> QuestionKeys:
        """Return what the compiles with these trajectories asked."""

    def unit(self, trajectory: "Trajectory") -> Key:
        """Return the key of all questions of the unit with this trajectory."""

    @property
    def stock(self) -> Answer:
        """Answer a unit's key with this to leave all its questions to the default heuristic."""
