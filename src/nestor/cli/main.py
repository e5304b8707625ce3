"""The command ``nestor``: find the words' command, read its options, run it."""

import io
import sys
from collections.abc import Sequence

from nestor.cli.commands import COMMANDS, PASS_THROUGH, load
from nestor.cli.ending import explained, flushed, unwound
from nestor.cli.start import without_quiet
from nestor.cli.wrong_words import USAGE_ERROR


def entry() -> None:
    """Run the command line and exit (the console script)."""
    for stream in (sys.stdout, sys.stderr):  # a terminal or file in a locale without our "…"
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:]
    name = _name(without_quiet(words))
    resumes = name is not None and COMMANDS[name].resumes
    sys.exit(unwound(lambda: main(words), resumes))


def main(argv: Sequence[str]) -> int:
    """Run the command in ``argv`` and return its exit status.

    0 is success, 1 a problem that is explained in one sentence, 2 wrong usage.
    """
    return explained(lambda: flushed(lambda: _main(argv)))


def _main(argv: Sequence[str]) -> int:
    words = without_quiet(argv)
    if len(words) < len(argv):
        from nestor.cli.remarks import silence

        silence()
    if words and words[0] in PASS_THROUGH:
        return int(load(PASS_THROUGH[words[0]])(words[0], words[1:]))
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(_help())
        return 0 if words else USAGE_ERROR
    if words[0] in ("--version", "version"):
        from nestor import __version__

        sys.stdout.write(f"nestor {__version__}\n")
        return 0
    if words[0] in ("--print-completion", "--print-man"):
        return _print(words)
    name = _name(words)
    if name is None:
        return _unknown(words)
    return _run(name, words[len(name.split()) :])


def _name(words: Sequence[str]) -> str | None:
    """Return the name of the command with options of its own that ``words`` begin with."""
    names = (" ".join(words[:length]) for length in (2, 1))
    return next((name for name in names if name in COMMANDS), None)


def _print(words: list[str]) -> int:
    """Print a completion script or the manual page."""
    from nestor.cli.overview import SHELLS

    if words == ["--print-man"]:
        from nestor.cli.manual import page

        sys.stdout.write(page())
        return 0
    if words[0] == "--print-completion" and len(words) == 2 and words[1] in SHELLS:
        from nestor.cli.completion import script

        sys.stdout.write(script(words[1]) + "\n")
        return 0
    sys.stderr.write(f"usage: nestor --print-completion {{{','.join(SHELLS)}}} | --print-man\n")
    return USAGE_ERROR


def _run(name: str, words: list[str]) -> int:
    from nestor.cli.options import parse

    return int(parse(load(COMMANDS[name]), name, words).run())


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
        "options before the command:",
        "  -q, --quiet                 results and errors only: no progress, no remarks",
        "  --version                   print the version",
        "  --print-completion SHELL    print completions for bash, zsh or fish:",
        '                              eval "$(nestor --print-completion bash)"',
        "  --print-man                 print the manual page, for share/man/man1/nestor.1",
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
    from nestor.errors import meant

    group = sorted(name for name in COMMANDS if name.startswith(words[0] + " "))
    if group and words[1:2] in ([], ["-h"], ["--help"]):
        sys.stdout.write(_group_help(words[0], group))
        return 0 if words[1:] else USAGE_ERROR
    typed = f"'{' '.join(words[:2] if group else words[:1])}' is no command"
    if group:
        near = meant(" ".join(words[:2]), group)
        hint = f"{near}; there are: {', '.join(group)}"
    else:
        every = [*COMMANDS, *PASS_THROUGH]
        near = meant(words[0], sorted({name.partition(" ")[0] for name in every}))
        hint = f"{near}; 'nestor --help' lists them all"
    sys.stderr.write(f"nestor: {typed}{hint}.\n")
    return USAGE_ERROR
