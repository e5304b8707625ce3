"""Evaluation, identity, guard and tune under LTO, on the real linker."""

from pathlib import Path

import pytest

from nestor.compiler.invocation import LtoKind
from nestor.evaluate.compare import EvaluateSettings, evaluate
from nestor.evaluate.guard import guard
from nestor.evaluate.identity import check_programs
from nestor.policy.names import DEFAULT
from nestor.problems.inlining_size.search.overrides import Key, parse
from nestor.problems.inlining_size.search.sites import sites_of
from nestor.rollout.local_pool import LocalPool
from nestor.tune.result import Tuned
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune
from nestor.tune.steps.credit import changes
from tests.inlining import KINDS, PROBLEM, lto, policy_named


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_compares_with_stock_lto(pool: LocalPool, kind: LtoKind) -> None:
    policies = [policy_named("never"), DEFAULT]
    never, default = evaluate(pool, lto(kind), pool.corpus.programs, policies)
    assert never.failures == default.failures == ()
    assert default.total()["linked_change_pct"] == 0.0
    assert never.total()["linked_change_pct"] > 0
    assert never.decisions > 0 and never.build == f"{kind}-lto"


def test_a_policy_that_cannot_be_used_is_a_failure(pool: LocalPool) -> None:
    settings = EvaluateSettings(overrides="no overrides")
    never = [policy_named("never")]
    (result,) = evaluate(pool, lto("full"), pool.corpus.programs, never, settings)
    assert {failure.side for failure in result.failures} == {"policy", "logged"}
    assert not list(result.compared())


def test_identity_holds(pool: LocalPool) -> None:
    builds = [lto(kind) for kind in KINDS]
    default = check_programs(pool, builds, pool.corpus.programs, DEFAULT)
    assert default.holds and default.comparisons == 4 and default.decisions > 0
    policy = check_programs(pool, builds, pool.corpus.programs, policy_named("threshold:40"))
    assert policy.holds and policy.comparisons == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_guard_sends_back_what_grew(pool: LocalPool, kind: LtoKind) -> None:
    result = guard(pool, lto(kind), pool.corpus.programs, policy_named("never"), ["gc"])
    (program,) = result.programs
    assert program.policy["gc"] > program.stock["gc"] >= program.guarded["gc"]
    assert program.back and result.keys
    if kind == "full":
        assert program.back == pool.corpus.programs[0].modules, "they are one in the linker"


def run(pool: LocalPool, folder: Path, kind: LtoKind, compiles: float = 10) -> Tuned:
    (program,) = pool.corpus.programs
    return tune(
        pool,
        lto(kind),
        program,
        DEFAULT,
        TuneSettings(("gc",), sweep=False),
        SearchSettings(compiles=compiles),
        0,
        folder,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_pays_and_is_resumed(pool: LocalPool, kind: LtoKind, tmp_path: Path) -> None:
    found = run(pool, tmp_path / "whole", kind)
    best, stock = (build.scores()["gc"] for build in (found.best, found.stock))
    # As one module the program has nothing left to save.
    assert best < stock if kind == "thin" else best <= stock
    assert bool(found.overrides) == (best < stock)
    assert parse(found.text(PROBLEM)) == found.overrides
    run(pool, tmp_path / "parts", kind, 5)
    assert run(pool, tmp_path / "parts", kind).text(PROBLEM) == found.text(PROBLEM)


def test_only_a_changed_answer_is_linked_again(pool: LocalPool) -> None:
    (program,) = pool.corpus.programs
    builder = lto("full").incremental(pool, program, DEFAULT, ["gc"])
    try:
        stock = builder.build({})
        assert builder.build({Key("site", 1): True}).total == stock.total
        assert builder.rollouts == 1, "nobody asks about that site"
        sites = sites_of(stock.trajectories)
        turned = builder.build({site.key: not site.answer for site in sites})
        assert builder.rollouts == 2
        assert turned.total != stock.total
        assert changes(stock.functions["gc"], turned.functions["gc"])
        builder.keep_only({})
        builder.build({})
        assert builder.rollouts == 2
    finally:
        builder.close()
