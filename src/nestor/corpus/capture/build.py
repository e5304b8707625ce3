"""Run a build, or the commands that a build would run, with the compiler wrappers."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import nestor
from nestor.compiler.orphans import marked
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.capture.any_build import compilers_on_path
from nestor.corpus.capture.database import Command, is_built, read_commands
from nestor.corpus.capture.journal import Journal
from nestor.corpus.capture.source_tree import configured_from
from nestor.corpus.layout import JOURNAL
from nestor.corpus.level import DEFAULT_LEVEL, Level
from nestor.errors import NestorError
from nestor.files import replacing
from nestor.messages import build_error
from nestor.progress import Progress, silent
from nestor.temporary import run_folder

# CMake keeps the wrapper's path: later it runs without our environment, and must find its clang.
_WRAPPER = (
    "import os, sys; os.environ.setdefault('NESTOR_CLANG', {clang!r}); "
    "os.environ.setdefault('NESTOR_CLANGXX', {clangxx!r}); "
    "sys.path.insert(0, {package!r}); from nestor.cli.corpus.cc import run; "
    "sys.exit(run({language!r}, sys.argv[1:]))"
)
_C_NAMES = ("cc", "gcc", "clang", "clang-{major}")
_CXX_NAMES = ("c++", "g++", "clang++", "clang++-{major}")


class BuildError(NestorError):
    """A build that did not succeed; the text ends with what it last said."""


@dataclass(frozen=True)
class Wrappers:
    """A folder of compiler wrappers, and where what they record goes."""

    toolchain: Toolchain
    folder: Path
    corpus: Path
    """Gets the journal."""
    project: str
    """The project's name."""
    source: Path
    """The folder that names of modules start from."""
    level: Level = DEFAULT_LEVEL
    """The optimisation level of the recorded modules."""
    lines: bool = False
    """Keep the numbers of source lines in the modules."""
    of_anyone: bool = False
    """For builds that were written for the system's compilers and cannot be changed: the wrappers
    stand in for every compiler of the path (``gcc-12``, ``x86_64-linux-gnu-g++``), what clang
    refuses the system's own compiler compiles, and shared libraries are recorded as programs."""

    @property
    def cc(self) -> Path:
        """The C wrapper."""
        return self.folder / "cc"

    @property
    def cxx(self) -> Path:
        """The C++ wrapper."""
        return self.folder / "c++"

    def write(self) -> "Wrappers":
        """Write the wrappers: ``nestor cc`` and ``nestor c++`` as one word each.

        They start faster than the command does: of Python's packages only ours is needed. They
        have the usual names of compilers too, for builds that ignore ``CC``.
        """
        package = str(Path(nestor.__file__).parent.parent)
        major = self.toolchain.version.partition(".")[0]
        for language, usual in (("c", _C_NAMES), ("c++", _CXX_NAMES)):
            names = {name.format(major=major) for name in usual}
            if self.of_anyone:
                names |= compilers_on_path(language)
            code = _WRAPPER.format(
                package=package,
                language=language,
                clang=str(self.toolchain.clang),
                clangxx=str(self.toolchain.clangxx),
            )
            command = f"{shlex.quote(sys.executable)} -IS -c {shlex.quote(code)}"
            for name in sorted(names):
                # Another build of the same corpus may be running the wrapper that is there.
                with replacing(self.folder / name) as scratch:
                    scratch.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
                    scratch.chmod(0o755)
        return self

    @staticmethod
    def word(wrapper: Path) -> str:
        """Return a wrapper as one word of a command line, which may split words at blanks.

        Under its name alone it is found too: its folder is the first of the path.
        """
        return wrapper.name if re.search(r"\s", str(wrapper)) else str(wrapper)

    def environment(self, *, capture: bool = True) -> dict[str, str]:
        """Return the environment of a build; without ``capture`` the wrappers are plain."""
        plain = {k: v for k, v in os.environ.items() if not k.startswith("NESTOR_")}
        ours = {
            "CC": self.word(self.cc),
            "CXX": self.word(self.cxx),
            "PATH": f"{self.folder}{os.pathsep}{plain.get('PATH', os.defpath)}",
            "NESTOR_CLANG": str(self.toolchain.clang),
            "NESTOR_CLANGXX": str(self.toolchain.clangxx),
            # A compilation that a compiler cache answers would never reach the wrapper.
            "CCACHE_DISABLE": "1",
            "SCCACHE_RECACHE": "1",
            "SOURCE_DATE_EPOCH": plain.get("SOURCE_DATE_EPOCH", "0"),
        }
        where = {
            "NESTOR_CORPUS": str(self.corpus),
            "NESTOR_PROJECT": self.project,
            "NESTOR_SOURCE": str(self.source),
            "NESTOR_LEVEL": self.level,
        } | ({"NESTOR_LINES": "1"} if self.lines else {})
        if self.of_anyone:
            gcc, gxx = shutil.which("gcc"), shutil.which("g++")
            where |= {"NESTOR_SHARED": "1"}
            where |= {"NESTOR_GCC": gcc} if gcc else {}
            where |= {"NESTOR_GXX": gxx} if gxx else {}
        return {**plain, **ours, **(where if capture else {})}


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run one command of a build in ``folder``; raises :class:`BuildError` if it fails."""
    ours = {**environment, **marked(run_folder())}
    try:
        done = subprocess.run(
            command, cwd=folder, env=ours, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=3600, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        said = build_error((done.stdout + done.stderr).decode(errors="replace")) or "no message"
        raise BuildError(f"{Path(command[0]).name} failed ({done.returncode}): {said}")


def run_for_user(
    command: Sequence[str],
    corpus: Path,
    project: str | None,
    toolchain: Toolchain,
    level: Level = DEFAULT_LEVEL,
    stdout: TextIO | None = None,
    *,
    lines: bool = False,
) -> int:
    """Run the user's own build in this folder and return its exit status.

    Its output goes to the terminal, or to ``stdout`` if that is given. Afterwards the journal
    tells whether the build called a wrapper at all (``Journal.was_called``).

    The wrappers stay in the corpus, because some builds (CMake's) keep their path.
    """
    folder = corpus / JOURNAL / "bin"
    source = configured_from(Path.cwd()) or Path.cwd()
    wrappers = Wrappers(
        toolchain, folder, corpus, project or source.name or "project", source, level, lines
    ).write()
    Journal(corpus / JOURNAL).forget_calls()
    try:
        return subprocess.run(
            command, env=wrappers.environment(), stdout=stdout, check=False
        ).returncode
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be run: {error.strerror}.") from error


@dataclass(frozen=True)
class Replayed:
    """What was found in a database."""

    compilations: int
    links: int
    """Programs whose link is on record, built or not."""
    unbuilt: int
    """Those that were not linked, because they are not built."""


def replay_database(
    place: Path,
    corpus: Path,
    project: str | None,
    toolchain: Toolchain,
    level: Level = DEFAULT_LEVEL,
    jobs: int = 2,
    progress: Progress = silent,
    *,
    lines: bool = False,
) -> Replayed:
    """Capture the commands of a ``compile_commands.json``, or of the folder of a build.

    The compilers that it names are not run: clang takes their place and stops before optimisation,
    so no object is written. Programs are captured where a build by Ninja or CMake has linked them,
    whatever compiler it used: an object file that is there tells which module it was made of.

    :raises NestorError: if there are no commands.
    """
    commands = read_commands(place)
    source = configured_from(commands.folder.resolve()) or commands.source
    folder = corpus / JOURNAL / "bin"
    wrappers = Wrappers(
        toolchain, folder, corpus, project or source.name or "project", source, level, lines
    ).write()
    environment = wrappers.environment() | {"NESTOR_CAPTURE_ONLY": "1"}

    def replay(command: Command) -> None:
        wrapper = wrappers.cxx if command.language == "c++" else wrappers.cc
        run([str(wrapper), *command.arguments], command.directory, environment)

    built = [link for link in commands.links if is_built(link)]
    total = len(commands.compilations) + len(built)
    done = 0
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        for stage in (commands.compilations, built):  # Links look for what was compiled.
            for _ in pool.map(replay, stage):
                done += 1
                progress("capture", done, total)
    links = len(commands.links)
    return Replayed(len(commands.compilations), links, links - len(built))
