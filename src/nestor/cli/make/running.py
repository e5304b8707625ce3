"""Run the command of a build with the compilers that lie in the folder beside it."""

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Final

from nestor.cli.make.place import VARIABLE, compilers_folder
from nestor.corpus.capture.child import run_to_end
from nestor.errors import NestorError

_STDERR: Final = 2


def run(command: Sequence[str], folder: str, *, cached: bool, quiet: bool = False) -> int:
    """Run ``command`` to its end and return its exit status, 128 + N after signal N.

    :param folder: that of ``nestor make``.
    :param cached: whether ccache may answer; without it every compile leaves its record.
    :param quiet: send what it prints to standard error, where it mixes with no JSON.
    :raises NestorError: if there is no such command.
    """
    settings = environment(os.environ, folder, cached=cached)
    program = shutil.which(command[0], path=settings["PATH"])
    if program is None:
        raise NestorError(f"There is no command {command[0]!r}.")
    return run_to_end([program, *command[1:]], settings, output=_STDERR if quiet else None)


def environment(own: Mapping[str, str], folder: str, *, cached: bool) -> dict[str, str]:
    """Return the environment of a build.

    ``CC`` and ``CXX`` name the compilers, which are first on ``PATH`` too; a ``ccache`` before the
    user's own compiler stays there.
    """
    compilers = compilers_folder(folder)
    settings = {**own, VARIABLE: folder, "PATH": f"{compilers}:{own.get('PATH', os.defpath)}"}
    for name, compiler in (("CC", "clang"), ("CXX", "clang++")):
        before = "ccache " if own.get(name, "").startswith("ccache ") else ""
        settings[name] = f"{before}{compilers}/{compiler}"
    if not cached:
        settings["CCACHE_DISABLE"] = "1"
    return settings
