"""Real projects built under a policy by CMake, Meson, autotools and make, and what the ways cost.

    python -m benchmarks.build_systems [--rounds 30] [--json benchmarks/results/build_systems.json]

Sources come from the Debian archive. Each project is built by the stock compiler and in each way of
docs/guide/build-systems.md; each object is compared with what the command line of the stock build
gives with Nestor's options in front. The policy is one that changes C as well as C++.

What a way costs is measured in one run in which the ways alternate: a compile of one small file,
``--rounds`` times, and a run of ``./configure``. The cost is the median of the differences to clang
within a round, with a bootstrap interval of 95 %, by the clock and in CPU time, which depends less
on what else the machine does.
"""

import argparse
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.build_ways import (
    WAYS,
    Bench,
    Compilers,
    Policy,
    Project,
    autotools,
    cmake,
    make,
    meson,
    write_command,
)
from benchmarks.compile_cpu import children_cpu_seconds, median_interval
from nestor.compiler.toolchain import Toolchain, find
from nestor.corpus.fetch import debian
from nestor.corpus.fetch.tiers import recipes
from nestor.rollout.gate import probe_folder

_JSONCPP: Final = (
    "-DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF",
    "-DBUILD_OBJECT_LIBS=OFF",
    "-DJSONCPP_WITH_TESTS=OFF",
)
Times = Mapping[str, Sequence[tuple[float, float]]]
"""Wall-clock and CPU seconds of each way in each round."""
_COSTS: Final = ("clang", "flags", "installed", "wrapper")


def fetched(name: str, archive: debian.Archive, folder: Path) -> Path:
    """Fetch the sources of a project of the corpora, and return the folder that they are in."""
    every = {recipe.project: recipe for tier in ("tiny", "bench") for recipe in recipes(tier)}
    recipe = every[name]
    place = folder / f"{name}-download"
    files = archive.download(recipe.package, recipe.version, recipe.sources, place)
    return debian.extract(files[0], folder / name)


def projects(archive: debian.Archive, folder: Path) -> list[Project]:
    """Fetch the sources and return what is built of them."""
    json, gperf, lua = (fetched(name, archive, folder) for name in ("jsoncpp", "gperf", "lua"))
    return [
        Project("jsoncpp", "CMake, Release", json, cmake("Release", *_JSONCPP)),
        Project("jsoncpp", "CMake, MinSizeRel", json, cmake("MinSizeRel", *_JSONCPP)),
        Project("jsoncpp", "Meson, werror", json, meson("-Dtests=false")),
        Project("gperf", "autoconf", gperf, autotools(cxx="-std=gnu++14")),
        Project("lua", "make", lua, make("-C", "src", "posix", flags="MYCFLAGS")),
    ]


def compare(project: Project, policy: Policy, folder: Path) -> list[Any]:
    """Build ``project`` in all ways and return its row of the table."""
    bench = Bench(project, folder / f"{project.name} {project.place}".replace(" ", "-"))
    stock = bench.stock(policy.clang)
    expected = bench.direct(policy.flags())
    changed = sum(expected[name] != digest for name, digest in stock.objects.items())
    cells: list[str] = []
    for way in WAYS:
        use = policy.compilers(way, bench.work / "installed")
        if way.startswith("ccache"):
            cold, warm = bench.cached(use, bench.work / way.replace(", ", "-"))
            same = min(_same(cold.objects, expected), _same(warm.objects, expected))
            hits, calls = warm.cached
            cells.append(f"{same} of {len(expected)}; hits {hits} of {calls}")
        else:
            cells.append(f"{_same(bench.build(use).objects, expected)} of {len(expected)}")
        print(f"{project.name}, {project.place}, {way}: {cells[-1]}", file=sys.stderr, flush=True)
    shutil.rmtree(bench.work)
    return [project.name, project.place, len(expected), changed, *cells]


def _same(objects: Mapping[str, str], expected: Mapping[str, str]) -> int:
    assert objects.keys() == expected.keys()
    return sum(objects[name] == digest for name, digest in expected.items())


def compile_costs(policy: Policy, rounds: int, folder: Path) -> Times:
    """Compile a small file in each way."""
    source = str(probe_folder() / "probe.c")
    commands = {}
    for way in _COSTS:
        use = _compilers(way, policy, folder)
        out = str(folder / f"{way}.o")
        commands[way] = [*shlex.split(f"{use.cc} {use.flags}"), "-Oz", "-c", source, "-o", out]
    return _alternate(commands, rounds, folder)


def configure_costs(project: Project, policy: Policy, rounds: int, folder: Path) -> Times:
    """Run ``./configure`` in each way."""
    commands = {}
    for way in _COSTS:
        use = _compilers(way, policy, folder)
        commands[way] = project.system(project.sources, use, project.level)[0]
    return _alternate(commands, rounds, project.sources)


def _compilers(way: str, policy: Policy, folder: Path) -> Compilers:
    if way == "clang":
        return Compilers(str(policy.clang), f"{policy.clang}++")
    return policy.compilers(way, folder / "installed")


def _alternate(commands: Mapping[str, Sequence[str]], rounds: int, folder: Path) -> Times:
    """Run each command once a round, in an order that changes; the first round is not counted."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    order = random.Random(0)
    for number in range(rounds + 1):
        for name in order.sample(list(commands), len(commands)):
            start, before = time.perf_counter(), children_cpu_seconds()
            subprocess.run(commands[name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            if number:
                times[name].append((time.perf_counter() - start, children_cpu_seconds() - before))
    return times


def cost_rows(what: str, times: Times) -> list[list[Any]]:
    """Return a row for each way: its median, and differences and ratio to clang of its round."""
    rows = []
    for way, own in times.items():
        pairs = list(zip(own, times["clang"], strict=True))
        row: list[Any] = [what, way, 1000 * statistics.median(wall for wall, _ in own)]
        for clock in (0, 1):
            differences = [1000 * (a[clock] - b[clock]) for a, b in pairs]
            spread = [statistics.median(differences), *median_interval(differences)]
            ratio = statistics.median(a[clock] / b[clock] for a, b in pairs)
            row += [None, None] if way == "clang" else [spread, ratio]
        rows.append(row)
    return rows


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="mlgo2020", help="the policy, a name or a file")
    parser.add_argument("--rounds", type=int, default=30, help="compiles in each way")
    parser.add_argument("--configures", type=int, default=3, help="configure runs in each way")
    parser.add_argument("--only", choices=("builds", "overhead"), help="one of the two tables")
    parser.add_argument("--json", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    toolchain: Toolchain = find()
    tables = {}
    with tempfile.TemporaryDirectory(prefix="nestor-builds-") as name:
        folder = Path(name)
        policy = Policy(shlex.quote(options.policy), nestor_command(folder), toolchain.clang)
        (folder / "apt").mkdir()
        every = projects(debian.Archive(folder / "apt"), folder)
        if options.only != "overhead":
            rows = [compare(project, policy, folder / "work") for project in every]
            columns = [("project", "{}"), ("built by", "{}"), ("objects", "{}")]
            columns += [("other than stock's", "{}"), *((way, "{}") for way in WAYS)]
            tables["builds"] = record.table(columns, rows)
        if options.only != "builds":
            gperf = next(project for project in every if project.name == "gperf")
            cost = cost_rows("one small file", compile_costs(policy, options.rounds, folder))
            configured = configure_costs(gperf, policy, options.configures, folder)
            cost += cost_rows("`./configure` of gperf", configured)
            form = "{:+.1f} [{:+.1f}, {:+.1f}]"
            columns = [("what", "{}"), ("way", "{}"), ("ms", "{:.1f}")]
            columns += [("over clang, ms [95 %]", form), ("ratio", "{:.2f}")]
            columns += [("CPU over clang, ms [95 %]", form), ("ratio of CPU", "{:.2f}")]
            tables["overhead"] = record.table(columns, cost)
    for table in tables.values():
        for row in table["rows"]:
            print(*row, sep="\t")
    if options.json is not None:
        about = "Builds under a policy: objects that equal those of direct compiles, and overheads."
        record.write(options.json, about, tables, machine.describe(toolchain))


def nestor_command(folder: Path) -> Path:
    """Return the command ``nestor`` of this Python, or one as pip would write it."""
    installed = Path(sys.executable).with_name("nestor")
    sources = os.environ.get("PYTHONPATH")
    if installed.exists() and not sources:
        return installed
    return write_command(folder / "bin")


if __name__ == "__main__":
    main()
