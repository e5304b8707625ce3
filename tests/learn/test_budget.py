"""Budgets: a run ends where it comes closest to them, by prices that do not change."""

from pathlib import Path

import pytest

from nestor.errors import NestorError
from nestor.learn.budget import Budget, Budgeted, price_list
from nestor.learn.checkpoint import CheckpointError
from nestor.learn.training import Run, train
from nestor.policy import bundle
from tests.learn.test_learning import reinforce
from tests.learn.worlds import threshold_world as world


@pytest.mark.parametrize(
    ("budget", "compiles"),
    [
        (Budget(compiles=40), 40),
        (Budget(compiles=41), 40),
        (Budget(compiles=43), 44),  # 44 is closer than 40
        (Budget(compiles=1), 4),
        (Budget(cpu_minutes=0.2), 24),  # half a second each
        (Budget(), 200),  # the learner's own 50 steps
        (Budget(compiles=10_000), 200),
    ],
)
def test_run_ends_closest_to_its_budget(budget: Budget, compiles: int, tmp_path: Path) -> None:
    made = world(units=8)
    learner = Budgeted(reinforce(made), budget, made.tally)
    result = train(learner, Run(tmp_path, {}))
    assert made.tally.rollouts == compiles
    assert result.last_metrics["spent/compiles"] == compiles
    assert result.last_metrics["spent/cpu_minutes"] == pytest.approx(compiles * 0.5 / 60)


def test_a_raised_budget_goes_on_to_the_same_policy(tmp_path: Path) -> None:
    def ended(folder: Path, compiles: int) -> tuple[int, bytes]:
        made = world(units=8)
        learner = Budgeted(reinforce(made), Budget(compiles=compiles), made.tally)
        run = Run(folder, {"budget": compiles}, raisable=frozenset(["budget"]))
        policy = train(learner, run).policy
        return made.tally.rollouts, bundle.to_bytes(policy)

    _, short = ended(tmp_path / "raised", 20)
    rest, raised = ended(tmp_path / "raised", 60)
    whole, direct = ended(tmp_path / "whole", 60)
    assert raised == direct != short
    assert rest == whole - 20
    with pytest.raises(CheckpointError, match="gone further"):
        ended(tmp_path / "raised", 20)


def test_prices_of_a_run_stay(tmp_path: Path) -> None:
    assert price_list(tmp_path / "run", {"a": 1.5}) == {"a": 1.5}
    assert price_list(tmp_path / "run", {"a": 2.5}) == {"a": 1.5}
    (tmp_path / "run" / "prices.json").write_text("[1")
    with pytest.raises(NestorError, match="take another --out"):
        price_list(tmp_path / "run", {})


def test_senseless_budgets_are_refused() -> None:
    with pytest.raises(NestorError, match="one of them"):
        Budget(cpu_minutes=1, compiles=1)
    with pytest.raises(NestorError, match="above 0"):
        Budget(compiles=0)
