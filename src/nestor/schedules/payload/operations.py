"""Read MLIR in its generic form, as ``mlir-opt --mlir-print-op-generic`` prints it.

That form has one syntax for all operations, so that a payload can be looked through and evaluated
without knowing any dialect's own syntax.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nestor.schedules.language.text import ScheduleError

_NAME: Final = re.compile(r'"([\w.]+)"\s*\(')
_RESULTS: Final = re.compile(r"%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*\s*=\s*")
_BLOCK: Final = re.compile(r"\^\w+")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_OPEN: Final = "([{<"
_CLOSE: Final = ")]}>"


@dataclass(frozen=True)
class Operation:
    """One operation."""

    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    attributes: dict[str, str]
    """Properties and other attributes, as text."""
    operand_types: tuple[str, ...]
    result_types: tuple[str, ...]
    regions: tuple[tuple["Block", ...], ...] = ()

    def walk(self) -> Iterator["Operation"]:
        """Yield this operation and all within it, in order."""
        yield self
        for region in self.regions:
            for block in region:
                for operation in block.operations:
                    yield from operation.walk()


@dataclass
class Block:
    """The operations of a block."""

    arguments: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


def parse(text: str) -> Operation:
    """Return the operation, usually a module, that a text in generic form holds.

    :raises ScheduleError: if the text is in another form.
    """
    try:
        return _Parser(text).operation()
    except (IndexError, ValueError) as error:
        raise ScheduleError(f"The payload cannot be read in generic form: {error}.") from None


def split(text: str) -> list[str]:
    """Split a text at its outermost commas."""
    pieces, depth, start = [], 0, 0
    for index, character in _outside_strings(text):
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE and not (character == ">" and text[index - 1] in "-="):
            depth -= 1
        elif character == "," and depth == 0:
            pieces.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*pieces, last] if last else pieces


def dictionary(text: str) -> dict[str, str]:
    """Read ``a = 1, b`` as a dictionary of texts; a unit attribute has the text ``unit``."""
    found = {}
    for piece in split(text):
        key, equals, value = piece.partition("=")
        found[key.strip().strip('"')] = value.strip() if equals else "unit"
    return found


def _outside_strings(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    index = start
    while index < len(text):
        if text[index] == '"':  # constants may have megabytes in quotation marks
            quoted = _QUOTED.match(text, index)
            index = quoted.end() if quoted else len(text)
            continue
        yield index, text[index]
        index += 1


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def takes(self, word: str) -> bool:
        self.space()
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.takes(word):
            raise ValueError(f"'{word}' expected at '{self.text[self.at : self.at + 40]}'")

    def bracketed(self) -> str:
        """Return what is within the bracket that opens here, and go behind it."""
        self.space()
        depth = 0
        for index, character in _outside_strings(self.text, self.at):
            if character in _OPEN:
                depth += 1
            elif character in _CLOSE and not (character == ">" and self.text[index - 1] in "-="):
                depth -= 1
                if depth == 0:
                    inner = self.text[self.at + 1 : index]
                    self.at = index + 1
                    return inner
        raise ValueError("a bracket does not close")

    def operation(self) -> Operation:
        self.space()
        results: list[str] = []
        if match := _RESULTS.match(self.text, self.at):
            for piece in match[0].rstrip(" =").split(","):
                name, _, count = piece.strip().partition(":")
                results += [f"{name}#{i}" for i in range(int(count))] if count else [name]
            self.at = match.end()
        named = _NAME.match(self.text, self.at)
        if named is None:
            raise ValueError(f"an operation expected at '{self.text[self.at : self.at + 40]}'")
        self.at = named.end() - 1
        operands = split(self.bracketed())
        if self.takes("["):  # the successors of a branch
            self.at -= 1
            self.bracketed()
        attributes: dict[str, str] = {}
        if self.takes("<{"):
            self.at -= 1
            attributes |= dictionary(self.bracketed())
            self.expect(">")
        regions: list[tuple[Block, ...]] = []
        if self.takes("({"):
            self.at -= 1
            regions.append(self.region())
            while self.takes(","):
                regions.append(self.region())
            self.expect(")")
        self.space()
        if self.text[self.at] == "{":
            attributes |= dictionary(self.bracketed())
        self.expect(":")
        kinds = split(self.bracketed())
        self.expect("->")
        self.space()
        kind_of_results = split(self.bracketed()) if self.text[self.at] == "(" else [self.type()]
        if self.takes("loc("):
            self.at -= 1
            self.bracketed()
        return Operation(
            named[1],
            tuple(results),
            tuple(operands),
            attributes,
            tuple(kinds),
            tuple(kind_of_results),
            tuple(regions),
        )

    def region(self) -> tuple[Block, ...]:
        self.expect("{")
        blocks = [Block()]
        while not self.takes("}"):
            if label := _BLOCK.match(self.text, self.at):
                self.at = label.end()
                block = Block()
                if self.text[self.at] == "(":
                    for piece in split(self.bracketed()):
                        name, _, kind = piece.partition(":")
                        block.arguments.append(name.strip())
                        block.types.append(kind.strip())
                self.expect(":")
                blocks.append(block)
            else:
                blocks[-1].operations.append(self.operation())
            self.space()
        return tuple(b for b in blocks if b.operations or b.arguments)

    def type(self) -> str:
        """Return the one type that stands here without brackets."""
        self.space()
        start = self.at
        while self.at < len(self.text) and (
            self.text[self.at].isalnum() or self.text[self.at] in "!._"
        ):
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] == "<":
            self.bracketed()
        return self.text[start : self.at]
