"""A program of one module whose moves are of every kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nestor.build.incremental import ProgramBuilder
from nestor.compiler.plugin import Plugin
from nestor.policy.names import DEFAULT
from nestor.problems.inlining_size.search.moves import SiteMoves
from nestor.problems.inlining_size.summary.program_summary import parse
from nestor.rollout.local_pool import LocalPool
from nestor.tune.session import summary_for_search
from tests.conftest import make_corpus
from tests.inlining import LINK, PROBLEM

# Another module could call large(), and only the program's objects say that none does.
LARGE = """
#define STEP(n) a[(i + n) & 7] ^= a[n] * (i | n) + (a[(n + 3) & 7] >> (n & 3));
void large(int *a, int i) {
  STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)
  while (i--) { STEP(12) STEP(13) STEP(14) STEP(15) STEP(16) STEP(17) }
}
static int twice(int *a) { return (a[1] * 7 + a[0]) ^ (a[2] << 3); }
int first(int *a) { return twice(a) + 1; }
int second(int *a) { return twice(a + 1) - 1; }
"""
MAIN = """
void large(int *, int); int first(int *); int second(int *);
int middle(int *a, int n) { large(a, n); return a[0]; }
int main(int n, char **v) { int a[9] = {n}; return middle(a, n) + first(a) + second(a); }
"""


@pytest.fixture
def builder(tmp_path: Path, plugin: Plugin) -> Iterator[tuple[ProgramBuilder, SiteMoves]]:
    """A program of one module, and its moves with and without a summary."""
    work = tmp_path / "src"
    work.mkdir()
    (work / "main.c").write_text(LARGE + MAIN)
    make = "program: main.c\n\t$(CC) -O2 -ffunction-sections -o $@ $<\n"
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {}, {"program": (work, make)})
    (program,) = corpus.programs
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        summary = summary_for_search(pool, LINK, program, "gc")
        assert summary is not None
        made = LINK.incremental(pool, program, DEFAULT, ["gc"])
        try:
            yield made, SiteMoves(uses=parse(summary).functions)
        finally:
            made.close()
