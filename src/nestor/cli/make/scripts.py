"""The compilers of a build: shell scripts that add the options and leave a record.

A shell starts in a millisecond; Python would take fifteen for each compile.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.cli.make.embedded_names import removal
from nestor.cli.make.place import END, FIRST, HEADER, LINKED, compiler_names
from nestor.compiler.toolchain import Toolchain
from nestor.files import replacing

_FOLDER: Final = "@folder@"
_SCRIPT: Final = """\
#!/bin/sh
# Written by 'nestor make': {compiler} under a policy, with a record of what it makes.
place={place}
compile= lto= response= object= before= source= mode={mode}
for word do
  [ "$before" != -o ] || object=$word
  before=$word
  case $word in
    -c) compile=${{compile:-yes}} ;;
    -E|-S|-M|-MM|-fsyntax-only|-emit-llvm|-emit-ast|--analyze) compile=no ;;
    -flto|-flto=*) lto=yes ;;
    -fno-lto) lto= ;;
    @*) response=yes ;;
    -*) ;;
    *.c|*.cc|*.cp|*.cpp|*.cxx|*.c++|*.C|*.CPP|*.m|*.i|*.ii|*.bc|*.ll) source=$word ;;
  esac
done
if [ "$lto" ]; then
  exec {compiler} "$@"
fi
if [ ! "$compile" ] && [ "$source" ]; then
  compile=yes mode={linked}
fi
if [ "$compile" = yes ] && [ -d "$place/compiles" ]; then
  set -C
  id=$$
  until {{ true >"$place/compiles/$id"; }} 2>/dev/null; do
    id=$id-$$
    [ ${{#id}} -lt 200 ] || break
  done
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
  printf '%s\\0' '{header}' $mode "$PWD" {folder} {compiler} "$@" {end} \\
    >|"$place/compiles/$id" 2>/dev/null
  if [ $mode != {linked} ]; then
{make_object}
  fi
fi
exec {compiler} --start-no-unused-arguments {other_options} --end-no-unused-arguments "$@"
"""

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
class Options:
    """The driver's options that a build's compilers add."""

    stock: tuple[str, ...]
    """For an object by the stock heuristic."""
    under_policy: tuple[str, ...]
    """For an object under the policy, with the summary if there is one."""
    alone: tuple[str, ...]
    """For an object under the policy without a summary."""
    policy: Path | None = None
    """The policy, a file: logs have what it reads and no more."""
    reads_summary: bool = True
    """Whether the policy has features that a summary gives."""

    def of_first(self, folder: str, *, cxx: bool) -> list[str]:
        """Return the options of a first build's compile that writes its log into ``folder``."""
        log = [f"-nestor-log={folder}/"]
        if self.policy is not None:
            log.append(f"-nestor-log-for={self.policy}")
        options = self.without_summary(cxx=cxx)
        return [*options, *(w for one in log for w in ("-Xclang", "-mllvm", "-Xclang", one))]

    def without_summary(self, *, cxx: bool) -> tuple[str, ...]:
        """Return the options of what is compiled without a summary.

        C++ is compiled under the policy, which saves most there without a summary already, so that
        little is lost where a module is not compiled again. C is not: without a summary a policy
        that reads one makes some programs larger.
        """
        return self.alone if cxx or not self.reads_summary else self.stock


def write(place: Path, toolchain: Toolchain, options: Options, mode: str) -> bool:
    """Write the compilers into ``place/bin``.

    :param toolchain: of the real compilers.
    :param mode: how objects are to be compiled, ``first`` or ``policy``.
    :return: whether one changed.
    """
    changed = False
    for name, text in texts(place, toolchain, options, mode).items():
        path = place / "bin" / name
        if path.is_file() and path.read_text(errors="replace") == text:
            continue
        with replacing(path) as scratch:
            scratch.write_text(text)
            scratch.chmod(0o755)
        changed = True
    return changed


def texts(place: Path, toolchain: Toolchain, options: Options, mode: str) -> dict[str, str]:
    """Return the text of each compiler by its name."""
    folder = '"$place/logs/$id"'
    clang = toolchain.clang
    texts = {}
    for name in compiler_names(toolchain.major):
        compiler = shlex.quote(str(clang.with_name("clang++" if "++" in name else "clang")))
        if mode == FIRST:
            # In C the front end takes less time than to take the bitcode out of the object.
            cxx = "++" in name
            make_object = (_COMPILE_WITH_BITCODE if cxx else _COMPILE).format(
                compiler=compiler,
                options=_shell(_quiet(options.of_first(_FOLDER, cxx=cxx)), folder),
                folder=folder,
                objcopy=shlex.quote(str(clang.with_name("llvm-objcopy"))),
                removal=_shell(removal(_FOLDER), folder),
            )
        else:
            options_text = _shell(_quiet(options.under_policy), folder)
            make_object = _COMPILE.format(compiler=compiler, options=options_text)
        texts[name] = _SCRIPT.format(
            place=shlex.quote(str(place)),
            compiler=compiler,
            header=HEADER,
            mode=mode,
            end=END,
            linked=LINKED,
            folder=folder if mode == FIRST else "''",
            make_object=make_object,
            other_options=_shell(options.without_summary(cxx="++" in name), folder),
        )
    return texts


def _quiet(options: Sequence[str]) -> list[str]:
    """Return options that do not warn where nothing is compiled."""
    return ["--start-no-unused-arguments", *options, "--end-no-unused-arguments"]


def _shell(words: Sequence[str], folder: str) -> str:
    """Return ``words`` for a shell; :data:`_FOLDER` in them becomes ``folder``, a shell's word."""
    return " ".join(
        f"'{word}'".replace(_FOLDER, f"'{folder}'") if _FOLDER in word else shlex.quote(word)
        for word in words
    )
