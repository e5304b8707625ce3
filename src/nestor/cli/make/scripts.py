"""The compilers of a build: shell scripts that add the options and leave a record.

A shell starts in a millisecond; Python would take fifteen for each compile.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.cli.make.embedded_names import removal
from nestor.cli.make.place import (
    BY_LTO,
    COMPILER_VARIABLES,
    END,
    FIRST,
    HEADER,
    LINKED,
    POLICY,
    UNDER_POLICY_BY_LTO,
    compiler_names,
    compilers_folder,
)
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.level import names_of
from nestor.corpus.no_object import NO_OBJECT
from nestor.files import write_script

_FOLDER: Final = "@folder@"
_LOGS: Final = '"$place/logs/$id"'
"""The folder of a compile's log, as a word of the scripts."""
ELSEWHERE: Final = "*"
_SCRIPT: Final = """\
#!/bin/sh
# Written by 'nestor make': {compiler} under policies, with a record of what it makes.
place={place}
compile= lto= response= object= before= source= level= linker=
look() {{ # WORD
  [ "$before" != -o ] || object=$1
  before=$1
  case $1 in
    -c) compile=${{compile:-yes}} ;;
    {no_object}) compile=no ;;
    -flto|-flto=*) lto=yes ;;
    -fno-lto) lto= ;;
    -fuse-ld=lld) linker= ;;
    -fuse-ld=*) linker=$1 ;;
    -O*) level=$1 ;;
    -*) ;;
    *.c|*.cc|*.cp|*.cpp|*.cxx|*.c++|*.C|*.CPP|*.m|*.i|*.ii|*.bc|*.ll) source=$1 ;;
  esac
}}
for word do
  case $word in
    @*)
      response=yes
      set -f
      for inner in $(cat "${{word#@}}" 2>/dev/null); do
        look "$inner"
      done
      set +f
      case $object in
        *[\\"\\'\\\\]*) object= ;; # Its words are quoted as for a shell.
      esac ;;
    *) look "$word" ;;
  esac
done
linked=
if [ ! "$compile" ] && [ "$source" ]; then
  linked=yes
fi
makes=$compile
[ "$makes" ] || makes=${{linked:-$lto}}
[ -d "$place/compiles" ] || makes=no
record() {{ # MODE FOLDER ARGUMENTS…
  mode=$1 folder=$2
  shift 2
  if [ "$response" ]; then
    # Build systems remove response files, so the record names copies.
    number=0
    for word do
      shift
      case $word in
        @*)
          number=$((number + 1))
          if cp "${{word#@}}" "$place/compiles/$id-$number.words" 2>/dev/null; then
            word=@$place/compiles/$id-$number.words
          fi ;;
      esac
      set -- "$@" "$word"
    done
  fi
  printf '%s\\0' '{header}' $mode "$PWD" "$folder" \\
    {variables} \\
    {compiler} "$@" {end} >|"$place/compiles/$id" 2>/dev/null
}}
if [ "$makes" = yes ]; then
  # A number of a process comes again. What a first build logs may stay for many builds.
  set -C
  id=$$ number=0
  until [ ! -e "$place/logs/$id" ] && {{ true >"$place/compiles/$id"; }} 2>/dev/null; do
    number=$((number + 1))
    id=$$-$number
    if [ $number -gt 1000 ]; then
      makes=no # no record can be written
      break
    fi
  done
fi
if [ "$lto" ]; then
  # Objects are stock's: the policies decide in the link, if lld does it.
  case $level in
    {lto_levels}) ;;
    *) linker=stock ;;
  esac
  if [ "$compile" ] || [ "$linker" ]; then
    [ "$makes" != yes ] || record {by_lto} '' "$@"
    exec {compiler} "$@"
  fi
  [ "$makes" != yes ] || record {under_policy_by_lto} '' "$@"
  exec {compiler} {lto_options} "$@"
fi
case $level in
{levels}
esac
"""
_LEVEL: Final = """\
  {level})
    if [ "$linked" ]; then
      [ "$makes" != yes ] || record {linked} '' "$@"
    elif [ "$makes" = yes ]; then
      record {mode} {folder} "$@"
{make_object}
    fi
    exec {compiler} {other_options} "$@" ;;"""
_COMPILE: Final = """\
        exec {compiler} {options} "$@\""""
_COMPILE_WITH_BITCODE: Final = """\
        [ "$object" ] || exec {compiler} {options} "$@"
        {compiler} {options} -Xclang -fembed-bitcode=all "$@" || exit
        [ -d {folder} ] || mkdir -p {folder}
        # What was embedded goes beside the object; without it, the source is compiled again later.
        {objcopy} {removal} "$object" 2>/dev/null
        exit 0"""


@dataclass(frozen=True)
class WithSummary:
    """The driver's options at a level where a policy decides that reads a summary."""

    policy: Path
    """A file: logs have what it reads and no more."""
    stock: tuple[str, ...]
    """For an object that the stock heuristic decides in its place."""
    alone: tuple[str, ...]
    """For an object under it without a summary."""
    under_policy: tuple[str, ...]
    """For an object under it with the summary, if there is one."""

    def of_first(self, folder: str, *, cxx: bool) -> list[str]:
        """Return the options of a first build's compile that writes its log into ``folder``."""
        log = [f"-nestor-log={folder}/", f"-nestor-log-for={self.policy}"]
        options = self.without_summary(cxx=cxx)
        return [*options, *(w for one in log for w in ("-Xclang", "-mllvm", "-Xclang", one))]

    def without_summary(self, *, cxx: bool) -> tuple[str, ...]:
        """Return the options of what is compiled without a summary.

        C++ is compiled under the policy, which saves most there without a summary already, so that
        little is lost where a module is not compiled again. C is not: without a summary a policy
        that reads one makes some programs larger.
        """
        return self.alone if cxx else self.stock


@dataclass(frozen=True)
class Options:
    """The driver's options that a build's compilers add."""

    reading: Mapping[str, WithSummary]
    """By level, where a policy decides that reads a summary."""
    plain: Mapping[str, tuple[str, ...]]
    """By level, where others do; :data:`ELSEWHERE` stands for all other levels."""
    inside_lto: tuple[str, ...] = ()
    """For links by LTO; nothing if no policy decides there."""
    lto_levels: tuple[str, ...] | None = None
    """The levels of links for which these are, None for all. What counts is the last one given,
    which need not be that of the objects."""


def write(place: Path, toolchain: Toolchain, options: Options, mode: str) -> bool:
    """Write the compilers, where :func:`~nestor.cli.make.place.compilers_folder` says.

    :param toolchain: of the real compilers.
    :param mode: how objects are to be compiled, ``first`` or ``policy``.
    :return: whether one changed.
    """
    folder = Path(compilers_folder(str(place)))
    changed = False
    for name, text in texts(place, toolchain, options, mode).items():
        changed |= write_script(folder / name, text)
    return changed


def texts(place: Path, toolchain: Toolchain, options: Options, mode: str) -> dict[str, str]:
    """Return the text of each compiler by its name."""
    texts = {}
    for name in compiler_names(toolchain.major):
        cxx = "++" in name
        compiler = shlex.quote(str(toolchain.clang.with_name("clang++" if cxx else "clang")))
        levels = [
            _level(toolchain, compiler, level, own, mode, cxx=cxx)
            for level, own in options.reading.items()
        ]
        levels += [_plain_level(compiler, level, own) for level, own in options.plain.items()]
        texts[name] = _SCRIPT.format(
            place=shlex.quote(str(place)),
            compiler=compiler,
            header=HEADER,
            end=END,
            by_lto=BY_LTO,
            under_policy_by_lto=UNDER_POLICY_BY_LTO,
            variables=" \\\n    ".join(map(_if_set, COMPILER_VARIABLES)),
            no_object="|".join(map(shlex.quote, NO_OBJECT)),
            lto_levels=_lto_pattern(options),
            lto_options=_shell(_quiet(options.inside_lto)),
            levels="\n".join(levels),
        )
    return texts


def _level(
    toolchain: Toolchain, compiler: str, level: str, own: WithSummary, mode: str, *, cxx: bool
) -> str:
    """Return what a script does at a level where a summary is read."""
    folder = "''"
    if mode == FIRST:
        folder = _LOGS
        # In C the front end takes less time than to take the bitcode out of the object.
        make_object = (_COMPILE_WITH_BITCODE if cxx else _COMPILE).format(
            compiler=compiler,
            options=_shell(_quiet(own.of_first(_FOLDER, cxx=cxx))),
            folder=folder,
            objcopy=shlex.quote(str(toolchain.clang.with_name("llvm-objcopy"))),
            removal=_shell(removal(_FOLDER)),
        )
    else:
        options = _shell(_quiet(own.under_policy))
        make_object = _COMPILE.format(compiler=compiler, options=options)
    return _LEVEL.format(
        level=_pattern([level]), mode=mode, folder=folder, compiler=compiler, linked=LINKED,
        make_object=make_object,
        other_options=_shell(_quiet(own.without_summary(cxx=cxx))),
    )  # fmt: skip


def _plain_level(compiler: str, level: str, own: Sequence[str]) -> str:
    """Return what a script does at a level where no summary is read."""
    options = _shell(_quiet(own))
    make_object = _COMPILE.format(compiler=compiler, options=options)
    return _LEVEL.format(
        level=_pattern([level]), mode=POLICY, folder="''", compiler=compiler,
        linked=LINKED, make_object=make_object, other_options=options,
    )  # fmt: skip


def _if_set(name: str) -> str:
    """Return what is the word ``NAME=VALUE`` in a shell if the variable is set, and none if not."""
    return f'${{{name}+"{name}=${name}"}}'


def _pattern(levels: Iterable[str]) -> str:
    """Return what matches the names of ``levels`` in a shell."""
    return "|".join(name for level in levels for name in names_of(level))


def _lto_pattern(options: Options) -> str:
    """Return what matches the level of a link under policies; a link need not name any."""
    if not options.inside_lto:
        return "none"
    return ELSEWHERE if options.lto_levels is None else f"''|{_pattern(options.lto_levels)}"


def _quiet(options: Sequence[str]) -> list[str]:
    """Return options that do not warn where nothing is compiled."""
    return ["--start-no-unused-arguments", *options, "--end-no-unused-arguments"]


def _shell(words: Sequence[str]) -> str:
    """Return ``words`` for a shell; :data:`_FOLDER` in them becomes :data:`_LOGS`."""
    return " ".join(
        f"'{word}'".replace(_FOLDER, f"'{_LOGS}'") if _FOLDER in word else shlex.quote(word)
        for word in words
    )
