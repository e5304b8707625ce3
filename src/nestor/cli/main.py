"""The command ``nestor``: find the words' command, read its options, run it.

Commands are looked up by name and imported only when they run, so that the compiler wrappers
start as fast as Python does.
"""

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple


class Command(NamedTuple):
    """Where a command lives, and what it does in one line."""

    place: str
    """Within this package: ``module:Class`` for a tyro dataclass with ``run``, ``module:function``
    for raw words."""
    summary: str


COMMANDS: Final = {
    "doctor": Command("doctor:Doctor", "Find LLVM, build the plugin, prove identity"),
    "corpus fetch": Command("corpus.fetch:Fetch", "Fetch and capture Debian sources"),
    "corpus capture": Command("corpus.capture:Capture", "Capture your own build"),
    "corpus info": Command("corpus.info:Info", "Show what a corpus holds"),
    "corpus sweep": Command("corpus.sweep:Sweep", "Time a stock compile of a corpus"),
    "corpus overlap": Command("corpus.overlap:Overlap", "Check held-out code for copies"),
    "corpus import": Command("corpus.copies:Import", "Copy a corpus in LLVM's layout"),
    "corpus export": Command("corpus.copies:Export", "Write a corpus in LLVM's layout"),
    "train": Command("policies.train:Train", "Train a policy for a problem"),
    "compare": Command("policies.compare:Compare", "Set training runs side by side"),
    "evaluate": Command("policies.evaluate:Evaluate", "Compare a policy with stock, linked"),
    "tune": Command("policies.tune:Tune", "Search for one program's best decisions"),
    "overrides check": Command(
        "policies.overrides:Check", "Find lines of overrides that match nothing"
    ),
    "guard": Command("policies.guard:Guard", "List modules to leave to stock: never worse"),
    "build": Command("use.build:Build", "Build a program of a corpus under a policy"),
    "summary": Command("use.summary:Summary", "Summarise a program's objects for policies"),
    "costmodel train": Command("blocks.costmodel:Train", "Train a cost model of blocks"),
    "costmodel evaluate": Command("blocks.costmodel:Evaluate", "Judge one by measured blocks"),
    "costmodel predict": Command("blocks.costmodel_use:Predict", "Predict cycles of code"),
    "costmodel explain": Command("blocks.costmodel_use:Explain", "Show what bounds a block"),
    "sizes": Command("policies.sizes:Sizes", "Train a model of functions' code size"),
    "identity": Command("policies.identity:Identity", "Run the identity gate on a corpus"),
    "blocks extract": Command("blocks.blocks:Extract", "Take basic blocks out of code"),
    "blocks info": Command("blocks.blocks:Info", "Show what a table of blocks holds"),
    "blocks measure": Command("blocks.measure:Measure", "Label blocks with measured cycles"),
    "problem list": Command("policies.problem:List", "Show the decision problems"),
    "problem check": Command("policies.problem:Check", "Check what learners rely on"),
    "log": Command("policies.log:Log", "Show what a policy decides in one compile"),
    "policy": Command("policies.policy:Policy", "Describe a policy file"),
}
"""Commands with options of their own."""

PASS_THROUGH: Final = {
    "cc": Command("corpus.cc:run", "clang that also captures (CC='nestor cc')"),
    "c++": Command("corpus.cc:run", "clang++ that also captures (CXX='nestor c++')"),
    "clang": Command("use.use:clang", "clang under a policy: nestor clang POLICY -- ARGS"),
    "clang++": Command("use.use:clang", "clang++ under a policy"),
    "flags": Command("use.use:flags", "Print the clang flags that use a policy"),
}
"""Commands whose words belong to the compiler."""

USAGE_ERROR: Final = 2


def entry() -> None:
    """Run the command line and exit (the console script)."""
    for stream in (sys.stdout, sys.stderr):  # a terminal or file in a locale without our "…"
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, head say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    sys.exit(status)


def main(argv: Sequence[str]) -> int:
    """Run the command in ``argv`` and return its exit status.

    0 is success, 1 a problem that is explained in one sentence, 2 wrong usage.
    """
    words = list(argv)
    if words and words[0] in PASS_THROUGH:
        from nestor.errors import NestorError

        try:
            return int(_load(PASS_THROUGH[words[0]])(words[0], words[1:]))
        except NestorError as error:
            sys.stderr.write(f"nestor: {error}\n")
            return 1
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(_help())
        return 0 if words else USAGE_ERROR
    if words[0] in ("--version", "version"):
        from nestor import __version__

        sys.stdout.write(f"nestor {__version__}\n")
        return 0
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in COMMANDS:
            return _run(name, words[length:])
    return _unknown(words)


def _run(name: str, words: list[str]) -> int:
    import inspect

    import tyro
    from rich.markup import escape

    from nestor.cli.console import stderr
    from nestor.errors import NestorError

    arguments, rest = _split(words)
    try:
        kind = _load(COMMANDS[name])
        command = tyro.cli(
            kind,
            prog=f"nestor {name}",
            description=inspect.getdoc(kind),  # whole: tyro would leave out the examples
            args=arguments + rest,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
        return int(command.run())
    except NestorError as error:
        stderr.print(f"[bold red]nestor:[/] {escape(str(error))}", soft_wrap=True, highlight=False)
        return 1
    except KeyboardInterrupt:
        stderr.print("nestor: interrupted; what was finished is kept")
        return 130


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Separate a command line after ``--`` from our own options."""
    if "--" not in words:
        return words, []
    index = words.index("--")
    return words[:index], words[index:]


def _load(command: Command):  # type: ignore[no-untyped-def]  # a class or a function
    module, name = command.place.split(":")
    return getattr(importlib.import_module(f"nestor.cli.{module}"), name)


def _help() -> str:
    lines = [
        "usage: nestor COMMAND …",
        "",
        "Learned advisors for LLVM, on the compiler you have.",
        "",
    ]
    for name, command in (COMMANDS | PASS_THROUGH).items():
        lines.append(f"  {name:20} {command.summary}")
    lines += [
        "",
        "examples:",
        "  nestor doctor                                       is my LLVM ready?",
        "  nestor corpus fetch tiny corpus/tiny                six projects from Debian",
        "  nestor train inlining-size --corpus corpus/tiny --out runs/bc --learner bc",
        "  nestor evaluate --policy mlgo2020 --corpus corpus/tiny",
        "  nestor clang runs/bc/policy.safetensors -- -Oz -c file.c",
        "",
        "'nestor COMMAND --help' explains a command. Exit status: 0 success, 1 a problem that is",
        "explained on standard error, 2 wrong usage.",
        "",
    ]
    return "\n".join(lines)


def _group_help(group: str, names: Sequence[str]) -> str:
    lines = [f"usage: nestor {group} COMMAND …", ""]
    lines += [f"  {name:20} {COMMANDS[name].summary}" for name in names]
    lines += ["", f"'nestor {group} COMMAND --help' explains a command.", ""]
    return "\n".join(lines)


def _unknown(words: list[str]) -> int:
    group = sorted(name for name in COMMANDS if name.startswith(words[0] + " "))
    if group and words[1:2] in ([], ["-h"], ["--help"]):
        sys.stdout.write(_group_help(words[0], group))
        return 0 if words[1:] else USAGE_ERROR
    typed = f"'{' '.join(words[:2] if group else words[:1])}' is no command"
    hint = f"; there are: {', '.join(group)}" if group else "; 'nestor --help' lists them all"
    sys.stderr.write(f"nestor: {typed}{hint}.\n")
    return USAGE_ERROR
