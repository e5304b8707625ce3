"""The compilers of a build: shell scripts that add the options and leave a record.

A shell starts in a millisecond; Python would take fifteen for each compile.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.cli.make.place import COMPILERS, END, HEADER, POLICY, STOCK
from nestor.files import replacing

_LOGS: Final = "@logs@"
_SCRIPT: Final = """\
#!/bin/sh
# Written by 'nestor make': {compiler} under a policy, with a record of each object.
place={place}
compile= lto= response=
for word do
  case $word in
    -c) compile=${{compile:-yes}} ;;
    -E|-S|-M|-MM|-fsyntax-only|-emit-llvm|-emit-ast|--analyze) compile=no ;;
    -flto|-flto=*) lto=yes ;;
    -fno-lto) lto= ;;
    @*) response=yes ;;
  esac
done
if [ "$lto" ]; then
  exec {compiler} "$@"
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
  printf '%s\\0' '{header}' {mode} "$PWD" {logs} {compiler} "$@" {end} \\
    >|"$place/compiles/$id" 2>/dev/null
  exec {compiler} --start-no-unused-arguments {object_options} --end-no-unused-arguments "$@"
fi
exec {compiler} --start-no-unused-arguments {other_options} --end-no-unused-arguments "$@"
"""


@dataclass(frozen=True)
class Options:
    """The driver's options that a build's compilers add."""

    stock: tuple[str, ...]
    """For an object by the stock heuristic, whose decisions are logged."""
    under_policy: tuple[str, ...]
    """For an object under the policy, with the summary if there is one."""
    other: tuple[str, ...]
    """For what makes no object of its own, such as a compile and link in one command."""

    def of_stock(self, logs: str) -> list[str]:
        """Return the options of a stock compile that writes its log into the folder ``logs``."""
        log = ["-Xclang", "-mllvm", "-Xclang", f"-nestor-log={logs}/"]
        return [*self.stock, *log, "-Xclang", "-fembed-bitcode=all"]


def write(place: Path, clang: Path, options: Options, mode: str) -> bool:
    """Write the compilers into ``place/bin``.

    :param clang: the real compiler; clang++ lies beside it.
    :param mode: how objects are to be compiled, ``stock`` or ``policy``.
    :return: whether one changed.
    """
    changed = False
    for name, text in texts(place, clang, options, mode).items():
        path = place / "bin" / name
        if path.is_file() and path.read_text(errors="replace") == text:
            continue
        with replacing(path) as scratch:
            scratch.write_text(text)
            scratch.chmod(0o755)
        changed = True
    return changed


def texts(place: Path, clang: Path, options: Options, mode: str) -> dict[str, str]:
    """Return the text of each compiler by its name."""
    logs = '"$place/logs/$id"'
    if mode == STOCK:
        words = _shell(options.of_stock(_LOGS)).replace(_LOGS, f"'{logs}'")
    else:
        words = _shell(options.under_policy)
    return {
        name: _SCRIPT.format(
            place=shlex.quote(str(place)),
            compiler=shlex.quote(str(clang.with_name("clang++" if "++" in name else "clang"))),
            header=HEADER,
            mode=mode,
            end=END,
            logs=logs if mode == STOCK else "''",
            object_options=words,
            other_options=_shell(options.other),
        )
        for name in COMPILERS
    }


def _shell(words: Sequence[str]) -> str:
    # A word with the mark is always quoted, so that the folder can be put in between.
    return " ".join(f"'{word}'" if _LOGS in word else shlex.quote(word) for word in words)


__all__ = ["POLICY", "STOCK", "Options", "texts", "write"]
