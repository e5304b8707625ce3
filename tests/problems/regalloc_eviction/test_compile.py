"""Rollouts: what the compiler asks, how it is answered, and what is put down to each decision."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.process import run
from nestor.policy.names import DEFAULT, NamedPolicy, named_policy
from nestor.policy.spec import PolicyError
from nestor.problem.check import check_problem
from nestor.problem.registry import find_problem
from nestor.problem.trajectory import LogError
from nestor.problems.inlining_size.builtins import constant
from nestor.problems.regalloc_eviction.builtins import BUILTINS
from nestor.regalloc.problem import AllocationProblem
from nestor.rollout.gate import probe_folder
from nestor.rollout.local_pool import LocalPool
from tests.problems.allocations import columns, compiled, linear, log_of

PROBLEM = find_problem("regalloc-eviction")


def test_problem_is_sound(pool: LocalPool) -> None:
    check_problem(PROBLEM, pool.place, pool.corpus.modules)


def test_default_is_stock_and_all_its_questions_are_there(pool: LocalPool) -> None:
    stock, default = compiled(pool, None), compiled(pool, "default")
    assert stock.trajectory is None
    assert stock.object == default.object
    assert columns(pool, stock) == columns(pool, default)
    log = log_of(default)
    assert len(log) >= 5
    assert (log.answer == log.default).all()
    assert not log.by_policy.any()
    marked = log.rows([PROBLEM.default_column])[:, 0]
    assert np.bincount(log.questions, weights=marked).tolist() == [1.0] * len(log)
    assert set(log.names.values()) == {"churn", "calls"}
    assert PROBLEM.describe(log, 0)["function"] in log.names.values()


def test_module_without_a_question_has_an_empty_trajectory(pool: LocalPool) -> None:
    log = log_of(compiled(pool, "default", "silent"))
    assert len(log) == 0
    assert log.rows(PROBLEM.features.unit).shape == (0, len(PROBLEM.features.unit))
    assert log.facts["module"] != 0


def test_builtin_policies_choose_what_they_say(pool: LocalPool) -> None:
    first, keep, light = (log_of(compiled(pool, n)) for n in ("first", "keep", "lowest-density"))
    assert (first.answer == 0).all()
    own = np.flatnonzero(keep.rows(["is_own"])[:, 0])
    assert (keep.decisions["index"][keep.questions[own]] == 32).all()
    for number in range(len(light)):
        weights = light.rows(["use_def_density"])[light.questions == number, 0]
        assert weights[light.answer[number]] == weights.min()


def test_policy_may_compare_each_candidate_with_the_default_one(pool: LocalPool) -> None:
    # The plugin must compute the same bits: else its answers are not those of the rows.
    weights = {"weight_to_own": 0.7, "weight_to_own_of_default": 0.4, "liverange_size": -3.0}
    weights |= {"liverange_size_of_default": 1.5, "eviction_default": 0.9, "position": 0.1}
    policy = linear(pool, weights)
    for unit in ("pressure.c.o", "probe.cpp.o"):
        log = log_of(compiled(pool, NamedPolicy.of(policy), unit))
        wanted = policy.actions(log.rows(policy.features), log.questions)
        assert (log.answer == wanted).all()
        assert (log.answer != log.default).any()
        logits = policy.logits(log.rows(policy.features))
        first = np.flatnonzero(np.diff(log.questions, prepend=-1))
        assert (log.decisions["logit"] == logits[first + log.answer]).all()


def test_beyond_its_range_the_default_decides(pool: LocalPool) -> None:
    free = linear(pool, {"position": -1.0, "progress": 0.0})
    log = log_of(compiled(pool, NamedPolicy.of(free)))
    assert (log.answer == 0).all()
    middle = float(np.median(log.rows(["progress"])))
    bounded = dataclasses.replace(free, range=np.array([[0.0, 32.0], [0.0, middle]]))
    log = log_of(compiled(pool, NamedPolicy.of(bounded)))
    inside = bounded.decides(log.rows(bounded.features), log.questions)
    assert inside.any() and not inside.all()
    assert (log.by_policy == inside).all()
    assert (log.answer == np.where(inside, 0, log.default)).all()
    one_row = dataclasses.replace(free, range=np.array([[0.0, 31.0], [-1.0, 1e9]]))
    log = log_of(compiled(pool, NamedPolicy.of(one_row)))
    with_own = np.bincount(log.questions, weights=log.rows(["is_own"])[:, 0]) > 0
    assert with_own.any()
    assert (log.by_policy == ~with_own).all()
    assert (log.answer == np.where(with_own, log.default, 0)).all()


def test_sampling_repeats_by_its_seed(pool: LocalPool) -> None:
    one, again, other = (compiled(pool, "keep", seed=seed) for seed in (1, 1, 2))
    assert one.object == again.object
    assert log_of(one).answer.tolist() == log_of(again).answer.tolist()
    assert log_of(one).answer.tolist() != log_of(other).answer.tolist()
    assert (log_of(one).decisions["log_probability"] < 0).all()


def test_groups_draw_one_number_for_a_function(pool: LocalPool) -> None:
    log = log_of(compiled(pool, "keep", seed=3, by_group=True, temperature=1e6))
    # Nearly uniform, so that the number alone decides which part of the candidates is chosen.
    part = log.answer / log.decisions["rows"]
    for function in np.unique(log.decisions["function"]):
        own = part[log.decisions["function"] == function]
        rows = log.decisions["rows"][log.decisions["function"] == function]
        assert np.ptp(own) <= 2 / rows.min()


def test_credit_is_by_function(pool: LocalPool) -> None:
    stock, other = compiled(pool, "default"), compiled(pool, "first")
    scorer = PROBLEM.scorers(pool, [], {"x": stock}).units["x"]
    parts = [scorer.parts(r.outcome) for r in (stock, other)]
    credit = PROBLEM.credit((log_of(stock), parts[0]), (log_of(other), parts[1]))
    log = log_of(other)
    left = log.answer != log.default
    assert left.any() and (credit.share[~left] == 0).all()
    for number, name in log.names.items():
        own = log.decisions["function"].view("<u8") == number
        change = parts[1][name] - parts[0][name]
        assert (credit.change[own] == change).all()
        if (own & left).any():
            assert credit.share[own].sum() == pytest.approx(change)


def test_labels_say_what_an_answer_costs(pool: LocalPool) -> None:
    assert isinstance(PROBLEM, AllocationProblem)
    labelling = dataclasses.replace(PROBLEM, labels=100)
    pool.problem = labelling
    stock, done = compiled(pool, "default"), compiled(pool, "default")
    log = log_of(done)
    costs = log.decisions["cost_of_candidate"]
    chosen = costs[np.arange(len(log)), log.decisions["index"]]
    by_name = {f.name: f.cost.cost for f in done.outcome.functions}
    own = np.array([by_name[log.names[n]] for n in log.decisions["function"].view("<u8").tolist()])
    assert np.isfinite(chosen).any()
    assert chosen[np.isfinite(chosen)] == pytest.approx(own[np.isfinite(chosen)])
    assert stock.object == done.object  # trials leave nothing behind
    before = (log, {f.name: f.cost.cost for f in stock.outcome.functions})
    other = compiled(pool, "first")
    label = log_of(other).decisions["cost_beyond_default"]
    after = {f.name: f.cost.cost for f in other.outcome.functions}
    credit = labelling.credit(before, (log_of(other), after))
    left = log_of(other).answer != log_of(other).default
    labelled = left & np.isfinite(label)
    assert labelled.any()
    assert (credit.share[labelled] == label[labelled]).all()


def test_what_cannot_be_compiled_says_why(pool: LocalPool) -> None:
    failure = compiled(pool, "default", overrides="x").failure
    assert "expected 'nestor-allocation-overrides 1'" in str(failure)
    wrong = NamedPolicy.of(constant(inline=True))
    assert "it is for inlining-size" in str(compiled(pool, wrong).failure)
    strange = NamedPolicy.of(linear(pool, {"x": 1.0}))
    assert "does not offer: x" in str(compiled(pool, strange).failure)
    with pytest.raises(PolicyError, match="first, keep, lowest-density"):
        named_policy("last", BUILTINS)
    assert named_policy("default", BUILTINS) == DEFAULT


def test_cancelled_compile_fails(pool: LocalPool) -> None:
    pool.cancel()
    assert "cancelled" in str(compiled(pool, "first").failure)


@pytest.mark.parametrize("what", ["cut short", "another mask", "another answer"])
def test_damaged_logs_are_refused(pool: LocalPool, tmp_path: Path, what: str) -> None:
    log = tmp_path / "log"
    flags = [f"-fpass-plugin={pool.plugin.path}", "-mllvm", f"-nestor-eviction-log={log}"]
    source, out = probe_folder() / "probe.cpp", tmp_path / "x.o"
    clang = pool.plugin.toolchain.clang
    assert run([clang, "-O2", "-c", source, *flags, "-o", out]).ok
    assert len(PROBLEM.read_log(log)) >= 5
    data = log.read_bytes()
    if what == "cut short":
        data = data[: len(data) // 2]
    else:
        name = b'"mask"' if what == "another mask" else b'"index_to_evict"'
        data = data.replace(name, b'"x' + name[2:], 1)
    log.write_bytes(data)
    with pytest.raises(LogError, match="no complete log of questions"):
        PROBLEM.read_log(log)
