"""Inside lld: nothing changes under the default, a policy decides, and mistakes are reported."""

from dataclasses import replace
from pathlib import Path

import pytest

from nestor.build.build import Job
from nestor.compiler.invocation import LtoKind
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.rollout import Workplace
from nestor.rollout.local_pool import LocalPool
from tests.inlining import KINDS, lto, lto_link, policy_named


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_gives_the_stock_program(pool: LocalPool, kind: LtoKind) -> None:
    (program,) = pool.corpus.programs
    stock = Job(program, "gc")
    default = replace(stock, policy=DEFAULT)
    jobs = [stock, default, replace(default, log=True, names=True)]
    done = lto(kind).run(pool, jobs)
    assert [built.failure for built in done] == [None, None, None]
    digests = {compiled.digest for built in done for compiled in built.compiles}
    assert len(digests) == 1, "the plugin with the default policy changes nothing"
    logs = dict(done[-1].trajectories)
    assert sum(len(log) for log in logs.values()) > 0
    assert (len(logs) > 1) == (kind == "thin"), "a log for each back end"


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_decides_the_same_with_a_log(pool: LocalPool, kind: LtoKind) -> None:
    (program,) = pool.corpus.programs
    made = set()
    for name in ("never", "threshold:40"):
        used = Job(program, "gc", policy_named(name), keep=True)
        links = [lto_link(pool, job, kind) for job in (used, replace(used, log=True))]
        assert [link.failure for link in links] == [None, None]
        assert links[0].digest == links[1].digest
        made.add(links[0].digest)
        assert links[0].digest and pool.objects.path(links[0].digest).exists()
    assert len(made) == 2, "each policy gives a program of its own"


def test_builds_of_one_program_share_what_is_tried(pool: LocalPool) -> None:
    (program,) = pool.corpus.programs
    policy, way, texts = policy_named("distilled-lto"), lto("full"), []

    def flags(job: Job, place: Workplace, logs: Path) -> list[str]:
        assert job.trials is not None
        texts.append([path.read_text() for path in job.trials.iterdir()])
        folders.add(job.trials)
        return way.flags(job, place, logs)

    folders: set[Path] = set()
    builder = replace(way, flags=flags).incremental(pool, program, policy, ["gc"])
    try:
        first = builder.build({})
        again = builder.build({}, modes=["no-gc"])
        texts.append([path.read_text() for folder in folders for path in folder.iterdir()])
    finally:
        builder.close()
    assert first.columns["gc"]["linked"] <= again.columns["no-gc"]["linked"]
    (folder,) = folders
    before, (after,), found = texts
    assert before == [] and after.count("\n") > 1, "a header, and a trial at least"
    assert found == [after], "the second link finds all that it asks for"
    assert not folder.exists()
    (built,) = way.run(pool, [Job(program, "gc", policy)])
    assert built.columns is not None and first.columns["gc"] == {
        name: built.columns[name] for name in first.columns["gc"]
    }


def test_functions_add_up_to_the_code(pool: LocalPool) -> None:
    (program,) = pool.corpus.programs
    link = lto_link(pool, Job(program, "gc", DEFAULT, log=True, names=True), "full")
    assert link.measure is not None
    named = {name for log in link.trajectories.values() for name in log.names.values()}
    assert {"main", "_Z5heavyRKSt6vectorIiSaIiEEi"} <= named & set(link.functions) | named
    accounted = sum(link.functions.values())
    assert 0.5 * link.measure.text < accounted <= link.measure.loadable
    plain = {function.name: function.size for function in link.measure.functions}
    tables = {name: size - plain[name] for name, size in link.functions.items()}
    assert tables["main"] > 0, "main catches, so it has an exception table"


@pytest.mark.parametrize("kind", KINDS)
def test_mistakes_are_reported(pool: LocalPool, kind: LtoKind) -> None:
    (program,) = pool.corpus.programs
    broken = NamedPolicy("broken", policy_named("never").policy, b"no policy", "0" * 64)
    overrides = "nestor-overrides 1\nsite 12 perhaps\n"
    for job, words in (
        (Job(program, "gc", broken), "cannot use the policy"),
        (Job(program, "gc", DEFAULT, overrides=overrides), "line 2"),
    ):
        failure = lto_link(pool, job, kind).failure
        assert failure is not None and words in failure, failure


def test_a_module_that_does_not_compile_is_named(pool: LocalPool) -> None:
    (program,) = pool.corpus.programs
    module = pool.corpus.module(program.modules[0])
    pool.corpus.bitcode(module).write_bytes(b"no bitcode")
    spoilt = replace(module, digest="0" * 64)
    pool.corpus = replace(pool.corpus, modules=(spoilt, *pool.corpus.modules[1:]))
    (built,) = lto("full").run(pool, [Job(program, "gc")])
    assert built.failure is not None
    assert built.failure.startswith(f"not linked: {module.name} for LTO: failed: ")
    assert built.failure.endswith("error: expected top-level entity")
    assert built.columns is None


def test_what_each_back_end_takes(pool: LocalPool) -> None:
    (program,) = pool.corpus.programs
    back_ends: dict[LtoKind, int] = {"full": 1, "thin": 3}
    for kind, expected in back_ends.items():
        link = lto_link(pool, Job(program, "gc", DEFAULT, log=True, names=True), kind)
        assert link.failure is None and link.measure is not None
        assert len(link.back_ends) == expected
        assert set(link.trajectories) <= set(link.back_ends)
        assert 0.4 * link.measure.text < sum(link.back_ends.values()) < link.measure.loadable
