"""Builds by CMake, Meson, autotools and make under a policy, and the objects that they should have.

The same sources are built in the same folder several times: by the stock compiler behind a script
that records every command line, and then in each way that docs/guide/build-systems.md shows. What
an object should be comes from the record: the recorded command line with Nestor's options in front.
"""

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[1]
WAYS: Final = ("flags", "installed", "wrapper", "ccache, flags", "ccache, installed")
"""``nestor flags``, ``nestor flags --install``, ``nestor clang``; ccache in front of two."""

_SOURCE: Final = re.compile(r"\.(c|cc|cpp|cxx)$")
_RECORDER: Final = """\
#!/bin/sh
file=$(mktemp {records}/XXXXXXXX)
printf '%s\\0' "$PWD" {compiler} "$@" >"$file"
exec {compiler} "$@"
"""


def write_command(folder: Path) -> Path:
    """Write the command ``nestor`` of these sources into ``folder``, as pip would; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    by_python = folder / "nestor-python"
    by_python.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(_ROOT / 'src')!r})\n"
        "from nestor.cli.start import entry\nentry()\n"
    )
    by_python.chmod(0o755)
    return Path(shutil.copy(_ROOT / "src" / "launcher" / "nestor", folder))


@dataclass(frozen=True)
class Compilers:
    """What a build system is told to compile with, as a shell reads it."""

    cc: str
    cxx: str
    flags: str = ""
    """Options for every compile."""


System = Callable[[Path, Compilers, str], list[list[str]]]
"""Sources, compilers and options of the level → commands, to be run in the sources' folder."""


def cmake(build_type: str, *settings: str) -> System:
    """Return a build by CMake and ninja.

    :param build_type: whose own options the level's replace; CMake's would come last and win.
    """

    def commands(_: Path, use: Compilers, level: str) -> list[list[str]]:
        each = [
            f"-DCMAKE_{language}_FLAGS{suffix}={value}"
            for language in ("C", "CXX")
            for suffix, value in (("", use.flags), (f"_{build_type.upper()}", f"{level} -DNDEBUG"))
        ]
        kind = f"-DCMAKE_BUILD_TYPE={build_type}"
        return [
            ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", kind, *each, *settings],
            ["ninja", "-C", "build"],
        ]

    return commands


def meson(*settings: str) -> System:
    """Return a build by Meson and ninja in which a warning is an error."""

    def commands(_: Path, use: Compilers, level: str) -> list[list[str]]:
        words = f"{level} {use.flags}".rstrip()
        each = [f"-D{language}_args={words}" for language in ("c", "cpp")]
        werror = ["-Dbuildtype=minsize", "-Dwerror=true"]
        return [["meson", "setup", "build", *werror, *each, *settings], ["ninja", "-C", "build"]]

    return commands


def autotools(*settings: str, cxx: str = "") -> System:
    """Return a build by ``./configure`` and make.

    :param cxx: further options for C++.
    """

    def commands(_: Path, use: Compilers, level: str) -> list[list[str]]:
        words = f"{level} {use.flags}".rstrip()
        flags = [f"CFLAGS={words}", f"CXXFLAGS={words} {cxx}".rstrip()]
        return [["./configure", f"CC={use.cc}", f"CXX={use.cxx}", *flags, *settings], ["make"]]

    return commands


def make(*settings: str, flags: str = "CFLAGS", level_too: bool = True) -> System:
    """Return a build by a plain makefile.

    :param flags: its variable for the user's options.
    :param level_too: whether the level goes there too; it may be among ``settings``.
    """

    def commands(_: Path, use: Compilers, level: str) -> list[list[str]]:
        words = f"{level if level_too else ''} {use.flags}".strip()
        return [["make", f"CC={use.cc}", f"CXX={use.cxx}", f"{flags}={words}", *settings]]

    return commands


@dataclass(frozen=True)
class Project:
    """Sources and how they are built."""

    name: str
    place: str
    """The build system, for people."""
    sources: Path
    """A folder, which is copied for each build."""
    system: System
    level: str = "-Oz"


@dataclass(frozen=True)
class Policy:
    """The words after ``nestor flags`` or ``nestor clang``, and what runs ``nestor``."""

    words: str
    nestor: Path
    """An executable."""
    clang: Path

    def flags(self, *more: str) -> str:
        """Return what ``nestor flags`` prints."""
        command = [str(self.nestor), "flags", *shlex.split(self.words), *more]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def compilers(self, way: str, folder: Path) -> Compilers:
        """Return how a build is told to use this policy in one of :data:`WAYS`.

        :param folder: where ``--install`` writes.
        """
        cc, cxx = str(self.clang), f"{self.clang}++"
        if way == "wrapper":
            return Compilers(*(f"{self.nestor} {n} {self.words} --" for n in ("clang", "clang++")))
        before = "ccache " if way.startswith("ccache") else ""
        if way.endswith("flags"):
            return Compilers(before + cc, before + cxx, self.flags())
        self.flags("--install", str(folder))
        return Compilers(f"{before}{folder}/clang", f"{before}{folder}/clang++")


@dataclass(frozen=True)
class Built:
    """The objects of one build by their path below the sources."""

    objects: Mapping[str, str]
    """SHA-256 of each."""
    seconds: float
    cached: tuple[int, int] = (0, 0)
    """Hits of ccache and calls that it could cache."""


@dataclass
class Bench:
    """Builds one project in several ways in one place."""

    project: Project
    work: Path
    compiles: dict[str, tuple[Path, list[str]]] = field(default_factory=dict)
    """The folder and the command line by which stock makes each object."""

    def stock(self, clang: Path) -> Built:
        """Build by the stock compiler and record how each object is made."""
        records = self.work / "records"
        records.mkdir(parents=True)
        for name, compiler in (("clang", clang), ("clang++", Path(f"{clang}++"))):
            script = self.work / "recorders" / name
            script.parent.mkdir(exist_ok=True)
            words = {"records": shlex.quote(str(records)), "compiler": shlex.quote(str(compiler))}
            script.write_text(_RECORDER.format(**words))
            script.chmod(0o755)
        recorders = self.work / "recorders"
        built = self.build(Compilers(f"{recorders}/clang", f"{recorders}/clang++"))
        for record in records.iterdir():
            folder, *command = record.read_text().split("\0")[:-1]
            if "-c" not in command:
                continue
            if "-o" not in command:
                source = next((w for w in reversed(command) if _SOURCE.search(w)), "none")
                command += ["-o", f"{Path(source).stem}.o"]
            out = Path(folder, command[command.index("-o") + 1])
            name = os.path.relpath(out, self._folder)
            if name in built.objects:
                self.compiles[name] = (Path(folder), command)
        absent = built.objects.keys() - self.compiles.keys()
        assert not absent, f"no command line was recorded for {sorted(absent)}"
        return built

    def direct(self, flags: str) -> Mapping[str, str]:
        """Make each object by its recorded command line with ``flags``, where it was built last."""
        digests = {}
        scratch = self.work / "direct.o"
        for name, (folder, command) in self.compiles.items():
            words = [command[0], *shlex.split(flags), *command[1:]]
            words[words.index("-o") + 1] = str(scratch)
            subprocess.run(words, cwd=folder, check=True, capture_output=True)
            digests[name] = hashlib.sha256(scratch.read_bytes()).hexdigest()
        return digests

    def build(
        self,
        use: Compilers,
        environment: Mapping[str, str] | None = None,
        before_compiles: Callable[[], object] = lambda: None,
    ) -> Built:
        """Build afresh.

        :param before_compiles: called after what configures the build.
        :raises RuntimeError: with the last lines of what was printed, if a command fails.
        """
        self._place(self.project.sources)
        before = os.times()
        commands = self.project.system(self._folder, use, self.project.level)
        for command in commands:
            if command is commands[-1]:  # what configure steps compile is not counted
                before_compiles()
            self._run(command, use, environment)
        seconds = os.times().elapsed - before.elapsed
        return Built(self._objects(), seconds)

    def cached(self, use: Compilers, folder: Path) -> tuple[Built, Built]:
        """Build twice through ccache with an empty cache, and return both builds.

        The second begins as the first did after its configure steps, which take most of the time.
        """
        environment = {"CCACHE_DIR": str(folder), "CCACHE_NOCOMPRESS": "1"}
        zero = functools.partial(
            subprocess.run, ["ccache", "-z"], env=os.environ | environment, check=True, stdout=-3
        )
        configured = self.work / "configured"

        def keep() -> None:
            shutil.copytree(self._folder, configured, symlinks=True)
            zero()

        cold = replace(self.build(use, environment, keep), cached=_statistics(environment))
        self._place(configured)
        shutil.rmtree(configured)
        zero()
        before = os.times()
        self._run(self.project.system(self._folder, use, self.project.level)[-1], use, environment)
        seconds = os.times().elapsed - before.elapsed
        return cold, Built(self._objects(), seconds, _statistics(environment))

    def _place(self, sources: Path) -> None:
        """Copy ``sources`` to where they are built, and nothing else is there."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(sources, self._folder, symlinks=True)

    def _run(
        self, command: Sequence[str], use: Compilers, environment: Mapping[str, str] | None
    ) -> None:
        """Run one command of a build."""
        settings = {"CC": use.cc, "CXX": use.cxx}  # for CMake and Meson
        # Some projects, jsoncpp for one, use ccache unasked.
        settings |= dict(environment or {"CCACHE_DISABLE": "1"})
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)}:\n{done.stdout[-3000:]}")

    @property
    def _folder(self) -> Path:
        return self.work / "sources"

    def _objects(self) -> Mapping[str, str]:
        """Return the digests of all objects, without those of configure steps."""
        return {
            str(path.relative_to(self._folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self._folder.rglob("*.o"))
            if not re.search(r"CMakeFiles/[\d.]+/|meson-private|conftest", str(path))
        }


def _statistics(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return ccache's hits, and its hits and misses."""
    done = subprocess.run(
        ["ccache", "--print-stats"],
        env=os.environ | dict(environment),
        capture_output=True,
        text=True,
        check=True,
    )
    counts = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    hits = counts["direct_cache_hit"] + counts["preprocessed_cache_hit"]
    return hits, hits + counts["cache_miss"]
