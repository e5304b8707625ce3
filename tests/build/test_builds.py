"""The protocol of builds: equal work once, failures as results, the same answers in all ways."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from nestor.build.assembly import id_in_unit, ids_by_name
from nestor.build.build import Build, BuildError, Job
from nestor.build.objects import ObjectBuild
from nestor.compiler.objects import Function
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.policy.names import DEFAULT
from nestor.problem.rollout import Request
from nestor.problems.inlining_size.summary.program_summary import function_id
from nestor.rollout.local_pool import LocalPool
from tests.conftest import module_named
from tests.inlining import LINK, PROBLEM, policy_named

OBJECTS = ObjectBuild()
BUILDS: tuple[Build, ...] = (OBJECTS, *PROBLEM.builds().values())


class CountingPool(LocalPool):
    """Keeps the requests that it ran."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.requests: list[Request] = []

    def run(self, requests: Sequence[Request], *arguments: Any, **named: Any) -> Any:
        self.requests += requests
        return super().run(requests, *arguments, **named)


def test_the_usual_build_is_the_first() -> None:
    assert list(PROBLEM.builds()) == ["link", "full-lto", "thin-lto", "copies"]
    assert all(build.name == name for name, build in PROBLEM.builds().items())


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_builds_agree_with_their_incremental_form(
    small_corpus: Corpus, plugin: Plugin, build: Build
) -> None:
    program, never = small_corpus.programs[0], policy_named("never")
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        jobs = [
            Job(program, mode, policy, log=True, names=True)
            for policy in (DEFAULT, never)
            for mode in build.modes
        ]
        done = build.run(pool, jobs)
        for policy in (DEFAULT, never):
            builder = build.incremental(pool, program, policy, build.modes)
            found = builder.build({})
            for built in (b for b in done if b.job.policy == policy):
                assert built.failure is None and built.columns is not None
                assert found.columns[built.job.mode].items() <= built.columns.items()
                assert found.functions[built.job.mode] == built.functions
                assert set(found.trajectories) == {name for name, _ in built.trajectories}
            builder.close()
    scores = [built.columns[PROBLEM.report.score] for built in done if built.columns]
    assert scores[0] != scores[len(build.modes)], "the policy changes the program"


def test_equal_compiles_are_run_once(small_corpus: Corpus, plugin: Plugin) -> None:
    (one, two), never = small_corpus.programs, policy_named("never")
    with CountingPool(PROBLEM, small_corpus, plugin) as pool:
        jobs = [
            Job(program, mode, policy)
            for policy in (None, never)
            for mode in LINK.modes
            for program in (one, two)
        ]
        built = LINK.run(pool, jobs)
        names = [(request.unit.name, request.policy) for request in pool.requests]
    units = [*one.modules, *two.modules]
    assert names == [(unit, policy) for unit in units for policy in (None, never)], "side by side"
    first, other_mode = built[0], built[2]
    assert first.job.program == other_mode.job.program
    assert first.compiles[0] is other_mode.compiles[0]


def test_only_the_log_differs(small_corpus: Corpus, plugin: Plugin) -> None:
    used = Job(small_corpus.programs[0], "gc", policy_named("never"), keep=True)
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        plain, logged = LINK.run(pool, [used, replace(used, log=True, keep=False)])
        assert plain.binary is not None and pool.objects.path(plain.binary).exists()
    assert logged.binary is None
    assert plain.columns == logged.columns
    assert [c.digest for c in plain.compiles] == [c.digest for c in logged.compiles]
    assert not list(plain.trajectories) and list(logged.trajectories)


@pytest.mark.parametrize("build", [OBJECTS, LINK], ids=lambda build: build.name)
def test_a_unit_that_fails_is_a_result(small_corpus: Corpus, plugin: Plugin, build: Build) -> None:
    bad = module_named(small_corpus, "one")
    small_corpus.bitcode(bad).write_bytes(b"no bitcode")
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        jobs = [Job(program, build.modes[0]) for program in small_corpus.programs]
        failed, good = build.run(pool, jobs)
        builder = build.incremental(pool, small_corpus.programs[0], DEFAULT, build.modes)
        with pytest.raises(BuildError, match=bad.name):
            builder.build({})
    assert failed.columns is None and bad.name in (failed.failure or "")
    assert "error" in (failed.compiles[0].failure or "")
    assert good.failure is None and good.columns is not None


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_a_mode_that_is_none_is_refused(small_corpus: Corpus, plugin: Plugin, build: Build) -> None:
    program = small_corpus.programs[0]
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        with pytest.raises(BuildError, match=f"'{build.name}' has no mode 'gold'"):
            build.run(pool, [Job(program, "gold")])
        with pytest.raises(BuildError, match="there are"):
            build.incremental(pool, program, DEFAULT, ["gold"])


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_no_jobs_have_no_results(small_corpus: Corpus, plugin: Plugin, build: Build) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        assert build.run(pool, []) == []


def test_objects_are_given_back(small_corpus: Corpus, plugin: Plugin) -> None:
    """A search may compile thousands of objects: those of a closed builder take no room."""
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        builder = LINK.incremental(pool, small_corpus.programs[0], DEFAULT, ["gc"])
        (digest,) = builder.build({}).objects.values()
        assert pool.objects.path(digest).exists()
        builder.keep_only({})
        assert pool.objects.path(digest).exists(), "the next build needs it"
        builder.close()
        assert not pool.objects.path(digest).exists()


def test_functions_have_one_id_whether_a_question_is_about_them_or_not(
    small_corpus: Corpus, plugin: Plugin
) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        requests = [
            Request(module, DEFAULT, log=True, names=True) for module in small_corpus.modules
        ]
        logs = [done.trajectory for done in pool.run(requests)]
        measures = [done.outcome for done in pool.run(requests)]
    asked = 0
    for log, measure in zip(logs, measures, strict=True):
        assert log is not None and measure is not None
        ids = ids_by_name(log)
        for function in measure.functions:
            unasked = id_in_unit(function, {}, log)
            assert ids.get(function.name, unasked) == unasked
            asked += function.local and function.name in ids
    assert asked
    assert id_in_unit(Function("f", 1, weak=False, local=True), {}, None) == function_id("f")
