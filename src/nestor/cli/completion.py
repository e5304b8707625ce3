"""Completions for bash, zsh and fish: ``nestor --print-completion SHELL``.

shtab writes the scripts from the parser of the whole command line; this module adds the names that
an option may take besides files: built-in policies and problems.
"""

import argparse
from collections.abc import Iterable
from typing import Any, Final

import shtab

from nestor.build.build import builds_of
from nestor.cli.overview import command_line, subcommands, values
from nestor.problem.registry import find_problem, problem_names

_POLICIES: Final = ("policy", "init", "policies")
"""Options and arguments, by the last part of their names, that take a policy: a name or a file."""


def script(shell: str) -> str:
    """Return the completion script for one of :data:`nestor.cli.overview.SHELLS`."""
    top = command_line()
    problems = [find_problem(name) for name in problem_names()]
    policies = _unique(name for problem in problems for name in problem.builtins.names)
    builds = [build for problem in problems for build in builds_of(problem).values()]
    named = {"policies": ("default", *policies), "problems": problem_names()}
    chosen = {
        "build": _unique(build.name for build in builds),
        "mode": _unique(mode for build in builds for mode in build.modes),
    }
    for _, parser in subcommands(top):
        for action in parser._actions:
            _complete(action, named, chosen)
    return shtab.complete(top, shell)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return names without repetition, less those with a parameter such as ``threshold:N``."""
    return tuple(dict.fromkeys(name for name in names if ":" not in name))


def _complete(
    action: argparse.Action, named: dict[str, tuple[str, ...]], chosen: dict[str, tuple[str, ...]]
) -> None:
    """Say what an option may be followed by."""
    if isinstance(action, argparse._SubParsersAction):
        return
    name = action.dest.rpartition(".")[2].replace("-", "_")
    if name in _POLICIES:
        _set(action, _or_file("policies", named["policies"]))
    elif name == "problem":
        _set(action, _or_file("problems", named["problems"]))
    elif listed := values(action) or chosen.get(name):
        action.choices = listed


def _set(action: argparse.Action, complete: dict[str, Any]) -> None:
    action.complete = complete  # type: ignore[attr-defined]  # where shtab looks for it


def _or_file(what: str, names: Iterable[str]) -> dict[str, Any]:
    """Return how shtab completes to one of ``names`` or a file."""
    function, listed = f"_nestor_{what}_or_files", " ".join(names)
    return {
        "bash": function,
        "zsh": function,
        "fish": f"({function})",
        "preamble": {
            "bash": f'{function}() {{\n  compgen -W "{listed}" -- "$1"\n  compgen -f -- "$1"\n}}',
            "zsh": f'{function}() {{\n  _alternative "{what}:{what}:({listed})" '
            '"files:file:_files"\n}',
            "fish": f"function {function}\n  printf '%s\\n' {listed}\n"
            "  __fish_complete_path (commandline -ct)\nend",
        },
    }
