"""Every ``nestor …`` and ``python -m benchmarks.…`` in the pages is a command with such options."""

import io
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from typing import Final

import pytest

from benchmarks import tables
from nestor.cli.commands import COMMANDS, PASS_THROUGH
from nestor.cli.main import main
from tests.docs.pages import PAGES, ROOT, code, name

_CALL: Final = re.compile(r"(?:^|[\s\"'(=`])nestor +((?:[a-z]|--help|--version)[^\n]*)")
_MODULE: Final = re.compile(r"python -m (benchmarks\.\w+)")
_END: Final = {"|", "||", "&&", ";", ">", ">>", "&", "then"}
_WRAPPERS: Final = ("cc", "c++")
"""All their words are the compiler's."""


def calls() -> Iterator[tuple[str, str]]:
    """Yield where a command line stands, and what follows ``nestor`` in it."""
    for page in PAGES:
        for line in code(page):
            yield from ((name(page), call) for call in _CALL.findall(line))
    for path in sorted(tables.RESULTS.glob("*.json")):
        commands = json.loads(path.read_text()).get("command", [])
        for line in [commands] if isinstance(commands, str) else commands:
            yield from ((f"results/{path.name}", call) for call in _CALL.findall(line))


def words(call: str) -> list[str]:
    """Split a command line, up to what is not its own: a comment, an operator, a bracket."""
    call = re.split(r"\)|  +#| #|\"(?= |$)", call)[0]
    try:
        split = shlex.split(call)
    except ValueError:  # a quotation mark around the whole command
        split = call.replace('"', " ").replace("'", " ").split()
    for number, word in enumerate(split):
        if word in _END or word.endswith(";"):
            return split[:number] + ([word.rstrip(";")] if word.endswith(";") else [])
    return split


@cache
def options(command: str) -> frozenset[str]:
    """Return the options that a command's help names."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.setenv("COLUMNS", "1000")  # long names of options are not broken
        with suppress(SystemExit):
            main([*command.split(), "--help"])
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][\w.-]*", out.getvalue()))


def _own(command: str, rest: list[str]) -> list[str]:
    """Return the options among the words, less what is the compiler's."""
    if command in _WRAPPERS:
        return []
    if "--" in rest:
        rest = rest[: rest.index("--")]
    return [word.partition("=")[0] for word in rest if word.startswith("--")]


@pytest.mark.parametrize(("place", "call"), sorted(set(calls())))
def test_a_command_exists_with_its_options(place: str, call: str) -> None:
    commands = COMMANDS | PASS_THROUGH
    split = words(call)
    groups = {command.split()[0] for command in commands if " " in command}
    if split[0] in ("--help", "--version"):
        return
    if split[0] in groups and (len(split) == 1 or not split[1][0].isalpha()):
        return  # the group as a whole
    if split[0] in groups and split[1].isupper():
        return
    command = next((c for c in (" ".join(split[:2]), split[0]) if c in commands), None)
    assert command, f"{place}: there is no command 'nestor {call}'"
    for option in _own(command, split[len(command.split()) :]):
        assert option in options(command), f"{place}: 'nestor {command}' has no option {option}"


def test_benchmarks_that_are_named_exist() -> None:
    for page in PAGES:
        for module in _MODULE.findall(page.read_text()):
            path = ROOT / module.replace(".", "/")
            files = path.with_suffix(".py"), path / "__main__.py"
            assert any(file.is_file() for file in files), f"{name(page)} names {module}"


def test_the_pages_show_commands() -> None:
    assert len(set(calls())) > 50  # the search itself finds them
