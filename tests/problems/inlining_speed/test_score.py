"""Programs scored by predicted cycles in the place of what they execute."""

from dataclasses import replace
from pathlib import Path

import pytest

from nestor.build.build import Built, Job, builds_of
from nestor.cli.main import main
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Workload
from nestor.errors import NestorError
from nestor.policy.names import DEFAULT
from nestor.problem.problem import ProblemError
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune
from tests.conftest import make_corpus
from tests.cost.abilities import needs_valgrind
from tests.problems.inlining_speed.test_tune import SOURCE as SEARCHED

PROBLEM = find_problem("inlining-speed")

# Equal work, but the first branch follows the draws and the second one repeats itself.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
static unsigned state = 12345;
static unsigned draw(void) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}
static long surprising(long v, unsigned d) {
  if (d & 1) { v = v * 3 + 1; __asm__ volatile("" : "+r"(v)); }
  return v;
}
static long regular(long v, unsigned d) {
  if (d & 1) { v = v * 5 + 1; __asm__ volatile("" : "+r"(v)); }
  return v;
}
int main(int argc, char **argv) {
  long rounds = atol(argv[1]), sum = 1;
  for (long i = 0; i < rounds; ++i) {
    unsigned d = draw();
    sum = surprising(sum, d) + regular(sum, i);
  }
  printf("%ld\\n", sum);
  return 0;
}
"""


def corpus_of(plugin: Plugin, folder: Path, source: str = SOURCE) -> Corpus:
    corpus = make_corpus(folder / "corpus", plugin.toolchain, {"own": source}, level="-O2")
    workload = Workload(("20000",), (("6000",), ("3000",)))
    programs = tuple(replace(program, workload=workload) for program in corpus.programs)
    return replace(corpus, programs=programs)


def built(plugin: Plugin, corpus: Corpus, score: str, way: str) -> Built:
    """Build the only program of a corpus with every call kept."""
    problem = PROBLEM.scored_by(score)
    job = Job(corpus.programs[0], "profile", problem.policy("never"), log=True, names=True)
    with LocalPool(problem, corpus, plugin) as pool:
        (done,) = builds_of(problem)[way].run(pool, [job])
    assert done.columns is not None, done.failure
    return done


def parts(done: Built) -> list[float]:
    """Return what two functions take of the score."""
    names = {name: number for _, log in done.trajectories for number, name in log.names.items()}
    return [done.functions[names[name]] for name in ("surprising", "regular")]


@needs_valgrind
def test_cycles_know_what_is_mispredicted(plugin: Plugin, tmp_path: Path) -> None:
    corpus = corpus_of(plugin, tmp_path)
    operations, cycles = (parts(built(plugin, corpus, score, "run")) for score in ("J", "cycles"))
    assert operations[0] == pytest.approx(operations[1], rel=0.05)
    assert cycles[0] > 3 * cycles[1]


@needs_valgrind
def test_cycles_of_a_program_of_lto(plugin: Plugin, tmp_path: Path) -> None:
    done = built(plugin, corpus_of(plugin, tmp_path), "cycles", "full-lto")
    assert done.columns is not None
    # Half of 9,000 branches are mispredicted, at some 25 cycles each.
    assert done.columns["cycles"] - 0.3 * done.columns["instructions"] > 4500 * 15
    assert sum(done.functions.values()) > 0


@needs_valgrind
def test_a_search_lowers_cycles_and_goes_on(plugin: Plugin, tmp_path: Path) -> None:
    corpus = corpus_of(plugin, tmp_path, SEARCHED)
    problem = PROBLEM.scored_by("cycles")
    found = []
    for compiles in (4, 8):  # the second one goes on from what the first one kept
        with LocalPool(problem, corpus, plugin) as pool:
            settings, budget = TuneSettings(("profile",)), SearchSettings(compiles=compiles)
            program, build = corpus.programs[0], builds_of(problem)["run"]
            found.append(tune(pool, build, program, DEFAULT, settings, budget, 0, tmp_path / "out"))
    for result in found:
        stock, best = (one.columns["profile"] for one in (result.stock, result.best))
        assert best["cycles"] <= stock["cycles"]
        assert best["text"] <= 1.02 * stock["text"]
        assert not result.other_outputs
    assert best["cycles"] < stock["cycles"]
    assert "cycles cycles profile: " in found[1].text(problem)
    with (
        pytest.raises(NestorError, match="another search"),
        LocalPool(PROBLEM, corpus, plugin) as p,
    ):
        tune(p, build, program, DEFAULT, settings, budget, 0, tmp_path / "out")


def test_other_scores_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ProblemError, match="has no score 'joules': take J or cycles"):
        PROBLEM.scored_by("joules")
    assert PROBLEM.scored_by("cycles").scored_by("J") == PROBLEM
    words = ["tune", "x", "--corpus", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([*words, "--score", "cycles"]) != 0
    assert "inlining-size has no score 'cycles'" in " ".join(capsys.readouterr().err.split())
