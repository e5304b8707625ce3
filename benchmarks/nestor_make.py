"""What ``nestor make`` costs and gives: builds of real projects, interleaved with stock ones.

    python -m benchmarks.nestor_make [--projects ninja jsoncpp lua] [--rounds 1] [--json FILE]

Sources come from the Debian archive, or from ``--sources``. In each round a project is built by the
stock compiler, by ``nestor flags`` with the summary of that build, and by ``nestor make``; then a
line is added to one source file, and all three build again. Costs are CPU seconds of the build
command with everything that it starts, one job at a time, over those of stock. Sizes are loadable
bytes of the program, and of its code. At last the build of ``nestor make`` is cleaned and made
again: its objects must be those of the first time, byte for byte.
"""

import argparse
import hashlib
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.build_systems import _command
from nestor.compiler.toolchain import Toolchain, find
from nestor.corpus.fetch import debian
from nestor.corpus.fetch.tiers import recipes

_OZ: Final = "-Oz -ffunction-sections -fdata-sections"
_LINK: Final = "-fuse-ld=lld -Wl,--gc-sections"


@dataclass(frozen=True)
class Case:
    """One project and how it is built."""

    program: str
    """Whose size is measured, below the folder of the build."""
    edited: str
    """The source file that gets another line."""
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
    "ninja": _cmake("ninja", "src/build.cc", "-DBUILD_TESTING=OFF"),
    "jsoncpp": _cmake(
        "bin/jsontestrunner_exe",
        "src/lib_json/json_writer.cpp",
        "-DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF",
        "-DBUILD_OBJECT_LIBS=OFF",
        "-DBUILD_SHARED_LIBS=OFF",
    ),
    "lua": Case(
        "src/lua",
        "src/lvm.c",
        ("make", "-C", "src", "posix", "CC=clang-22", "MYCFLAGS=@flags@", f"MYLDFLAGS={_LINK}"),
        ("make", "-C", "src", "clean"),
        flags_in_command=True,
    ),
}
_WAYS: Final = ("stock", "flags", "make")


class Bench:
    """Builds one project in three ways, each in a folder of its own."""

    def __init__(self, case: Case, sources: Path, folder: Path, nestor: Path) -> None:
        self._case = case
        self._nestor = str(nestor)
        self._folders = {way: folder / way for way in _WAYS}
        for place in self._folders.values():
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(sources, place, symlinks=True)
        self.messages = ""

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

    def edit(self) -> None:
        """Add a line to one source file in all three folders."""
        for place in self._folders.values():
            with (place / self._case.edited).open("a") as file:
                file.write("// edited\n" if self._case.edited.endswith("cc") else "/* edited */\n")

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
        flags = _OZ
        if way == "flags":
            summary = self._folders["make"] / ".nestor" / "summary.txt"
            words = [self._nestor, "flags", "distilled", "--summary", str(summary)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            flags += f" {done.stdout.strip()}"
        words = [word.replace("@flags@", flags) for word in command]
        if way == "make":
            words = [self._nestor, "make", "--", *words]
        settings = {"CC": "clang-22", "CXX": "clang++-22", "CCACHE_DISABLE": "1"}
        before = os.times()
        done = subprocess.run(
            words,
            cwd=self._folders[way],
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        after = os.times()
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(words)}:\n{done.stdout[-3000:]}")
        if way == "make" and "compiled again" in done.stdout:
            self.messages = done.stdout.partition("nestor: ")[2].partition(" with the")[0]
        return (
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )


def measure(name: str, sources: Path, folder: Path, nestor: Path, rounds: int) -> list[Any]:
    """Return the row of one project.

    :raises RuntimeError: if a build fails, or builds that should give the same objects do not.
    """
    first: dict[str, list[float]] = {way: [] for way in _WAYS}
    edited: dict[str, list[float]] = {way: [] for way in _WAYS}
    for _ in range(rounds):
        bench = Bench(CASES[name], sources, folder, nestor)
        for way in ("stock", "make", "flags"):  # flags reads the summary of make
            bench.configure(way)
            first[way].append(bench.build(way))
        objects = bench.objects("make")
        same = sum(objects[key] == value for key, value in bench.objects("flags").items())
        sizes = {way: bench.sizes(way) for way in _WAYS}
        bench.clean("make")
        bench.build("make")
        if bench.objects("make") != objects:
            raise RuntimeError(f"{name}: a clean build with the same summary has other objects")
        for way in ("flags", "make", "stock"):
            bench.build(way)
        bench.edit()
        for way in _WAYS:
            edited[way].append(bench.build(way))

    def ratio(times: Mapping[str, Sequence[float]], way: str, to: str) -> float:
        return statistics.median(a / b for a, b in zip(times[way], times[to], strict=True))

    stock, ours = sizes["stock"], sizes["make"]
    return [
        name,
        len(objects),
        bench.messages,
        same,
        statistics.median(first["stock"]),
        ratio(first, "make", "stock"),
        ratio(first, "flags", "stock"),
        ratio(edited, "make", "stock"),
        ratio(edited, "make", "flags"),
        [100 * (ours[part] / stock[part] - 1) for part in (0, 1)],
    ]


COLUMNS: Final = (
    ("project", "{}"),
    ("objects", "{}"),
    ("compiled again", "{}"),
    ("objects as with `nestor flags --summary`", "{}"),
    ("stock build, CPU s", "{:.1f}"),
    ("first build / stock", "{:.2f}"),
    ("`nestor flags --summary` / stock", "{:.2f}"),
    ("after an edit / stock", "{:.2f}"),
    ("after an edit / `nestor flags`", "{:.2f}"),
    ("read-only bytes / code", record.CHANGES),
)


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", nargs="+", choices=sorted(CASES), default=sorted(CASES))
    parser.add_argument("--rounds", type=int, default=1, help="builds in each way")
    parser.add_argument("--sources", type=Path, help="a folder with the projects' sources")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    toolchain: Toolchain = find()
    rows = []
    with tempfile.TemporaryDirectory(prefix="nestor-make-") as text:
        folder = Path(text)
        nestor = _command(folder)
        sources = options.sources or fetched(options.projects, folder)
        for name in options.projects:
            rows.append(measure(name, sources / name, folder / "work", nestor, options.rounds))
            print(*rows[-1], sep="\t", flush=True)
    if options.json is not None:
        about = "Builds by nestor make: CPU over stock, objects compiled again, linked sizes."
        tables = {"builds": record.table(COLUMNS, rows)}
        record.write(options.json, about, tables, machine.describe(toolchain))


def fetched(names: Sequence[str], folder: Path) -> Path:
    """Fetch the sources of the projects, and return the folder that holds them."""
    every = {recipe.project: recipe for tier in ("tiny", "bench") for recipe in recipes(tier)}
    (folder / "apt").mkdir()
    archive = debian.Archive(folder / "apt")
    for name in names:
        recipe = every[name]
        place = folder / f"{name}-download"
        files = archive.download(recipe.package, recipe.version, recipe.sources, place)
        extracted = debian.extract(files[0], folder / f"{name}-extracted")
        extracted.rename(folder / name)
    return folder


if __name__ == "__main__":
    main()
