"""The summary of a program, for the compiles of its modules: what one module cannot see.

Whether a call is the only one, whether other objects hold copies of the callee, how large it
became: a compiler that sees one module does not know, and the objects of the stock build do
(``object_uses``). The summary is a text file (docs/reference/formats.md) that the plugin
reads with ``-nestor-program``; policies see it as the features ``program_…``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, get_args

from nestor.build.function_ids import local_id, name_id
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.files import ReadError, read_regular_text, write_atomically
from nestor.text_file import entries, header_of

_HEADER: Final = "nestor-program 1"
_LINK_LINES: Final[Mapping[str, LinkMode]] = {f"link {mode}": mode for mode in get_args(LinkMode)}
_LARGEST_COUNT: Final = 1 << 53
"""Exact as a policy's f64 input."""


_FUNCTION: Final = re.compile(
    r"function ([0-9a-f]{16}) (\d{1,16}) (\d{1,16}) (\d{1,16}) (\d{1,16}) ([01])",
    re.ASCII | re.IGNORECASE,
)


class SummaryError(NestorError):
    """A file that holds no summary; the text says where it is wrong and what to do."""


@dataclass(frozen=True)
class FunctionUse:
    """What the objects of a program say of one function."""

    copies: int
    """Objects that define it; the linker keeps one."""
    bytes: int
    """Code, unwind entry and exception table of its largest copy."""
    calls: int
    """Direct calls in all objects."""
    users: int
    """Objects that refer to it and do not define it."""
    address_taken: bool
    """Something other than a call refers to it."""


@dataclass(frozen=True)
class ProgramSummary:
    """All functions that a program's objects define, by :func:`function_id`."""

    link: LinkMode
    functions: Mapping[int, FunctionUse]

    def to_text(self) -> str:
        """Return the file's text; the same summary gives the same bytes."""
        lines = [_HEADER, f"link {self.link}"]
        for key, use in sorted(self.functions.items()):
            counts = f"{use.copies} {use.bytes} {use.calls} {use.users} {use.address_taken:d}"
            lines.append(f"function {key:016x} {counts}")
        return "\n".join(lines) + "\n"

    def save(self, path: Path) -> None:
        """Write the file at once or not at all."""
        write_atomically(path, self.to_text())


def load(path: Path) -> ProgramSummary:
    """Read the file ``path``, as strictly as the plugin does.

    :raises SummaryError: if it cannot be read or holds something else.
    """
    try:
        text = read_regular_text(path, "a summary", remedy="'nestor summary' makes such a file")
    except ReadError as error:
        raise SummaryError(str(error)) from None
    try:
        return parse(text)
    except SummaryError as error:
        raise SummaryError(f"{path}: {error} Make it anew with 'nestor summary'.") from None


def parse(text: str) -> ProgramSummary:
    """Read a summary.

    :raises SummaryError: with the line's number.
    """
    header = header_of(text)
    if header != _HEADER:
        same_name = header.split(" ")[0] == _HEADER.split(" ")[0]
        what = "a summary of another format" if same_name else "no summary"
        raise SummaryError(f"This is {what}: the first line is not '{_HEADER}'.")
    link: LinkMode | None = None
    functions: dict[int, FunctionUse] = {}
    for number, words, _ in islice(entries(text), 1, None):
        if link is None and words in _LINK_LINES:
            link = _LINK_LINES[words]
            continue
        key, use = _function(number, words)
        if key in functions:
            raise SummaryError(f"Line {number} gives the function {key:016x} again.")
        functions[key] = use
    if link is None:
        raise SummaryError("There is no line 'link gc|no-gc|icf'.")
    return ProgramSummary(link, functions)


def function_id(name: str, source_file: str | None = None) -> int:
    """Return the id under which the plugin knows a function (``functionID``).

    :param source_file: for a local function, its module's source file, with or without folders.
    """
    return name_id(name) if source_file is None else local_id(name, module_id(source_file))


def module_id(source_file: str) -> int:
    """Return the id under which the plugin knows a module (``moduleID``)."""
    return name_id(source_file.rpartition("/")[2])


def _function(number: int, words: str) -> tuple[int, FunctionUse]:
    found = _FUNCTION.fullmatch(words)
    counts = [int(digits) for digits in found.groups()[1:]] if found else []
    if found is None or max(counts) > _LARGEST_COUNT:
        raise SummaryError(
            f"Line {number} is neither 'function <16 hexadecimal digits> <copies> <bytes> <calls>"
            " <users> 0|1' nor the one 'link gc|no-gc|icf'."
        )
    copies, size, calls, users, taken = counts
    return int(found[1], 16), FunctionUse(copies, size, calls, users, bool(taken))
