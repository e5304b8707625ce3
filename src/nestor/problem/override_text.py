"""The text of overrides: a header, then a line for each, with a comment behind a hash sign.

The syntax is that of :mod:`nestor.text_file`. What a line says is the problem's own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar

from nestor.problem.overrides import MOST_BYTES, OverridesError
from nestor.text_file import entries, header_of

Key = TypeVar("Key")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class OverrideText(Generic[Key, Answer]):
    """Reads and writes one problem's files of overrides."""

    header: str
    """The first line: a name and a version."""
    expected: str
    """What a line may be, for errors."""
    read: Callable[[str], tuple[Key, Answer] | None]
    """Return the key and the answer of a line's words, a blank between each; None if malformed."""
    answer: Callable[[Key, Answer], str]
    """Return the words of an answer, which follow those of its key."""
    any_answer: Callable[[str], str]
    """Return an answer that may follow these words of a key."""

    def to_text(
        self,
        overrides: Mapping[Key, Answer],
        comments: Mapping[Key, str] | None = None,
        title: str = "",
    ) -> str:
        """Return the file's text: ``title`` as a comment, then a line per override, sorted."""
        lines = [self.header, *(f"# {line}" for line in title.splitlines())]
        keys: list[Any] = list(overrides)
        for key in sorted(keys):
            comment = (comments or {}).get(key, "").replace("\n", " ")
            words = f"{key} {self.answer(key, overrides[key])}"
            lines.append(words + (f"  # {comment}" if comment else ""))
        return "\n".join(lines) + "\n"

    def parse(self, text: str) -> dict[Key, Answer]:
        """Read overrides.

        :raises OverridesError: with the line's number, as the plugin would.
        """
        if len(text.encode(errors="replace")) > MOST_BYTES:
            raise OverridesError(
                f"These are more than the {MOST_BYTES >> 20} MiB that a compiler reads."
            )
        found: dict[Key, Answer] = {}
        for number, key, answer, _ in self._entries(text):
            if key in found:
                raise OverridesError(f"Line {number} of the overrides: {key} is given twice.")
            found[key] = answer
        return found

    def parse_comments(self, text: str) -> dict[Key, str]:
        """Return what stands behind the hash sign in the lines of ``text``, which must be sound.

        Searches write there what a line is about, in the names of the source.
        """
        return {key: comment for _, key, _, comment in self._entries(text) if comment}

    def parse_key(self, words: str) -> Key:
        """Return the key of which ``str`` gives ``words``.

        :raises OverridesError: if there is none.
        """
        keys = list(self.parse(f"{self.header}\n{words} {self.any_answer(words)}"))
        if len(keys) != 1:
            raise OverridesError(f"'{words}' is no key of an override.")
        return keys[0]

    def _entries(self, text: str) -> Iterator[tuple[int, Key, Answer, str]]:
        """Yield number, key, answer and comment of every line that has a key."""
        if header_of(text) != self.header:
            raise OverridesError(f"These are no overrides: the first line is not '{self.header}'.")
        for number, words, comment in islice(entries(text), 1, None):
            entry = self.read(words)
            if entry is None:
                raise OverridesError(f"Line {number} of the overrides is not {self.expected}.")
            yield number, *entry, comment


class TextOverrides:
    """What :class:`nestor.problem.overrides.OverrideFormat` says of the text of a file."""

    text: ClassVar[OverrideText[Any, Any]]

    def to_text(
        self,
        overrides: Mapping[Any, Any],
        comments: Mapping[Any, str] | None = None,
        title: str = "",
    ) -> str:
        """Return the file's text: ``title`` as a comment, then a line per override, sorted."""
        return self.text.to_text(overrides, comments, title)

    def parse(self, text: str) -> dict[Any, Any]:
        """Read the text of a file.

        :raises OverridesError: with the line's number, as the plugin would.
        """
        return self.text.parse(text)

    def parse_comments(self, text: str) -> dict[Any, str]:
        """Return the comments behind the overrides in the text of a file."""
        return self.text.parse_comments(text)

    def replaced(self, text: str | None, others: Mapping[Any, Any]) -> str:
        """Return the text of a file with ``others`` in the place of all lines about the same."""
        overrides = {} if text is None else self.parse(text)
        same = _about(overrides, others)
        kept = {key: answer for key, answer in overrides.items() if key not in same}
        return self.to_text({**kept, **others})

    def lines_about(self, text: str | None, others: Mapping[Any, Any]) -> tuple[str, ...]:
        """Return the lines of a file that :meth:`replaced` takes away."""
        same = _about({} if text is None else self.parse(text), others)
        return tuple(self.to_text(same).splitlines()[1:])

    def key(self, words: str) -> Any:
        """Return the key that ``words`` name.

        :raises OverridesError: if there is none.
        """
        return self.text.parse_key(words)


def _about(overrides: Mapping[Any, Any], others: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return those of ``overrides`` that are about the same as one of ``others``.

    A key's number is what it is about: a call, or a function with all its questions.
    """
    numbers = {key.number for key in others}
    return {key: answer for key, answer in overrides.items() if key.number in numbers}
