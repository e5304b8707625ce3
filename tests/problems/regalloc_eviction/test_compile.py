"""Rollouts: what the compiler asks, how it is answered, and what is put down to each decision."""

import dataclasses

import numpy as np
import pytest
from nestor.problems.regalloc_eviction.credit import function_id

from nestor.policy.names import DEFAULT, NamedPolicy, named_policy
from nestor.policy.spec import PolicyError
from nestor.problem.check import check_problem
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request, Rollout
from nestor.problems.inlining_size.builtins import constant
from nestor.problems.regalloc_eviction.builtins import BUILTINS
from nestor.rollout.local_pool import LocalPool
from tests.conftest import module_named

PROBLEM = find_problem("regalloc-eviction")


def compiled(
    pool: LocalPool, policy: str | NamedPolicy | None, unit: str = "probe.c.o", **more: object
) -> Rollout:
    named = named_policy(policy, BUILTINS) if isinstance(policy, str) else policy
    request = Request(module_named(pool.corpus, unit), named, log=policy is not None, keep=True)
    (rollout,) = pool.run([dataclasses.replace(request, **more)])  # type: ignore[arg-type]
    return rollout


def columns(rollout: Rollout) -> dict[str, float]:
    assert rollout.failure is None
    return dict(PROBLEM.columns(rollout.outcome))


def test_problem_is_sound(pool: LocalPool) -> None:
    check_problem(PROBLEM, pool.place, pool.corpus.modules)


def test_default_is_stock_and_its_questions_are_reproduced(pool: LocalPool) -> None:
    stock, default = compiled(pool, None), compiled(pool, "default", names=True)
    assert stock.trajectory is None
    assert stock.object == default.object
    assert columns(stock) == columns(default)
    log = default.trajectory
    assert log is not None
    assert log.complete
    assert len(log) >= 5
    assert (log.answer == log.default).all()
    assert not log.by_policy.any()
    assert log.questions.tolist() == sorted(log.questions.tolist())
    marked = log.rows([PROBLEM.default_column])[:, 0]
    assert np.bincount(log.questions, weights=marked).tolist() == [1.0] * len(log)
    assert "checksum" in log.names.values()
    assert PROBLEM.describe(log, 0)["function"] in log.names.values()


def test_module_without_a_question_has_an_empty_trajectory(pool: LocalPool) -> None:
    log = compiled(pool, "default", "silent").trajectory
    assert log is not None
    assert len(log) == 0
    assert log.rows(PROBLEM.features.unit).shape == (0, len(PROBLEM.features.unit))


def test_builtin_policies_choose_what_they_say(pool: LocalPool) -> None:
    logs = {name: compiled(pool, name).trajectory for name in BUILTINS.names}
    first, keep, light = logs["first"], logs["keep"], logs["lowest-density"]
    assert first is not None and keep is not None and light is not None
    assert (first.answer == 0).all()
    own = np.flatnonzero(keep.rows(["is_own"])[:, 0])
    assert (keep.decisions["index"][keep.questions[own]] == 32).all()
    for number in range(len(light)):
        weights = light.rows(["use_def_density"])[light.questions == number, 0]
        assert weights[light.answer[number]] == weights.min()


def test_sampling_repeats_by_its_seed(pool: LocalPool) -> None:
    one, again, other = (compiled(pool, "keep", seed=seed) for seed in (1, 1, 2))
    assert one.object == again.object
    assert one.trajectory is not None and again.trajectory is not None
    assert other.trajectory is not None
    assert one.trajectory.answer.tolist() == again.trajectory.answer.tolist()
    assert one.trajectory.answer.tolist() != other.trajectory.answer.tolist()
    assert (one.trajectory.decisions["log_probability"] < 0).all()


def test_groups_draw_one_number_for_a_function(pool: LocalPool) -> None:
    log = compiled(pool, "keep", seed=3, by_group=True, temperature=1e6).trajectory
    assert log is not None
    # Nearly uniform, so that the number alone decides which part of the candidates is chosen.
    part = log.answer / log.decisions["rows"]
    for function in np.unique(log.decisions["function"]):
        own = part[log.decisions["function"] == function]
        rows = log.decisions["rows"][log.decisions["function"] == function]
        assert np.ptp(own) <= 2 / rows.min()


def test_credit_is_by_function(pool: LocalPool) -> None:
    stock, other = compiled(pool, "default"), compiled(pool, "first", names=True)
    assert stock.trajectory is not None and other.trajectory is not None
    scorer = PROBLEM.scorers(pool, [], {"x": stock}).units["x"]
    parts = [scorer.parts(r.outcome) for r in (stock, other)]
    credit = PROBLEM.credit((stock.trajectory, parts[0]), (other.trajectory, parts[1]))
    log = other.trajectory
    left = log.answer != log.default
    assert left.any() and (credit.share[~left] == 0).all()
    for name in parts[0]:
        own = log.decisions["function"] == function_id(name)
        change = parts[1][name] - parts[0][name]
        assert (credit.change[own] == change).all()
        if (own & left).any():
            assert credit.share[own].sum() == pytest.approx(change)


def test_what_cannot_be_compiled_says_why(pool: LocalPool) -> None:
    assert "no overrides" in str(compiled(pool, "default", overrides="x").failure)
    wrong = NamedPolicy.of(constant(inline=True))
    assert "must be pick" in str(compiled(pool, wrong).failure)
    policy = named_policy("keep", BUILTINS).policy
    assert policy is not None
    metadata = dataclasses.replace(policy.metadata, features=("x",), candidate_features=())
    strange = NamedPolicy.of(dataclasses.replace(policy, metadata=metadata))
    assert "does not offer: x" in str(compiled(pool, strange).failure)
    with pytest.raises(PolicyError, match="first, keep, lowest-density"):
        named_policy("last", BUILTINS)
    assert named_policy("default", BUILTINS) == DEFAULT


def test_cancelled_compile_fails(pool: LocalPool) -> None:
    pool.cancel()
    assert "cancelled" in str(compiled(pool, "first").failure)
