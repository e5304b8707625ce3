"""``nestor flags`` and ``nestor clang``: policies in an ordinary build."""

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from nestor.cli.ending import explain
from nestor.cli.make.place import with_summary
from nestor.cli.remarks import remark, report_once
from nestor.cli.use import quick, words
from nestor.cli.use.words import Words
from nestor.cli.wrong_words import USAGE_ERROR, WrongWordsError, answer
from nestor.corpus.lto_option import OTHER_LINKER, kind_of_link

_FLAGS_HELP = """\
usage: nestor flags POLICY… [--best] [--overrides FILE]… [--summary FILE | --lto]
       [--level LEVEL] [--install DIR] [--problem NAME] [--llvm PREFIX]

Print the clang options that use POLICY (a file or a built-in), for CFLAGS and CXXFLAGS. Policies
for different problems work together: each says itself what it decides, such as inlining at -Oz, at
-Os or for speed, or register allocation at -O2. --problem says which problem is meant where several
have a policy of one name, as all have 'default'; that is inlining otherwise. With --level, the
level of the build, such as -O2, policies that would decide nothing at that level are refused.

With --best the compiler allocates each function by the stock heuristics and by the policies about
register allocation, and keeps what will execute least; then several policies about the same are
alternatives. A function in which they differ is allocated once more for each: compiles take about
1.2 times as long with one policy about eviction, 1.5 times with four, and 2 to 3 times as long
with policies about both eviction and priority (docs/guide/register-allocation.md).

The answers in the files of --overrides, as 'nestor guard' and 'nestor tune' write them, stand above
the policies'; a file's first line says which problem it is about. The file of --summary, as 'nestor
summary' and 'nestor tune' write it, tells the policy what the rest of the program does. With --lto
the options are for LDFLAGS: under LTO, full or thin, the policies decide inside the linker, and
what is compiled needs the level and -flto only.

The options name copies of all these files in the cache, under names that change with the content:
after a change of a file, other options are printed, and a build system or ccache that sees them
compiles again. The first use builds the plugin for your clang, which takes some 20 seconds.

--install puts the plugin and the files into the folder DIR, and prints options that name them
there, so that the build needs neither the cache nor Nestor. It also writes the compilers DIR/clang
and DIR/clang++, which add the options themselves, also when DIR has been moved. They are for this
clang: after an upgrade of it, run the command again.

On an error, what is printed is an option that makes the compiler fail and name the mistake.

examples:
  make CC=clang-22 CFLAGS="-Oz $(nestor flags shipped)"
  make CC=clang-22 CFLAGS="-Os $(nestor flags shipped shipped-os shipped-speed)"
  make CC=clang-22 CFLAGS="-O2 $(nestor flags shipped-eviction --level -O2)"
  make CC=clang-22 CFLAGS="-O2 $(nestor flags shipped-eviction ./mine.safetensors --best)"
  make CC="ccache clang-22" CFLAGS="-Oz $(nestor flags ./my.safetensors)"
  make CC=clang-22 CFLAGS="-Oz $(nestor flags mlgo2020 --overrides guard.txt)"
  make CC=clang-22 CFLAGS="-Oz -ffunction-sections $(nestor flags distilled --summary program.txt)"
  make CC=clang-22 CFLAGS="-Oz -flto" LDFLAGS="-Oz -flto $(nestor flags shipped-lto --lto)"
  nestor flags shipped --install nestor && make CC=$PWD/nestor/clang CFLAGS=-Oz
"""
_CLANG_HELP = """usage: nestor {name} POLICY… [--best] [--overrides FILE]… [--summary FILE]
       [--level LEVEL] [--problem NAME] [--llvm PREFIX] -- ARGUMENTS…

Run {name} with ARGUMENTS under POLICY (a file or a built-in), or under several policies for
different problems. Let ARGUMENTS ask for a level at which they decide: -Oz for 'shipped', -Os for
'shipped-os', -O2 or -O3 for 'shipped-speed', any above -O0 for register allocation. The other
options are those of 'nestor flags', whose help explains them. If ARGUMENTS ask for LTO (-flto,
-flto=thin), the policies decide inside lld, in the link, and the compiles are stock. The compiler's
output and exit status are passed on unchanged.

If the environment variable NESTOR_PROGRAM names a folder, a compile reads the summary there, if
there is one, and leaves the record of which 'nestor make' makes the next summary.

For whole builds 'nestor flags' is better: it adds no start-up to a compile, and ccache, which
cannot see through this command, sees the options.

examples:
  nestor {name} shipped -- -Oz -c file.c -o file.o
  nestor {name} shipped-eviction -- -O2 -c file.c
  nestor {name} default --overrides tuned/ninja/overrides.txt -- -Oz -c file.c
  nestor {name} distilled --summary program.txt -- -Oz -ffunction-sections -c file.c
  make CC="nestor clang mlgo2020 --" CFLAGS=-Oz
  make CXX="nestor clang++ mlgo2020 --" CXXFLAGS=-Oz
  nestor {name} shipped-lto -- -Oz -flto a.c b.c -o program
"""
_FAILURE: Final = "--nestor-flags-failed="
"""No compiler takes this option, and each names it in its message."""
_LONGEST_FAILURE: Final = 160
"""Characters of a message that are put into an option."""


def flags(name: str, own_words: list[str]) -> int:
    """Print the options for the policies named in ``own_words``, or one that no compiler takes.

    ``$(nestor flags …)`` drops the exit status, and nothing printed would be a build by the stock
    compiler.
    """
    try:
        own, rest = words.split(name, own_words)
        if rest is not None:
            raise WrongWordsError("Nothing follows '--' here, as it does for 'nestor clang'.")
        quick.write_line(_flags_text(own, own_words))
    except WrongWordsError as error:
        status = _usage(name, _FLAGS_HELP, own_words, error)
        if status:
            print(_failure(f"wrong usage of nestor flags: {error}"))
        return status
    except BaseException as error:
        sentence = explain(error) if isinstance(error, OSError) else None
        interrupted = "interrupted" if isinstance(error, KeyboardInterrupt) else ""
        print(_failure(sentence or str(error) or interrupted or type(error).__name__))
        raise
    return 0


def clang(name: str, own_words: list[str]) -> int:
    """Become clang or clang++ (``name``) under the policies named in ``own_words``."""
    offered: list[str] = []
    if "--" in own_words:
        index = own_words.index("--")
        completed = with_summary(own_words[:index], own_words[index + 1 :])
        offered = completed[index:]
        own_words = [*completed, *own_words[index:]]
    try:
        own, rest = words.split_around(name, own_words)
        own = replace(own, offered=tuple(offered))
    except WrongWordsError as error:
        return _usage(name, _CLANG_HELP.format(name=name), own_words, error)
    lto = kind_of_link(rest)
    from nestor.cli import lto_remarks  # not needed for help
    from nestor.cli.use import command

    memory = command.Memory(own)
    found = command.find(own, report_once)
    if lto == OTHER_LINKER:
        remark("policies decide inside LTO by lld alone: with another linker all is stock's")
    else:
        lto_remarks.remark_on_lto(own.policies, lto=bool(lto))
    line = found.compiler(name, lto)
    key = quick.key_of_clang(name, own_words[: own_words.index("--")], lto)
    memory.keep(key, found, line)
    return quick.start(line, rest)


def _flags_text(own: Words, own_words: list[str]) -> str:
    """Return the options as a shell reads them."""
    from nestor.cli import lto_remarks
    from nestor.cli.use import command, install
    from nestor.files import refuse_folder

    folder = None if own.install is None else Path(own.install)
    if folder is not None:
        refuse_folder(folder)
    memory = command.Memory(own)
    found = command.find(own, report_once)
    lto_remarks.remark_on_lto(own.policies, lto=own.lto)
    if folder is not None:
        found = install.install(found, folder, shlex.join(["nestor", "flags", *own_words]))
        remark(install.sentence(found, folder))
    text = shlex.join(found.link_options() if own.lto else found.compile_options())
    if folder is None:
        memory.keep(["flags", *own_words], found, [text])
    return text


def _failure(message: str) -> str:
    """Return an option that says ``message`` in one word, whatever shells and make do with it."""
    word = re.sub(r"[^A-Za-z0-9._/:,=+@-]+", "_", message)
    return _FAILURE + word[:_LONGEST_FAILURE].strip("_.")


def _usage(name: str, text: str, own_words: list[str], error: WrongWordsError) -> int:
    """Say what is wrong; without a word, print the help."""
    if own_words:
        return answer(name, text, own_words, error)
    sys.stderr.write(text)
    return USAGE_ERROR
