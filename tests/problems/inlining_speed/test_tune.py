"""The default gives stock objects at -O2 and -O3; what a search is told of code and policies."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.build.build import builds_of
from nestor.build.incremental import ProgramBuilder
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Workload
from nestor.policy.names import DEFAULT
from nestor.problem.identity import Circumstances
from nestor.problem.registry import find_problem
from nestor.problems.inlining_size.search.sites import sites_of
from nestor.problems.inlining_speed.executed import cold_sites
from nestor.problems.inlining_speed.run_build import price_of_a_byte
from nestor.rollout.gate import probe_folder
from nestor.rollout.local_pool import LocalPool
from nestor.tune.moves import moves_of
from nestor.tune.result import Tuned
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune
from tests.conftest import make_corpus

PROBLEM = find_problem("inlining-speed")

# Stock keeps both calls of hot(), which take much of the run, and copies medium() twelve times into
# a function that seldom reaches them.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#define STEP(n) v ^= (v >> n) + k * n; v += v << (n & 7);
static long hot(long v, long k) {
  STEP(3) STEP(5) STEP(7) STEP(9) STEP(11) STEP(13) STEP(15) STEP(17) STEP(19) STEP(21) STEP(23)
  STEP(25) STEP(27) STEP(29) STEP(31) STEP(33) STEP(35) STEP(37) STEP(39)
  return v;
}
static long medium(long v, long k) { STEP(2) STEP(4) STEP(6) STEP(8) STEP(10) return v; }
__attribute__((noinline)) static long seldom(long v, long i) {
#define TWO(n) v = medium(v, v + n) - medium(n, v);
  if (i % 4000) return v;
  TWO(1) TWO(2) TWO(3) TWO(4) TWO(5) TWO(6)
  return v;
}
int main(int argc, char **argv) {
  long rounds = atol(argv[1]), sum = 1, other = 2;
  for (long i = 0; i < rounds; ++i) { sum = seldom(hot(sum, i), i); other += hot(other, 7); }
  printf("%ld\\n", sum + other);
  return 0;
}
"""


def tuned(corpus: Corpus, plugin: Plugin, out: Path, compiles: float) -> Tuned:
    """Search for the best build of the only program of a corpus."""
    (program,) = corpus.programs
    program = replace(program, workload=Workload(("20000",), (("6000",), ("3000",))))
    build = builds_of(PROBLEM)["run"]
    settings = TuneSettings(("profile",))
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        budget = SearchSettings(compiles=compiles)
        return tune(pool, build, program, DEFAULT, settings, budget, 0, out)


def test_a_search_inlines_what_runs_and_pays_with_what_is_seldom_reached(
    plugin: Plugin, tmp_path: Path
) -> None:
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {"hot": SOURCE}, level="-O2")
    found = tuned(corpus, plugin, tmp_path, 10)
    assert not found.other_outputs
    for mode in ("profile", "measure"):
        stock, best = found.stock.columns[mode], found.best.columns[mode]
        assert best["J"] < 0.99 * stock["J"]
        assert best["text"] <= 1.02 * stock["text"]
    assert set(found.overrides.values()) == {False, True}
    assert max(found.stock.calls["profile"].edges.values()) == 18_000
    assert max(found.best.calls["profile"].edges.values()) <= 9_000


def test_a_search_says_that_a_program_prints_something_else(plugin: Plugin, tmp_path: Path) -> None:
    source = SOURCE.replace(
        "static long hot(long v, long k) {",
        "static void *frame;\nstatic long shared;\n"
        "static long hot(long v, long k) { shared += frame == __builtin_frame_address(0);",
    )
    source = source.replace("other = 2;", "other = 2;\n  frame = __builtin_frame_address(0);")
    source = source.replace("sum + other);", "sum + other + shared);")
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {"hot": source}, level="-O2")
    for compiles in (6, 8):  # The second one goes on from what the first one kept.
        assert tuned(corpus, plugin, tmp_path, compiles).other_outputs == ("profile", "measure")


CONSTRUCTED = """
#include <cstdio>
#include <cstdlib>
struct Sum {
  long total;
  __attribute__((noinline)) Sum(long n);
};
static long medium(long v) {
  for (long i = 0; i < 9; ++i) { v = v * 3 + (v >> 7); v ^= v << 9; v -= v >> 3; }
  return v;
}
Sum::Sum(long n) : total(0) { for (long i = 0; i < n; ++i) total += medium(i) ^ n; }
__attribute__((noinline)) long seldom(long i) { return i % 1777 ? i ^ 5 : medium(medium(i)); }
int main(int argc, char **argv) {
  Sum sum(std::atol(argv[1]));
  for (long i = 0; i < 5000; ++i) sum.total += seldom(i);
  std::printf("%ld\\n", sum.total + medium(argc));
}
"""


@contextmanager
def builder_of(corpus: Corpus, plugin: Plugin, workload: Workload) -> Iterator[ProgramBuilder]:
    """Yield what builds the only program of a corpus and counts its run on the profile input."""
    (program,) = corpus.programs
    build = builds_of(PROBLEM)["run"]
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        program = replace(program, workload=workload)
        builder = build.incremental(pool, program, DEFAULT, ("profile",), None)
        yield builder
        builder.close()


def test_a_run_tells_of_constructors_and_of_cold_calls(plugin: Plugin, tmp_path: Path) -> None:
    sources = {"sum.cpp": CONSTRUCTED}
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, sources, level="-O2")
    with builder_of(corpus, plugin, Workload(("20000",), (("9000",),))) as builder:
        built = builder.build({})
        plain = builder.build(moves_of(PROBLEM).plain(built))
    (log,) = built.trajectories.values()
    ids = {symbol: key for key, symbol in log.names.items()}
    # callgrind reports the complete constructor; LLVM asks about the base constructor, of which
    # the complete one is another name.
    assert built.calls["profile"].entries[ids["_ZN3SumC2El"]] == 1
    assert built.functions["profile"][ids["_ZN3SumC2El"]] > 20_000 * 9
    written = moves_of(PROBLEM).written(plain)
    assert written is not None
    cold = cold_sites(built.trajectories, written)
    assert {site.caller for site in cold} == {ids["_Z6seldoml"]}


def test_a_build_that_is_run_counts_a_quarter_of_a_compile(plugin: Plugin, tmp_path: Path) -> None:
    work = tmp_path / "many"
    work.mkdir()
    names = [f"part{number}" for number in range(8)]
    for name in names:
        text = (
            "static int add(int v) {{ return v * 3 + 1; }}\nint {0}(int v) {{ return add(v); }}\n"
        )
        (work / f"{name}.c").write_text(text.format(name))
    declared = "".join(f"int {name}(int);\n" for name in names)
    called = " + ".join(f"{name}(c)" for name in names)
    (work / "main.c").write_text(
        f"{declared}int main(int c, char **v) {{ return ({called}) < 0; }}\n"
    )
    objects = " ".join(f"{name}.o" for name in ("main", *names))
    makefile = f"many: {objects}\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -O2 -c $<\n"
    corpus = make_corpus(
        tmp_path / "corpus", plugin.toolchain, {}, {"many": (work, makefile)}, level="-O2"
    )
    with builder_of(corpus, plugin, Workload(("1",), (("2",),))) as builder:
        built = builder.build({})
        assert builder.compiles == 1
        (site, *_) = (site for site in sites_of(built.trajectories) if site.answer)
        builder.build({site.key: False})
        assert builder.compiles == 1.25
        builder.build({site.key: False})
        assert builder.compiles == 1.25


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize("probe", ["probe.c", "probe.cpp"])
def test_the_default_gives_stock_objects(
    plugin: Plugin, tmp_path: Path, level: str, probe: str
) -> None:
    command: list[str | Path] = [plugin.toolchain.clang, level, "-c", str(probe_folder() / probe)]
    objects = []
    for number, way in enumerate(PROBLEM.ways(plugin, PROBLEM.policy("default"), tmp_path)):
        out = tmp_path / f"{number}.o"
        way.compile(command, out, Circumstances())
        objects.append(out.read_bytes())
    assert len(objects) > 3
    assert set(objects) == {objects[0]}
    stock = tmp_path / "stock.o"
    subprocess.run([*command, "-o", stock], check=True, timeout=60)
    assert stock.read_bytes() == objects[0]


def test_builds_of_one_program_price_code_alike() -> None:
    assert price_of_a_byte(100_000_000, 100_000) == price_of_a_byte(97_000_000, 101_900)
    assert price_of_a_byte(100_000_000, 100_000) == 256.0
