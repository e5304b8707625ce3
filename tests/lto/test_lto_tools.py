"""Evaluation, identity, guard and tune under LTO, on the real linker."""

from pathlib import Path

import pytest

from nestor.compiler.lto import LtoKind
from nestor.evaluate.compare import EvaluateSettings
from nestor.evaluate.lto import evaluate_lto
from nestor.evaluate.lto_guard import guard_lto
from nestor.evaluate.lto_identity import check_lto
from nestor.policy.overrides import Key, parse
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool
from nestor.tune.credit import changes
from nestor.tune.lto_build import LtoBuilder
from nestor.tune.moves import sites_of
from nestor.tune.search import SearchSettings
from nestor.tune.session import Tuned, TuneSettings, tune

KINDS: tuple[LtoKind, ...] = ("full", "thin")


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_compares_with_stock_lto(pool: Pool, kind: LtoKind) -> None:
    policies = [policy_file("never"), policy_file("default")]
    never, default = evaluate_lto(pool, pool.corpus.programs, policies, kind)
    assert never.failures == default.failures == ()
    assert default.total()["linked_change_pct"] == 0.0
    assert never.total()["linked_change_pct"] > 0
    assert never.decisions > 0 and never.hashes["lto"] == kind


def test_a_policy_that_cannot_be_used_is_a_failure(pool: Pool, tmp_path: Path) -> None:
    overrides = tmp_path / "overrides"
    overrides.write_text("no overrides")
    (result,) = evaluate_lto(
        pool,
        pool.corpus.programs,
        [policy_file("never")],
        "full",
        EvaluateSettings(overrides=overrides),
    )
    assert {failure.side for failure in result.failures} == {"policy", "logged"}
    assert result.compared == ()


def test_identity_holds(pool: Pool) -> None:
    default = check_lto(pool, pool.corpus.programs, policy_file("default"), KINDS)
    assert default.holds and default.comparisons == 4 and default.decisions > 0
    policy = check_lto(pool, pool.corpus.programs, policy_file("threshold:40"), KINDS)
    assert policy.holds and policy.comparisons == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_guard_sends_back_what_grew(pool: Pool, kind: LtoKind) -> None:
    result = guard_lto(pool, pool.corpus.programs, policy_file("never"), kind)
    (program,) = result.programs
    assert program.policy["gc"] > program.stock["gc"] >= program.guarded["gc"]
    assert program.back and result.keys
    if kind == "full":
        assert program.back == pool.corpus.programs[0].modules, "they are one in the linker"


def run(pool: Pool, folder: Path, kind: LtoKind, compiles: float = 10) -> Tuned:
    (program,) = pool.corpus.programs
    return tune(
        pool,
        program,
        policy_file("default"),
        TuneSettings(sweep=False, lto=kind),
        SearchSettings(compiles=compiles),
        0,
        folder,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_pays_and_is_resumed(pool: Pool, kind: LtoKind, tmp_path: Path) -> None:
    found = run(pool, tmp_path / "whole", kind)
    best, stock = (build.sizes["gc"].loadable for build in (found.best, found.stock))
    # As one module the program has nothing left to save.
    assert best < stock if kind == "thin" else best <= stock
    assert bool(found.overrides) == (best < stock)
    assert parse(found.text()) == found.overrides
    run(pool, tmp_path / "parts", kind, 5)
    assert run(pool, tmp_path / "parts", kind).text() == found.text()


def test_only_a_changed_answer_is_linked_again(pool: Pool) -> None:
    (program,) = pool.corpus.programs
    builder = LtoBuilder(pool, program, "default")
    try:
        stock = builder.build({})
        assert builder.build({Key("site", 1): True}).total == stock.total
        assert builder.rollouts == 1, "nobody asks about that site"
        sites = sites_of(stock.trajectories)
        turned = builder.build({Key("site", site.key): not site.answer for site in sites})
        assert builder.rollouts == 2
        assert turned.total != stock.total
        assert changes(stock.functions["gc"], turned.functions["gc"])
        builder.keep_only({})
        builder.build({})
        assert builder.rollouts == 2
    finally:
        builder.close()
