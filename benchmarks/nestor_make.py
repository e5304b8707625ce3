"""What ``nestor make`` costs and gives: builds of real projects, interleaved with stock ones.

    python -m benchmarks.nestor_make [--projects lua ninja jsoncpp lua-g] [--rounds 3] [--files 10]
        [--edits 9] [--json FILE]

Sources come from the Debian archive, or from ``--sources``; ``NAME-g`` is NAME with debug
information. In each round a project is built by the stock compiler, by ``nestor make``, by
``nestor make --again 100``, and twice from source by ``nestor flags`` with the summaries that these
two have made. The objects of both must be those from source, byte for byte, and so must those of a
build of ``nestor make`` after a clean. All builds are made in a folder of one name, and no round
finds inlining trials that were kept by one before it.

After the last round a line is added to each of ``--files`` source files that the build compiles,
drawn at random, ``--edits`` times in turn. After each edit stock, ``nestor make`` and the plain
command with the compilers that ``nestor make`` has left build again, in turn who is first. What
counts is the median of the ratios to the stock build of the same turn: where processor times
differ by a fifth from one build to the next, it is nearer to the truth than the least of few.

Costs are CPU seconds of the build command with everything that it starts, one job at a time, over
those of stock: medians over the rounds. Sizes are read-only bytes and code of the linked program.
"""

import argparse
import compileall
import hashlib
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import nestor
from benchmarks import machine, record
from benchmarks.build_systems import fetched, nestor_command
from benchmarks.compile_cpu import children_cpu_seconds, median_interval
from nestor.compiler.cache import cache_place
from nestor.compiler.toolchain import Toolchain, find
from nestor.corpus.fetch import debian

_OZ: Final = "-Oz -ffunction-sections -fdata-sections"
_LINK: Final = "-fuse-ld=lld -Wl,--gc-sections"


@dataclass(frozen=True)
class Case:
    """One project and how it is built."""

    program: str
    """Whose size is measured, below the folder of the build."""
    edited: str
    """Which source files get another line, if they are compiled: a pattern."""
    build: tuple[str, ...]
    clean: tuple[str, ...]
    configure: tuple[str, ...] = ()
    flags_in_command: bool = False
    """The options are in the command that builds, not in the one that configures."""


def _cmake(program: str, edited: str, *settings: str) -> Case:
    configure = ("cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None")
    options = ("-DCMAKE_C_FLAGS=@flags@", "-DCMAKE_CXX_FLAGS=@flags@")
    link = f"-DCMAKE_EXE_LINKER_FLAGS={_LINK}"
    ninja = ("ninja", "-C", "build", "-j1")
    return Case(
        f"build/{program}",
        edited,
        ninja,
        (*ninja, "-t", "clean"),
        (*configure, *options, link, *settings),
    )


CASES: Final[Mapping[str, Case]] = {
    "ninja": _cmake("ninja", "src/*.cc", "-DBUILD_TESTING=OFF"),
    "jsoncpp": _cmake(
        "bin/jsontestrunner_exe",
        "src/*/*.cpp",
        "-DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF",
        "-DBUILD_OBJECT_LIBS=OFF",
        "-DBUILD_SHARED_LIBS=OFF",
    ),
    "lua": Case(
        "src/lua",
        "src/*.c",
        ("make", "-C", "src", "posix", "CC=clang-22", "MYCFLAGS=@flags@", f"MYLDFLAGS={_LINK}"),
        ("make", "-C", "src", "clean"),
        flags_in_command=True,
    ),
}
_WAYS: Final = ("stock", "make", "all", "flags", "flags of all")
_DEBUG: Final = "-g"
"""Ends the name of a project that is built with debug information."""
PROJECTS: Final = [*sorted(CASES), *(f"{name}{_DEBUG}" for name in sorted(CASES))]
_EDITED: Final = ("stock", "make", "plain")
_SEED: Final = 1
_SUMMARY_OF: Final = {"flags": "make", "flags of all": "all"}


class Bench:
    """Builds one project in several ways.

    Each way has a folder, which has the same name as all others while it is built.
    """

    def __init__(
        self, case: Case, sources: Path, folder: Path, nestor: Path, *, debug: bool
    ) -> None:
        self._case = case
        self._nestor = str(nestor)
        self._debug = debug
        self._present = folder / "present"
        self._folders = {way: folder / way.replace(" ", "-") for way in _WAYS}
        shutil.rmtree(folder, ignore_errors=True)
        for place in self._folders.values():
            shutil.copytree(sources, place, symlinks=True)
        self._folders["plain"] = self._folders["make"]
        self.messages: dict[str, str] = {}

    def configure(self, way: str) -> None:
        """Configure the build, which is not measured."""
        if self._case.configure:
            self._run(way, self._case.configure)

    def build(self, way: str) -> float:
        """Build, and return the CPU seconds that this took."""
        return self._run(way, self._case.build)

    def clean(self, way: str) -> None:
        """Remove what was built."""
        self._run(way, self._case.clean)

    def sources(self) -> list[str]:
        """Return the source files that the stock build has compiled, to be edited."""
        place = self._folders["stock"]
        objects = [Path(name) for name in self.objects("stock")]
        compiled = {(path.name.split(".")[0], part) for path in objects for part in path.parts}
        found = sorted(place.glob(self._case.edited))
        return [str(x.relative_to(place)) for x in found if (x.stem, x.parent.name) in compiled]

    def edit(self, way: str, source: str) -> None:
        """Add a line to a source file."""
        with (self._folders[way] / source).open("a") as file:
            file.write("/* edited */\n")

    def objects(self, way: str) -> Mapping[str, str]:
        """Return the SHA-256 of each object of the build."""
        place = self._folders[way]
        return {
            str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(place.rglob("*.o"))
            if "/CMakeFiles/3" not in str(path)
        }

    def sizes(self, way: str) -> tuple[int, int]:
        """Return the loadable read-only bytes of the program, and those of its code."""
        program = self._folders[way] / self._case.program
        text = subprocess.run(
            ["llvm-size-22", "-A", str(program)], capture_output=True, text=True, check=True
        ).stdout
        sections = {
            fields[0]: int(fields[1])
            for fields in map(str.split, text.splitlines())
            if len(fields) == 3 and fields[1].isdigit()
        }
        parts = (".text", ".rodata", ".eh_frame", ".eh_frame_hdr", ".gcc_except_table")
        return sum(sections.get(name, 0) for name in parts), sections[".text"]

    def _run(self, way: str, command: Sequence[str]) -> float:
        flags = f"-g {_OZ}" if self._debug else _OZ
        if way in _SUMMARY_OF:
            flags += f" {self._flags(self._folders[_SUMMARY_OF[way]] / '.nestor')}"
        words = [word.replace("@flags@", flags) for word in command]
        if way == "make":
            words = [self._nestor, "make", "--", *words]
        elif way == "all":
            words = [self._nestor, "make", "--again", "100", "--", *words]
        settings = {"CC": "clang-22", "CXX": "clang++-22", "CCACHE_DISABLE": "1"}
        if way == "plain":
            settings["PATH"] = f"{self._present}/.nestor/bin:{os.environ['PATH']}"
        self._folders[way].rename(self._present)
        before = children_cpu_seconds()
        done = subprocess.run(
            words,
            cwd=self._present,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        seconds = children_cpu_seconds() - before
        self._present.rename(self._folders[way])
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(words)}:\n{done.stdout[-3000:]}")
        if "compiled again" in done.stdout:
            self.messages[way] = done.stdout.partition("nestor: ")[2].partition(" objects")[0]
        print(way, shlex.join(command)[:60], f"{seconds:.2f} s", file=sys.stderr, flush=True)
        return seconds

    def _flags(self, place: Path) -> str:
        """Return the options of ``nestor flags`` that give the objects of ``nestor make``."""
        words = [self._nestor, "flags", "distilled", "--summary", str(place / "summary.txt")]
        if (place / "left.txt").is_file():
            words += ["--overrides", str(place / "left.txt")]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def measure(
    name: str, sources: Path, folder: Path, nestor: Path, rounds: int, files: int, edits: int
) -> list[Any]:
    """Return the row of one project.

    :raises RuntimeError: if a build fails, or builds that should give the same objects do not.
    """
    first: dict[str, list[float]] = {way: [] for way in _WAYS}
    case = CASES[name.removesuffix(_DEBUG)]
    for _ in range(rounds):
        shutil.rmtree(f"{cache_place()}/trials", ignore_errors=True)
        bench = Bench(case, sources, folder, nestor, debug=name.endswith(_DEBUG))
        for way in _WAYS:
            bench.configure(way)
            first[way].append(bench.build(way))
        objects = bench.objects("make")
        for way, other in _SUMMARY_OF.items():
            _demand_same(name, bench.objects(way), bench.objects(other))
        sizes = {way: bench.sizes(way) for way in _WAYS}
        bench.clean("make")
        bench.build("make")
        _demand_same(name, objects, bench.objects("make"))
    edited = edited_builds(bench, files, edits)

    def ratio(way: str, to: str) -> float:
        return statistics.median(a / b for a, b in zip(first[way], first[to], strict=True))

    def spread(way: str) -> list[float]:
        ratios = [times[way] / times["stock"] for times in edited]
        return [statistics.median(ratios), *median_interval(ratios)]

    def change(way: str) -> list[float]:
        return [100 * (sizes[way][part] / sizes["stock"][part] - 1) for part in (0, 1)]

    return [
        name,
        statistics.median(first["stock"]),
        bench.messages["make"],
        ratio("make", "stock"),
        change("make"),
        bench.messages["all"],
        ratio("all", "stock"),
        change("all"),
        ratio("flags of all", "stock"),
        statistics.median(times["stock"] for times in edited),
        spread("make"),
        spread("plain"),
    ]


def edited_builds(bench: Bench, files: int, edits: int) -> list[dict[str, float]]:
    """Return the CPU seconds of the builds after each edit, by way."""
    sources = bench.sources()
    random.Random(_SEED).shuffle(sources)
    turns = []
    for number in range(edits):
        first = number % len(_EDITED)
        for source in sources[:files]:
            times = {}
            for way in (*_EDITED[first:], *_EDITED[:first]):
                bench.edit(way, source)
                times[way] = bench.build(way)
            turns.append(times)
    return turns


def _demand_same(name: str, some: Mapping[str, str], others: Mapping[str, str]) -> None:
    """Compare the objects of two builds.

    :raises RuntimeError: if they differ.
    """
    different = [key for key in some.keys() | others.keys() if some.get(key) != others.get(key)]
    if different:
        raise RuntimeError(f"{name}: these objects differ: {', '.join(sorted(different))}")


COLUMNS: Final = (
    ("project", "{}"),
    ("stock build, CPU s", "{:.1f}"),
    ("compiled again", "{}"),
    ("first build / stock", "{:.2f}"),
    ("read-only bytes / code", record.CHANGES),
    ("compiled again, `--again 100`", "{}"),
    ("first build / stock, `--again 100`", "{:.2f}"),
    ("read-only bytes / code, `--again 100`", record.CHANGES),
    ("build with its summary / stock", "{:.2f}"),
    ("stock build after an edit, CPU s", "{:.2f}"),
    ("`nestor make` after an edit / stock [95 %]", "{:.2f} [{:.2f}, {:.2f}]"),
    ("plain build after an edit / stock [95 %]", "{:.2f} [{:.2f}, {:.2f}]"),
)


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", nargs="+", choices=PROJECTS, default=PROJECTS)
    parser.add_argument("--rounds", type=int, default=3, help="builds in each way")
    parser.add_argument("--files", type=int, default=10, help="to edit")
    parser.add_argument("--edits", type=int, default=9, help="of each of them")
    parser.add_argument("--sources", type=Path, help="a folder with the projects' sources")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    toolchain: Toolchain = find()
    # As pip does: a first run would pay for it otherwise, and each where Python may not write.
    compileall.compile_dir(Path(nestor.__file__).parent, quiet=1)
    rows = []
    with tempfile.TemporaryDirectory(prefix="nestor-make-") as text:
        folder = Path(text)
        os.environ["NESTOR_CACHE"] = str(folder / "cache")
        command = nestor_command(folder)
        # Made once, whatever is built: the plugin, and copies of the policies that it has read.
        subprocess.run([command, "make", "--", "true"], cwd=folder, stderr=subprocess.DEVNULL)
        archive = None if options.sources else debian.Archive(folder / "apt")
        for name in options.projects:
            project = name.removesuffix(_DEBUG)
            if archive is None:
                place = options.sources / project
            else:
                place = fetched(project, archive, folder / name)
            row = measure(
                name, place, folder / "work", command, options.rounds, options.files, options.edits
            )
            rows.append(row)
            print(*row, sep="\t", flush=True)
    if options.json is not None:
        about = (
            "Builds by nestor make: CPU over stock, objects compiled again, linked sizes."
            f" Medians of {options.rounds} interleaved rounds, and of {options.edits} edits of each"
            f" of {options.files} files."
        )
        tables = {"builds": record.table(COLUMNS, rows)}
        record.write(options.json, about, tables, machine.describe(toolchain))


if __name__ == "__main__":
    main()
