"""A build again without Python: the script that ``nestor make`` leaves for it in the cache.

A build after an edit compiles one file, and Python takes longer to start than some files take to
compile. So the command ``nestor`` is a shell script (``src/launcher/nestor``), which reads what is
left here for the present folder. That runs the build if the words, the environment and all files
that decide about its compilers are as they were; if not, it returns, and Python takes over.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nestor.cli.make.place import VARIABLE, present_folder
from nestor.cli.make.running import environment
from nestor.cli.make.words import Words
from nestor.cli.use import remembered
from nestor.compiler.cache import cache_place
from nestor.files import write_atomically

_STARTED_BY_LAUNCHER: Final = "nestor-python"
_VARIABLES: Final = ("NESTOR_LLVM", VARIABLE, "HOME", "PYTHONPATH", "PATH", "CC", "CXX")
"""They decide where Nestor, the compiler, the policies and the folder of a build are found, and
what the build's own variables are."""
_MOST_RECORDS: Final = 5000
"""Records of compiles after which Python merges them into ``objects/``."""
_SCRIPT: Final = """\
# Written by 'nestor make': runs the build if nothing has changed on which its compilers depend.
again() {{ # WORDS OF nestor…; to return is to leave the build to Python
  [[ $nestor_folder == {launcher} && $PWD -ef {present} ]] || return
  [[ "{variables}" == {values} ]] || return
  for nestor_word in {words}; do
    while [[ $1 == -q || $1 == --quiet ]]; do
      shift
    done
    [[ $1 == "$nestor_word" ]] || return
    shift
  done
  [[ ! -e {place}/unfinished ]] || return
  # A file that is not there has no line, and one more when it appears.
  [ "$(LC_ALL=C stat -L -c '%s %.9Y %.9Z %i' -- {files} 2>/dev/null)" = {stamps} ] || return
  # While there are no objects, Python says at which levels the policies decide.
  for nestor_record in {place}/objects/*; do
    [[ -e $nestor_record ]] || return
    break
  done
  nestor_number=0
  for nestor_record in {place}/compiles/*; do
    nestor_number=$((nestor_number + 1))
  done
  [[ $nestor_number -le {most} ]] || return
  # Python says what is wrong with a command that cannot be run.
  PATH={path} type -P -- "$1" >/dev/null || return
  export {settings}
  exec -- "$@"
}}
again "$@"
"""


def keep(own: Words, stamps: Mapping[str, str]) -> None:
    """Leave the script for the next ``nestor make`` with the same words in the present folder.

    A cache that cannot be written is no error.

    :param stamps: of all files that the compilers of the build depend on, those included, as
        :func:`~nestor.cli.use.remembered.stamp` gives them.
    """
    asks_for_more = own.renew or own.json or (own.all_again and os.path.exists(own.left))  # noqa: PTH110
    if Path(sys.argv[0]).name != _STARTED_BY_LAUNCHER or asks_for_more:
        return
    folder = present_folder()
    stamps = {**remembered.stamps([sys.argv[0], sys.executable]), **stamps}
    lines = [_as_stat_prints(one) for one in stamps.values() if one != remembered.ABSENT]
    values = ":".join(os.environ.get(name, "") for name in _VARIABLES)
    of_build = environment(os.environ, own.folder, cached=True)
    settings = {name: of_build[name] for name in (VARIABLE, "PATH", "CC", "CXX")}
    text = _SCRIPT.format(
        launcher=shlex.quote(os.path.dirname(sys.argv[0])),  # noqa: PTH120  as the shell names it
        present=shlex.quote(os.getcwd()),  # noqa: PTH109  the shell's may be that of a link
        variables=":".join(f"${name}" for name in _VARIABLES),
        values=shlex.quote(values),
        words=shlex.join(["make", *own.words, "--"]),
        place=shlex.quote(own.folder),
        files=shlex.join(stamps),
        stamps=shlex.quote("\n".join(lines)),
        most=_MOST_RECORDS,
        path=shlex.quote(settings["PATH"]),
        settings=" ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items()),
    )
    try:
        write_atomically(Path(f"{cache_place()}/builds{folder}/again.sh"), os.fsencode(text))
    except OSError:
        return


def _as_stat_prints(stamp: str) -> str:
    """Return a stamp with its times in seconds."""
    size, *times, inode = stamp.split(" ")
    return " ".join([size, *(f"{time[:-9] or 0}.{time[-9:]:>09}" for time in times), inode])
