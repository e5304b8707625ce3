"""The manual page ``nestor(1)``: ``nestor --print-man``.

Written here in roff, since the generators for argparse that there are fill examples into
paragraphs and leave lines that begin with an apostrophe, which roff takes for a macro.
"""

import argparse
import re
from collections.abc import Iterator

from nestor import __version__
from nestor.cli.overview import command_line, subcommands

_ENDING = """\
.SH EXIT STATUS
0 success, 1 a problem that is explained in one sentence on standard error, 2 wrong usage, 130
interrupted. cc, c++, clang and clang++ return the compiler's.
.SH ENVIRONMENT
.TP
NESTOR_CACHE
The folder of plugins, policies and objects that can be made again (~/.cache/nestor).
.TP
NESTOR_CORPUS, NESTOR_LEVEL
Where nestor cc and nestor c++ record, and at which optimisation level.
.SH SEE ALSO
clang(1), opt(1), ld.lld(1)
"""


def page() -> str:
    """Return the manual page in roff."""
    top = command_line()
    lines = [
        f'.TH NESTOR 1 "" "nestor {__version__}" "Nestor"',
        ".SH NAME",
        r"nestor \- learned advisors for LLVM, on the compiler you already have",
        ".SH SYNOPSIS",
        ".B nestor",
        r"[\-q] COMMAND [OPTIONS]",
        ".SH DESCRIPTION",
        "A policy takes decisions of LLVM's heuristics, such as inlining, in the unmodified"
        " compiler. The commands below make corpora of modules, train and judge policies, and use"
        " them in builds.",
        ".SH OPTIONS",
        *_options(top),
        ".SH COMMANDS",
    ]
    for name, parser in subcommands(top):
        if parser.epilog:  # a command; a group of commands has none
            lines += _command(name, parser)
    return "\n".join(lines) + "\n" + _ENDING


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f".SS nestor {_escaped(name)}"
    usage = re.sub(r"\s+", " ", parser.usage or f"nestor {name} {_usage(parser)}")
    yield f".B {_escaped(usage.strip())}"
    yield ".PP"
    yield from _prose(parser.epilog or "")
    yield from _options(parser)


def _usage(parser: argparse.ArgumentParser) -> str:
    words = [str(action.metavar) for action in parser._actions if not action.option_strings]
    return " ".join(["[OPTIONS]", *words])


def _prose(text: str) -> Iterator[str]:
    """Yield paragraphs; those that are indented, and lists, keep their lines."""
    for number, paragraph in enumerate(re.split(r"\n{2,}", text.strip())):
        if number:
            yield ".PP"
        head, _, rest = paragraph.partition("\n")
        if rest.startswith(" ") or head.endswith(":"):
            yield _escaped(head)
            yield from (".RS 4", ".nf", *map(_escaped, rest.split("\n")), ".fi", ".RE")
        else:
            yield _escaped(" ".join(paragraph.split()))


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or "--help" in action.option_strings:
            continue
        value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        names = ", ".join(rf"\fB{_escaped(name)}\fR" for name in action.option_strings)
        yield ".TP"
        yield " ".join(filter(None, (names, rf"\fI{_escaped(value)}\fR" if value else "")))
        yield _escaped((action.help or "").replace("%%", "%")) or r"\&"


def _escaped(text: str) -> str:
    """Return text that roff prints as it is."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    text = "".join(c if ord(c) < 128 else rf"\[u{ord(c):04X}]" for c in text)
    return rf"\&{text}" if text.startswith((".", "'")) else text
