"""All commands and their options as one argparse parser, to be looked through and not to parse.

Shell completions (:mod:`nestor.cli.completion`) and the manual page (:mod:`nestor.cli.manual`) are
made from it, so that neither can name an option that there is not.
"""

import argparse
import contextlib
import io
import re
from collections.abc import Iterator
from typing import Any, Final

from nestor.cli.commands import COMMANDS, PASS_THROUGH, Command, load
from nestor.cli.options import parser

SHELLS: Final = ("bash", "zsh", "fish")
"""Those for which there are completions."""

_OWN_OPTIONS: Final = ("clang", "clang++", "flags", "make")
"""Of the commands whose words belong to the compiler, those that have options of their own."""
_OPTION: Final = re.compile(r"(--[a-z][\w-]*)(?: ([A-Z]+))?")


def command_line() -> argparse.ArgumentParser:
    """Return the parser of the whole command line; it has a subparser for each command.

    A command's description is its summary, which completions show; its epilog is all of its prose.
    """
    top = argparse.ArgumentParser(
        "nestor",
        description="Learned advisors for LLVM, on the compiler you have.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="Print the version.")
    top.add_argument("-q", "--quiet", action="store_true", help="Print results and errors only.")
    top.add_argument(
        "--print-completion",
        choices=SHELLS,
        metavar="SHELL",
        help="Print what makes a shell complete commands and options: bash, zsh or fish.",
    )
    top.add_argument("--print-man", action="store_true", help="Print this manual page.")
    groups = {"": top.add_subparsers(metavar="COMMAND")}
    for name, command in (COMMANDS | PASS_THROUGH).items():
        group, _, last = name.rpartition(" ")
        if group not in groups:
            summary = f"Commands: {', '.join(_members(group))}"
            # Completions show the description, which is one line here.
            branch = groups[""].add_parser(group, help=summary, description=summary)
            groups[group] = branch.add_subparsers(metavar="COMMAND")
        whole = _parser(name, command)
        leaf = groups[group].add_parser(
            last,
            help=command.summary,
            description=command.summary,
            parents=[whole],
            add_help=False,
            usage=whole.usage,
        )
        leaf.epilog = whole.description
    return top


def values(action: argparse.Action) -> tuple[str, ...]:
    """Return the values that an option is limited to, in the order of its help."""
    listed = re.fullmatch(r"\{([^{}|]+)\}", str(action.metavar or ""))
    if listed:  # tyro's choices have no fixed order, and hold None where that cannot be given
        return tuple(listed[1].split(","))
    return tuple(map(str, action.choices or ()))


def subcommands(of: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command below a parser with its words, those of groups after the group."""
    for action in of._actions:  # argparse has no public way to look at what was added
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield name, below
                yield from ((f"{name} {rest}", leaf) for rest, leaf in subcommands(below))


def _members(group: str) -> list[str]:
    return [name.partition(" ")[2] for name in COMMANDS if name.startswith(group + " ")]


def _parser(name: str, command: Command) -> argparse.ArgumentParser:
    if name in COMMANDS:
        return parser(load(command), name)
    own = argparse.ArgumentParser(
        f"nestor {name}",
        add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=argparse.SUPPRESS,
    )
    if name not in _OWN_OPTIONS:
        own.description = command.summary
        return own
    text = _help_of(name, command)
    usage, _, own.description = text.partition("\n\n")
    own.usage = " ".join(usage.removeprefix("usage: ").split())
    own.add_argument("-h", "--help", action="store_true", help="Explain the command.")
    if re.match(r"usage: nestor \S+ POLICY", usage):
        own.add_argument("policy", metavar="POLICY", nargs="+", help="Policy files or built-ins.")
    for option, value in dict.fromkeys(_OPTION.findall(usage)):
        described: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
        own.add_argument(option, **described)
    return own


def _help_of(name: str, command: Command) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        load(command)(name, ["--help"])
    return out.getvalue()
