"""Searches for speed inside LTO: calls between modules, decided in the link, and a run counted."""

from dataclasses import replace
from pathlib import Path

import pytest

from nestor.build.build import BuildError, Job, builds_of
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Workload
from nestor.evaluate.workloads import measure_workloads
from nestor.policy.names import DEFAULT
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool
from nestor.tune.result import Tuned
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune
from tests.conftest import make_corpus
from tests.problems.inlining_speed.test_tune import SOURCE

PROBLEM = find_problem("inlining-speed")
WORKLOAD = Workload(("20000",), (("6000",), ("3000",)))
KINDS = ("full", "thin")


@pytest.fixture(scope="module")
def two_modules(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Corpus:
    """The program of ``test_tune``; what is called is in another module than the calls."""
    root = tmp_path_factory.mktemp("two")
    work = root / "p"
    work.mkdir()
    first, last = "static long hot(", "__attribute__((noinline)) static long seldom("
    start, end = SOURCE.index(first), SOURCE.index(last)
    head, called, rest = SOURCE[:start], SOURCE[start:end], SOURCE[end:]
    declared = "long hot(long v, long k);\nlong medium(long v, long k);\n"
    (work / "called.c").write_text(head + called.replace("static long", "long"))
    (work / "main.c").write_text(head + declared + rest)
    makefile = "p: called.o main.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -O2 -c $<\n"
    return make_corpus(root / "corpus", plugin.toolchain, {}, {"p": (work, makefile)}, level="-O2")


def tuned(corpus: Corpus, plugin: Plugin, kind: str, out: Path) -> Tuned:
    (program,) = corpus.programs
    program = replace(program, workload=WORKLOAD)
    build = builds_of(PROBLEM)[f"{kind}-lto"]
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        budget, settings = SearchSettings(compiles=8), TuneSettings(("profile",))
        return tune(pool, build, program, DEFAULT, settings, budget, 0, out)


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_inlines_a_hot_call_between_modules(
    two_modules: Corpus, plugin: Plugin, tmp_path: Path, kind: str
) -> None:
    found = tuned(two_modules, plugin, kind, tmp_path)
    assert not found.other_outputs
    for mode in ("profile", "measure"):
        stock, best = found.stock.columns[mode], found.best.columns[mode]
        assert best["J"] < 0.99 * stock["J"]
        assert best["text"] <= 1.02 * stock["text"]
    ids = {n: i for log in found.stock.trajectories.values() for i, n in log.names.items()}
    assert found.stock.calls["profile"].edges[ids["main"], ids["hot"]] == 18_000


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_is_there_in_a_build_of_its_own(
    two_modules: Corpus, plugin: Plugin, tmp_path: Path, kind: str
) -> None:
    """The same answers, read from a text in a later link, execute the same."""
    found = tuned(two_modules, plugin, kind, tmp_path)
    (program,) = two_modules.programs
    program = replace(program, workload=WORKLOAD)
    with LocalPool(PROBLEM, two_modules, plugin) as pool:
        job = Job(program, "measure", DEFAULT, overrides=found.text(PROBLEM))
        (built,) = builds_of(PROBLEM)[f"{kind}-lto"].run(pool, [job])
    assert built.columns is not None
    for column in ("J", "text"):
        assert built.columns[column] == found.best.columns["measure"][column]


def test_a_result_is_measured_and_timed_as_it_was_found(
    two_modules: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    """Programs that are linked to be run are not judged, so nothing is counted twice."""
    found = tuned(two_modules, plugin, "full", tmp_path)
    (program,) = two_modules.programs
    program = replace(program, workload=WORKLOAD)
    corpus = replace(two_modules, programs=(program,))
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        (evaluation,) = measure_workloads(
            pool, [program], [DEFAULT], tmp_path / "counts",
            overrides=found.text(PROBLEM), build="full-lto",
        )  # fmt: skip
        beside = Job(program, "gc", DEFAULT, also=(DEFAULT,))
        with pytest.raises(BuildError, match="takes one policy"):
            builds_of(PROBLEM)["full-lto"].binaries(pool, [beside])
    (result,) = evaluation.programs
    assert result.stock is not None
    assert result.policy is not None
    assert result.stock["J"] == found.stock.columns["measure"]["J"]
    assert result.policy["J"] == found.best.columns["measure"]["J"]


def test_a_program_without_runs_is_a_failure_with_its_reason(
    two_modules: Corpus, plugin: Plugin
) -> None:
    (program,) = two_modules.programs
    build = builds_of(PROBLEM)["full-lto"]
    with LocalPool(PROBLEM, two_modules, plugin) as pool:
        (built,) = build.run(pool, [Job(program, "measure", DEFAULT)])
        assert built.columns is None
        assert built.failure is not None
        assert built.failure.startswith("it has no measure run")
        with pytest.raises(BuildError, match="it has no profile run"):
            build.incremental(pool, program, DEFAULT, ["profile"]).build({})
