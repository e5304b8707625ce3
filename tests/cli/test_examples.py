"""The examples in the help of every command are command lines that it takes."""

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from nestor.cli.commands import COMMANDS, load
from nestor.cli.make import make
from nestor.cli.make import words as make_words
from nestor.cli.options import parse
from nestor.cli.use import use
from nestor.cli.use import words as use_words

_INNER: Final = re.compile(r"\$\((nestor [^)]*)\)")
_START: Final = re.compile(r"(?:^|[\s;|&])nestor +(?=[a-z])")
_END: Final = {"|", "&&", ";"}


def examples(text: str) -> list[str]:
    """Return the lines below "Examples:", one a command line, without what explains them."""
    _, found, below = text.partition("xamples:\n")
    assert found
    joined = re.sub(r"\\\n\s*", "", inspect.cleandoc(below).partition("\n\n")[0])
    return [re.split(r"\s{4,}", line)[0] for line in joined.splitlines() if line]


def calls(line: str) -> Iterator[list[str]]:
    """Yield the words after each ``nestor`` of a command line."""
    for inner in _INNER.findall(line):
        yield from calls(inner)
    line = _INNER.sub("x", line)
    for start in _START.finditer(line):
        words = shlex.split(line[start.end() :])
        ends = (number for number, word in enumerate(words) if word in _END)
        yield words[: next(ends, len(words))]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_parse(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = 0
    for line in examples(load(COMMANDS[name]).__doc__ or ""):
        for words in calls(line):
            command = next((c for c in (" ".join(words[:2]), words[0]) if c in COMMANDS), None)
            own += command == name
            if command is not None:
                parse(load(COMMANDS[command]), command, words[len(command.split()) :])
    assert own


@pytest.mark.parametrize("text", [make.HELP, use._FLAGS_HELP, use._CLANG_HELP])
def test_the_examples_around_compilers_parse(text: str) -> None:
    found = [w for line in examples(text.replace("{name}", "clang")) for w in calls(line)]
    assert len(found) >= 5
    for command, *words in found:
        if command == "make":
            make_words.split(words)
        elif command == "flags":
            use_words.split(command, words)
        elif command in ("clang", "clang++"):
            use_words.split_around(command, words)
        else:
            pytest.fail(f"no such command: {command}")
