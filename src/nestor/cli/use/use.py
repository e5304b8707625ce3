"""``nestor flags`` and ``nestor clang``: a policy in an ordinary build."""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nestor.errors import NestorError

if TYPE_CHECKING:
    from nestor.compiler.plugin import Plugin

PROBLEM: Final = "inlining-size"
"""The problem that the plugin decides in an ordinary build."""

_FLAGS_HELP = """\
usage: nestor flags POLICY [--overrides FILE] [--summary FILE | --lto] [--llvm PREFIX]

Print the clang options that use POLICY (a file or a built-in), for CFLAGS and CXXFLAGS. The
answers in the file of --overrides, as 'nestor guard' and 'nestor tune' write them, stand above
the policy's. The file of --summary, as 'nestor summary' and 'nestor tune' write it, tells the
policy what the rest of the program does. With --lto the options are for LDFLAGS: under LTO, full
or thin, the policy decides inside the linker, and what is compiled needs -Oz -flto only.

examples:
  make CC=clang-22 CFLAGS="-Oz $(nestor flags shipped)"
  make CC=clang-22 CFLAGS="-Oz $(nestor flags mlgo2020 --overrides guard.txt)"
  make CC=clang-22 CFLAGS="-Oz -ffunction-sections $(nestor flags distilled --summary program.txt)"
  make CC=clang-22 CFLAGS="-Oz -flto" LDFLAGS="-Oz -flto $(nestor flags distilled --lto)"
"""
_CLANG_HELP = """usage: nestor {name} POLICY [--overrides FILE] [--summary FILE] [--llvm PREFIX]
       -- ARGUMENTS…

Run {name} with ARGUMENTS under POLICY (a file or a built-in). The policy decides inlining; make
sure that ARGUMENTS ask for the level it was trained for (-Oz). The answers in the file of
--overrides, as 'nestor guard' and 'nestor tune' write them, stand above the policy's. The file of
--summary, as 'nestor summary' and 'nestor tune' write it, tells the policy what the rest of the
program does. If ARGUMENTS ask for LTO (-flto, -flto=thin), the policy decides inside lld, in the
link, and the compiles are stock. The compiler's output and exit status are passed on unchanged.

examples:
  nestor {name} shipped -- -Oz -c file.c -o file.o
  nestor {name} default --overrides tuned/ninja/overrides.txt -- -Oz -c file.c
  nestor {name} distilled --summary program.txt -- -Oz -ffunction-sections -c file.c
  make CC="nestor clang mlgo2020 --" CFLAGS=-Oz
  nestor {name} distilled -- -Oz -flto a.c b.c -o program
"""


@dataclass(frozen=True)
class _Own:
    """Our own words of a command line."""

    policy: str
    overrides: str | None
    summary: str | None
    llvm: str | None
    lto: bool = False
    """The options are for a link."""


def flags(name: str, words: list[str]) -> int:
    """Print the options for the policy named in ``words``."""
    own, rest = _arguments(words)
    if own is None or rest:
        return _usage(_FLAGS_HELP, words)
    print(shlex.join((_link_flags if own.lto else _flags)(own)[1]))
    return 0


def clang(name: str, words: list[str]) -> int:
    """Become clang or clang++ (``name``) under the policy named in ``words``."""
    own, rest = _arguments(words)
    if own is None or rest is None or own.lto:
        return _usage(_CLANG_HELP.format(name=name), words)
    kinds = [word for word in rest if word.startswith(("-flto", "-fno-lto"))]
    lto = kinds and kinds[-1].startswith("-flto")
    compiler, options = (_link_flags if lto else _flags)(own)
    if name == "clang++":
        compiler = compiler.with_name("clang++")
    # The plugin's options must not warn where nothing is compiled, as in a link.
    guarded = ["--start-no-unused-arguments", *options, "--end-no-unused-arguments"]
    sys.stdout.flush()
    return os.execv(compiler, [str(compiler), *guarded, *rest])  # noqa: S606  as the user asked


def _arguments(words: list[str]) -> tuple[_Own | None, list[str] | None]:
    """Split ``POLICY [OPTION VALUE]… [-- REST]``; the first part is None if it is not that."""
    own, rest = words, None
    if "--" in words:
        index = words.index("--")
        own, rest = words[:index], words[index + 1 :]
    lto = "--lto" in own
    own = [word for word in own if word != "--lto"]
    values: dict[str, str] = {}
    for option in ("--overrides", "--summary", "--llvm"):
        if option in own[:-1]:
            index = own.index(option)
            values[option] = own[index + 1]
            own = own[:index] + own[index + 2 :]
    if len(own) != 1 or own[0].startswith("-"):
        return None, rest
    overrides, summary, llvm = map(values.get, ("--overrides", "--summary", "--llvm"))
    return _Own(own[0], overrides, summary, llvm, lto), rest


def _usage(text: str, words: list[str]) -> int:
    help_wanted = any(word in ("-h", "--help") for word in words)
    (sys.stdout if help_wanted else sys.stderr).write(text)
    return 0 if help_wanted else 2


def _flags(own: _Own) -> tuple[Path, list[str]]:
    """Return the compiler and the driver's options for compiles."""
    plugin, flags = _plugin_flags(own)
    # -Xclang passes each word to the compiler proper only: neither the assembler, which has no
    # plugins, nor a link sees it.
    load, *words = flags
    return plugin.toolchain.clang, [load, *(w for word in words for w in ("-Xclang", word))]


def _link_flags(own: _Own) -> tuple[Path, list[str]]:
    """Return the compiler and the driver's options for links by LTO."""
    from nestor.compiler.lto import link_flags

    if own.summary is not None:
        raise NestorError(
            "A summary holds what one module cannot see of its program, and LTO sees all of it:"
            " leave --summary out."
        )
    plugin, flags = _plugin_flags(own)
    return plugin.toolchain.clang, ["-fuse-ld=lld", *link_flags(plugin, flags)]


def _plugin_flags(own: _Own) -> "tuple[Plugin, list[str]]":
    """Return the plugin and what it is to do, as the compiler proper takes it."""
    # Imported here: 'flags --help' and usage errors need none of it, and what takes numpy is needed
    # only for a policy or a compiler that is new to the cache.
    from nestor.problems.inlining_size.plugin_flags import plugin_flags
    from nestor.rollout.ready import passed_plugin, stored_policy

    policy = stored_policy(own.policy, PROBLEM)
    # Builds change folders, so paths are absolute; a mistake is reported once instead of by every
    # compile.
    fixed = None if own.overrides is None else Path(own.overrides).resolve()
    summary = None if own.summary is None else Path(own.summary).resolve()
    if fixed is not None:
        from nestor.problems.inlining_size.search import overrides

        overrides.load(fixed)
    if summary is not None:
        from nestor.problems.inlining_size.summary import program_summary

        program_summary.load(summary)
    plugin = passed_plugin(own.llvm, PROBLEM)
    return plugin, plugin_flags(plugin, policy, overrides=fixed, summary=summary)
