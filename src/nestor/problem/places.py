"""Where in the source decisions stand, from LLVM's own optimisation remarks.

LLVM writes a remark for each call that a pass looks at, and one for each function's frame, with
the place in the source if the module has debug information. *Place* is ``FILE:LINE:COLUMN`` of a
call, and ``FILE:LINE`` of a function's definition.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nestor.problem.trajectory import LogError

FRAME: Final = "prologepilog"
"""The pass that writes a remark for every function that becomes code."""

_REMARK = re.compile(r"^--- !(\w+)\n(.*?)^\.\.\.$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^(Pass|Name|Function|DebugLoc): +", re.MULTILINE)
_ARGUMENT = re.compile(r"^  - (\w+): +", re.MULTILINE)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\"")
# LLVM quotes no name for a blank or a comma in it, and goes to the next line after column 70.
_PLACE = re.compile(rf"\{{ File: ({_QUOTED.pattern}|.*?),\s+Line: (\d+),\s+Column: (\d+) \}}")
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)")


@dataclass(frozen=True)
class CompilerRemark:
    """One remark of LLVM's ``-fsave-optimization-record``."""

    kind: str
    """``Passed``, ``Missed``, ``Analysis`` and so on."""
    pass_name: str
    name: str
    """What the pass calls it."""
    function: str
    """The function's symbol."""
    file: str
    """Empty if the module has no debug information for it."""
    line: int
    column: int
    arguments: tuple[tuple[str, str], ...]
    """Names and texts; together the texts are the message."""
    defined: Mapping[str, str] = field(compare=False)
    """``FILE:LINE`` of the functions among the arguments, by symbol."""

    @property
    def place(self) -> str:
        """``FILE:LINE:COLUMN``; empty if it is not recorded."""
        return f"{self.file}:{self.line}:{self.column}" if self.file and self.line else ""

    @property
    def message(self) -> str:
        """The remark as a sentence."""
        return "".join(text for _, text in self.arguments)

    def argument(self, name: str) -> str:
        """Return the first argument of this name; empty if there is none."""
        return next((text for key, text in self.arguments if key == name), "")


@dataclass(frozen=True)
class Places:
    """The places of one compile."""

    questions: tuple[str, ...]
    """Of each question of the trajectory, ``[questions]``; empty texts where there is none."""
    functions: Mapping[str, str]
    """Of the definitions, by symbol."""


NO_PLACES: Final = Places((), {})
"""Of a compile that was not asked for them."""


def remark_flags(file: Path, *passes: str) -> list[str]:
    """Return the options with which ``clang -cc1`` writes the remarks of ``passes`` to ``file``."""
    names = "|".join(f"^{name}$" for name in passes)
    return [
        "-opt-record-file", str(file), "-opt-record-passes", names, "-opt-record-format", "yaml"
    ]  # fmt: skip


def read_remarks(file: Path) -> list[CompilerRemark]:
    """Return the remarks in ``file``, in the order in which the compiler wrote them.

    :raises LogError: if the file cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise LogError(f"The remarks cannot be read: {error.strerror}.") from None
    return [_remark(found[1], found[2]) for found in _REMARK.finditer(text)]


def function_places(remarks: list[CompilerRemark]) -> dict[str, str]:
    """Return where functions are defined, by symbol."""
    found: dict[str, str] = {}
    for remark in remarks:
        found |= remark.defined
        if remark.pass_name == FRAME and remark.place:
            found[remark.function] = f"{remark.file}:{remark.line}"
    return found


def _remark(kind: str, body: str) -> CompilerRemark:
    head, _, rest = body.partition("\nArgs:")
    fields = {field[1]: (head, field.end()) for field in _FIELD.finditer(head)}
    place = _PLACE.match(*fields["DebugLoc"]) if "DebugLoc" in fields else None
    arguments: list[tuple[str, str]] = []
    defined: dict[str, str] = {}
    for name, text, own in _arguments(rest):
        arguments.append((name, text))
        if own and own[2] != "0":
            defined[text] = f"{_file(own[1])}:{own[2]}"
    pass_name, name, function = (
        _value(*fields[key]) if key in fields else "" for key in ("Pass", "Name", "Function")
    )
    return CompilerRemark(
        kind,
        pass_name,
        name,
        function,
        _file(place[1]) if place else "",
        int(place[2]) if place else 0,
        int(place[3]) if place else 0,
        tuple(arguments),
        defined,
    )


def _arguments(text: str) -> Iterator[tuple[str, str, re.Match[str] | None]]:
    """Yield name, text and place of each argument."""
    starts = list(_ARGUMENT.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=True):
        place = text.find("\n    DebugLoc:", start.end(), end)
        own = _PLACE.search(text, place, end) if place >= 0 else None
        yield start[1], _value(text, start.end()), own


def _value(text: str, start: int) -> str:
    """Return the YAML scalar that begins at ``start``."""
    quoted = _QUOTED.match(text, start)
    if quoted is not None:
        return _unquoted(quoted[0])
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)].strip()


def _unquoted(raw: str) -> str:
    if raw.startswith("'"):
        return raw[1:-1].replace("''", "'")
    if raw.startswith('"'):
        return _ESCAPE.sub(_escaped, raw[1:-1])
    return raw


def _escaped(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) == 3:
        return chr(int(code[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}.get(code, code)


def _file(raw: str) -> str:
    return os.path.normpath(_unquoted(raw))
