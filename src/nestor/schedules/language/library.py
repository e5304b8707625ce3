"""Libraries of schedules: folders or files of MLIR with named sequences."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nestor.errors import meant
from nestor.files import read_regular_text
from nestor.schedules.language.decisions import Decision, decisions_in
from nestor.schedules.language.text import (
    Place,
    ScheduleError,
    blanked,
    closing,
    line_of,
)

PACKAGED: Final = Path(__file__).resolve().parent.parent / "library"
"""The library that comes with Nestor."""

PIPELINES: Final = "pipelines"
"""The folder, within a library, of the sequences that lower a whole module."""

_SEQUENCE: Final = re.compile(
    r"transform\.named_sequence\s+(?P<private>private\s+)?@(?P<name>[\w.$-]+)"
)
_INCLUDE: Final = re.compile(r"transform\.include\s+@([\w.$-]+)")
_ALIAS: Final = re.compile(r"^\s*([#!][\w.$-]+)\s*=\s*(.+)$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"(?:%[\w.$-]+\s*:\s*)?(![\w.]+(?:<[^>]*>)?)\s*(\{[^}]*\})?")


@dataclass(frozen=True)
class Include:
    """One ``transform.include``."""

    callee: str
    place: Place
    signature: tuple[tuple[str, ...], tuple[str, ...]]
    """Types of operands and results, as the include states them."""


@dataclass(frozen=True)
class Sequence:
    """One named sequence with a body."""

    name: str
    text: str
    """From ``transform.named_sequence`` to the closing brace."""
    place: Place
    about: str
    """The comment above it."""
    signature: tuple[tuple[str, ...], tuple[str, ...]]
    """Types of arguments and results."""
    includes: tuple[Include, ...]
    decisions: tuple[Decision, ...]
    pipeline: bool
    """Whether it lowers a whole module."""


@dataclass(frozen=True)
class Declaration:
    """A named sequence that another file defines."""

    name: str
    place: Place
    signature: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Library:
    """The named sequences of some files."""

    sequences: Mapping[str, Sequence]
    declarations: tuple[Declaration, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)

    def pipelines(self) -> list[Sequence]:
        """Return the sequences that lower a whole module, by name."""
        return sorted((s for s in self.sequences.values() if s.pipeline), key=lambda s: s.name)

    def find(self, name: str) -> Sequence:
        """Return a sequence.

        :raises ScheduleError: if there is none of that name.
        """
        if name not in self.sequences:
            there = ", ".join(s.name for s in self.pipelines()) or "none"
            near = meant(name, self.sequences)
            raise ScheduleError(f"There is no schedule '{name}'{near}; there are {there}.")
        return self.sequences[name]

    def closure(self, name: str) -> list[Sequence]:
        """Return a sequence and all that it includes, each once, the included ones first.

        :raises ScheduleError: if one is missing or includes itself.
        """
        order: list[Sequence] = []

        def visit(sequence: Sequence, above: tuple[str, ...]) -> None:
            if sequence.name in above:
                circle = " → ".join((*above[above.index(sequence.name) :], sequence.name))
                raise ScheduleError(f"{sequence.place}: the schedule includes itself: {circle}.")
            if sequence in order:
                return
            for include in sequence.includes:
                if include.callee not in self.sequences:
                    raise ScheduleError(
                        f"{include.place}: there is no sequence '{include.callee}' to include"
                        f"{meant(include.callee, self.sequences)}."
                    )
                visit(self.sequences[include.callee], (*above, sequence.name))
            order.append(sequence)

        visit(self.find(name), ())
        return order


def packaged() -> Library:
    """Return the library that comes with Nestor."""
    return load([PACKAGED])


def load(paths: Iterable[Path]) -> Library:
    """Read the files, and all ``.mlir`` files of the folders, in ``paths``.

    A sequence of a later path stands in place of one of the same name of an earlier path.

    :raises ScheduleError: if a text cannot be taken apart, or one path defines a name twice or
        nothing.
    :raises ReadError: if a file cannot be read.
    """
    sequences: dict[str, Sequence] = {}
    declarations: list[Declaration] = []
    aliases: dict[str, str] = {}
    for path in paths:
        own: dict[str, Sequence] = {}
        folder = path.is_dir()
        for file in sorted(path.glob("**/*.mlir")) if folder else [path]:
            text = read_regular_text(file, "a schedule")
            _check_brackets(text, file)
            pipeline = file.parent.name == PIPELINES if folder else None
            for item in _items(text, file, pipeline):
                if isinstance(item, Declaration):
                    declarations.append(item)
                elif item.name in own:
                    raise ScheduleError(
                        f"{item.place}: '{item.name}' is defined at {own[item.name].place} as well."
                    )
                else:
                    own[item.name] = item
            for match in _ALIAS.finditer(text):
                if aliases.setdefault(match[1], match[2].strip()) != match[2].strip():
                    place = Place(file, line_of(text, match.start()))
                    raise ScheduleError(f"{place}: another file has another {match[1]}.")
        if not own:
            raise ScheduleError(
                f"{path} defines no schedule: a schedule is a transform.named_sequence with a body."
            )
        sequences |= own
    return Library(sequences, tuple(declarations), aliases)


def _check_brackets(text: str, file: Path) -> None:
    """Refuse a text with a bracket that does not close, which no sequence need have."""
    code = blanked(text)
    at = code.find("{")
    while at >= 0:
        at = code.find("{", closing(code, at, Place(file, line_of(text, at))))


def _items(text: str, file: Path, pipeline: bool | None) -> Iterator[Sequence | Declaration]:
    """Yield the sequences and declarations of a file.

    :param pipeline: whether they are pipelines; None: those with one argument and no result are.
    """
    code = blanked(text)
    for match in _SEQUENCE.finditer(code):
        place = Place(file, line_of(text, match.start()))
        opening = code.index("(", match.end()) if "(" in code[match.end() :] else -1
        if opening < 0:
            raise ScheduleError(f"{place}: the sequence '{match['name']}' has no arguments.")
        end = closing(code, opening, place)
        arguments = _types(text[opening + 1 : end])
        results, end = _results(code, text, end, place)
        signature = (arguments, results)
        body = re.compile(r"\s*(?:attributes\s*(?=\{))?").match(code, end)
        start = body.end() if body else end
        if body and "attributes" in body[0]:
            start = code.find("{", closing(code, start, place) + 1)
        if match["private"] and code[start : start + 1] != "{":
            yield Declaration(match["name"], place, signature)
            continue
        if code[start : start + 1] != "{":
            raise ScheduleError(f"{place}: the sequence '{match['name']}' has no body.")
        stop = closing(code, start, place) + 1
        whole = text[match.start() : stop]
        stage = pipeline is not False and len(arguments) == 1 and not results
        yield Sequence(
            name=match["name"],
            text=whole,
            place=place,
            about=_comment_above(text, match.start()),
            signature=signature,
            includes=tuple(_includes(whole, place)),
            decisions=tuple(decisions_in(whole, place)),
            pipeline=stage,
        )


def _results(code: str, text: str, end: int, place: Place) -> tuple[tuple[str, ...], int]:
    """Return the types of the results behind the bracket at ``end``, and where they end."""
    arrow = re.compile(r"\s*->\s*").match(code, end + 1)
    if arrow is None:
        return (), end + 1
    if code[arrow.end() : arrow.end() + 1] == "(":
        stop = closing(code, arrow.end(), place)
        return _types(text[arrow.end() + 1 : stop]), stop + 1
    one = _ARGUMENT.match(text, arrow.end())
    if one is None:
        raise ScheduleError(f"{place}: the type of the result cannot be read.")
    # Attributes of a result are in braces only within brackets.
    return (_plain(one[1]),), one.end(1)


def _types(text: str) -> tuple[str, ...]:
    return tuple(_plain(match[1]) for match in _ARGUMENT.finditer(text))


def _plain(kind: str) -> str:
    return re.sub(r"\s+", "", kind)


def _includes(text: str, place: Place) -> Iterator[Include]:
    code = blanked(text)
    for match in _INCLUDE.finditer(code):
        where = Place(place.file, place.line + line_of(text, match.start()) - 1)
        types: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        colon = code.find(":", code.find("(%", match.end()))
        if colon > 0:
            opening = code.find("(", colon)
            if opening < 0:
                raise ScheduleError(f"{where}: the types of this include cannot be read.")
            end = closing(code, opening, where)
            types = (_types(text[opening + 1 : end]), _results(code, text, end, where)[0])
        yield Include(match[1], where, types)


def _comment_above(text: str, index: int) -> str:
    """Return the lines of comment directly above a place, joined."""
    found: list[str] = []
    for line in reversed(text[:index].splitlines()[:-1] if text[:index].strip() else []):
        if not line.strip().startswith("//"):
            break
        found.insert(0, line.strip().removeprefix("//").strip())
    return " ".join(found)
