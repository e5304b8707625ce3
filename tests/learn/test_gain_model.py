"""The model of gains: finds a rule that holds everywhere, and mistrusts one that does not."""

from dataclasses import replace

import numpy as np
import pytest

from nestor.learn.distil.gain_model import (
    MISSING,
    GainSettings,
    Kind,
    fit,
    policy,
    predict_across,
    rows,
)
from nestor.learn.distil.gain_network import Network
from nestor.learn.distil.gain_trees import Trees
from nestor.learn.distil.trials import Trials
from nestor.policy import bundle
from nestor.problem.problem import FeatureSets
from tests.learn.worlds import threshold_world

FEATURES = ("default", "cost", "calls_in_program", "link_mode")
PROBLEM = replace(
    threshold_world(1, 1).reference.problem,
    features=FeatureSets((), (), FEATURES[:2], FEATURES, mode="link_mode", modes=("no-gc", "gc")),
)
SETTINGS = GainSettings()
TREES = Trees(rounds=60, coarse_rounds=40, leaves=8, least_rows=10)
NETWORK = Network(hidden=(16,), steps=600, coarse_steps=150, learning_rate=0.01)

kinds = pytest.mark.parametrize("kind", [TREES, NETWORK], ids=["trees", "network"])


def trials(*, contrary: int = 0, projects: int = 6, each: int = 400) -> Trials:
    """Leaving the default saves 20 bytes below a cost of 30 and loses 20 above it.

    In ``contrary`` projects it loses everywhere.
    """
    rng = np.random.default_rng(3)
    count = projects * each
    cost = rng.integers(-20, 80, count)
    program = np.repeat(np.arange(projects), each)
    gain = np.where((cost < 30) & (program >= contrary), 20.0, -20.0) + rng.normal(0, 3, count)
    x = np.stack([cost, rng.integers(1, 9, count), np.ones(count)], axis=1).astype(float)
    return Trials(
        features=FEATURES[1:],
        programs=tuple(f"p{i}/main" for i in range(projects)),
        score=np.full(projects, 100_000.0),
        x=x,
        gain=np.stack([gain, gain], axis=1),
        modes=("gc", "no-gc"),
        sharing=np.ones(count),
        default=np.zeros(count),
        program=program,
    )


def questions(*costs: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([[0.0, cost, MISSING, MISSING] for cost in costs])


@kinds
def test_a_rule_that_holds_everywhere_is_followed(kind: Kind) -> None:
    data = rows(trials(), FEATURES, PROBLEM, SETTINGS, 0)
    fitted = fit(kind, data, predict_across(kind, data, SETTINGS, 0), 0)
    made = policy(kind, fitted, data, FEATURES, PROBLEM, SETTINGS)
    assert (made.logits(questions(0, 10, 50, 70)) > 0).tolist() == [True, True, False, False]


def test_what_was_never_seen_is_left_to_the_default() -> None:
    data = rows(trials(), FEATURES, PROBLEM, SETTINGS, 0)
    fitted = fit(TREES, data, predict_across(TREES, data, SETTINGS, 0), 0)
    made = policy(TREES, fitted, data, FEATURES, PROBLEM, SETTINGS)
    assert made.logits(questions(-500))[0] == 0, "below any cost of the trials"


def test_caution_holds_back_where_projects_disagree() -> None:
    """What holds in four of six projects is followed, until caution is asked for."""
    data = rows(trials(contrary=2), FEATURES, PROBLEM, SETTINGS, 0)
    fitted = fit(TREES, data, predict_across(TREES, data, SETTINGS, 0), 0)
    leaves = []
    for caution in (0.0, 2.0):
        made = policy(TREES, fitted, data, FEATURES, PROBLEM, replace(SETTINGS, caution=caution))
        leaves.append(bool(made.logits(questions(10))[0] > 0))
    assert leaves == [True, False]


def test_each_trial_stands_with_and_without_a_summary() -> None:
    made = trials(projects=2)
    made = replace(made, gain=np.stack([made.gain[:, 0], made.gain[:, 0] - 10], axis=1))
    data = rows(made, FEATURES, PROBLEM, replace(SETTINGS, clip=15.0), 0)
    half = len(made)
    assert len(data.y) == 2 * half
    assert (data.x[half:, 2:] == MISSING).all()
    modes = data.x[:half, 3]
    assert set(modes.tolist()) == {0.0, 1.0}, "no-gc and gc"
    expected = np.where(modes == 1, made.gain[:, 0], made.gain[:, 1])
    assert (data.y[:half] == np.clip(expected, -15, 15)).all()
    assert np.allclose(data.y[half:], np.clip(made.gain.mean(axis=1), -15, 15))


def test_without_a_summary_the_worst_modes_may_count() -> None:
    """Modes that no summary names are assumptions: they count only where there is none."""
    made = trials(projects=2)
    gain = np.stack([made.gain[:, 0], made.gain[:, 0] - 10, made.gain[:, 0] - 50], axis=1)
    made = replace(made, gain=gain, modes=("gc", "no-gc", "copies-10"))
    half = len(made)
    for tail, expected in ((1.0, gain.mean(axis=1)), (2 / 3, gain[:, 1:].mean(axis=1)),
                           (0.0, gain[:, 2])):  # fmt: skip
        data = rows(made, FEATURES, PROBLEM, replace(SETTINGS, tail=tail, clip=1e9), 0)
        assert np.allclose(data.y[half:], expected)
        assert set(data.x[:half, 3].tolist()) == {0.0, 1.0}
        assert (data.y[:half] >= gain[:, 1]).all(), "a summary says which mode it is"


@pytest.mark.parametrize("kind", [TREES, replace(NETWORK, steps=50, coarse_steps=20)])
def test_the_same_trials_give_the_same_bytes(kind: Kind) -> None:
    files = []
    for _ in range(2):
        data = rows(trials(), FEATURES, PROBLEM, SETTINGS, 1)
        fitted = fit(kind, data, predict_across(kind, data, SETTINGS, 1), 1)
        files.append(bundle.to_bytes(policy(kind, fitted, data, FEATURES, PROBLEM, SETTINGS)))
    assert files[0] == files[1]
