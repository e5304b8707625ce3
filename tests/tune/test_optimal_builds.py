"""Components of a program are found and measured by the real compiler."""

from pathlib import Path

import pytest

from benchmarks.optimal.graph import optimum
from benchmarks.optimal.linked import taken_only
from benchmarks.optimal.measure import enumerate_program
from benchmarks.optimal.record import load, record_path
from benchmarks.optimal.remembering import RememberingPool
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.policy.names import DEFAULT
from tests.conftest import make_corpus
from tests.inlining import LINK, PROBLEM

USED = """
static int twice(int *a) { return (a[1] * 7 + a[0]) ^ (a[2] << 3); }
static int more(int *a, int n) { return n ? twice(a) + n : a[n + 4] * 3; }
int first(int *a, int n) { return more(a, n) + 1; }
int second(int *a, int n) { return more(a + 1, n) - twice(a); }
"""
MAIN = """
int first(int *, int); int second(int *, int);
int main(int n, char **v) { int a[9] = {n}; return first(a, n) + second(a, n); }
"""
MAKE = """
program: main.o libmore.a
\t$(CC) -ffunction-sections -o $@ main.o -L. -lmore
libmore.a: used.o unused.o
\tar rcs $@ used.o unused.o
%.o: %.c
\t$(CC) -O2 -ffunction-sections -c $< -o $@
"""


@pytest.fixture
def corpus(tmp_path: Path, plugin: Plugin) -> Corpus:
    """A program that takes one of two members of a library."""
    work = tmp_path / "src"
    work.mkdir()
    files = {"main": MAIN, "used": USED, "unused": "int unused(void) { return 1; }"}
    for name, text in files.items():
        (work / f"{name}.c").write_text(text)
    return make_corpus(tmp_path / "corpus", plugin.toolchain, {}, {"program": (work, MAKE)})


def test_every_answer_is_measured(corpus: Corpus, plugin: Plugin, tmp_path: Path) -> None:
    taken = taken_only(corpus, plugin.toolchain)
    (whole,), (program,) = corpus.programs, taken.programs
    assert (len(whole.modules), len(program.modules)) == (3, 2)
    with RememberingPool(PROBLEM, taken, plugin) as pool:
        record = enumerate_program(pool, program, 9, tmp_path, 300)
        (part,) = record.parts
        assert part.graph.own == 4
        assert part.enumerated and part.exact
        assert part.graph.copies, "inlining more() copies its call of twice()"
        _, least = optimum(part.graph, {c: v["gc"] for c, v in part.values.items()})
        assert least < 0, "functions of a few bytes go away"
        assert load(record_path(tmp_path, program.name)) == record
        again = enumerate_program(pool, program, 9, tmp_path, 300)
    assert again == record, "nothing is left to measure"


def test_what_asks_nothing_is_compiled_once(corpus: Corpus, plugin: Plugin) -> None:
    (program,) = corpus.programs
    with RememberingPool(PROBLEM, corpus, plugin) as pool:
        cpu = []
        for _ in range(2):
            builder = LINK.incremental(pool, program, DEFAULT, ["gc"])
            first = builder.build({})
            cpu.append(builder.cpu_seconds)
            assert set(first.objects) == set(program.modules)
            builder.close()
    assert cpu[0] > 0 == cpu[1]
