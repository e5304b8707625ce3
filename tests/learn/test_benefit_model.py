"""Gain over cost: what is predicted, and where the policy leaves the default."""

import numpy as np
import pytest

from nestor.learn.benefit.model import BoostSettings, Limits, Rows, fit, policy
from nestor.policy.spec import PolicyError
from nestor.policy.trees import from_lightgbm

FEATURES = ("default", "hot")
RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (2000, 2)).astype(float)
COST = RNG.uniform(1e-4, 1e-2, len(X))
GAIN = COST * np.where(X[:, 1] > 0, 4.0, 0.05) * RNG.exponential(1.0, len(X))
SETTINGS = BoostSettings(rounds=200, leaves=4)
ALL = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def test_the_logit_is_the_logarithm_of_gain_over_cost() -> None:
    density = fit(Rows(X, GAIN, COST), FEATURES, SETTINGS, 0, problem="inlining-speed")
    predicted = np.exp(density.logits(ALL))
    assert predicted[:2] == pytest.approx(predicted[2:], rel=0.15)  # the default says nothing
    assert predicted[1] == pytest.approx(4.0, rel=0.2)
    assert predicted[0] < 0.4  # towards the mean: leaves are regularised


@pytest.mark.parametrize(("take", "deviates"), [(1.0, [False, True]), (8.0, [False, False])])
def test_it_says_yes_above_the_limit_where_the_default_says_no(
    take: float, deviates: list[bool]
) -> None:
    density = fit(Rows(X, GAIN, COST), FEATURES, SETTINGS, 0, problem="inlining-speed")
    found = policy(density, "default", Limits(take), np.array([[0.0, 1.0], [0.0, 1.0]]))
    assert (found.logits(ALL[:2]) > 0).tolist() == deviates
    assert found.logits(ALL[:2]) == pytest.approx(density.logits(ALL[:2]) - np.log(take))
    assert not found.logits(ALL[2:]).any()  # out of its range
    assert found.metadata.answers == "deviation"
    assert found.range is not None
    assert found.range.tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_it_says_no_below_the_other_limit_where_the_default_says_yes() -> None:
    density = fit(Rows(X, GAIN, COST), FEATURES, SETTINGS, 0, problem="inlining-speed")
    seen = np.array([[0.0, 1.0], [0.0, 1.0]])
    found = policy(density, "default", Limits(take=1.0, leave=0.5), seen)
    assert (found.logits(ALL) > 0).tolist() == [False, True, True, False]  # deviations
    logits = density.logits(ALL)
    assert found.logits(ALL[:2]) == pytest.approx(logits[:2])
    assert found.logits(ALL[2:]) == pytest.approx(np.log(0.5) - logits[2:])
    cautious = policy(density, "default", Limits(take=1.0, leave=1e-6), seen)
    assert (cautious.logits(ALL) > 0).tolist() == [False, True, False, False]


def test_logarithms_are_taken_only_by_who_says_so() -> None:
    import lightgbm

    data = lightgbm.Dataset(X, GAIN)
    plain, logarithmic = (
        lightgbm.train({"objective": objective, "verbosity": -1, "use_missing": False}, data, 2)
        for objective in ("regression", "poisson")
    )
    for booster, flag in ((plain, True), (logarithmic, False)):
        with pytest.raises(PolicyError, match="objective"):
            from_lightgbm(booster, FEATURES, "deviation", problem="mine", logarithmic=flag)
    from_lightgbm(logarithmic, FEATURES, "deviation", problem="mine", logarithmic=True)


def test_a_greatest_gain_counts_at_most() -> None:
    wild = GAIN.copy()
    wild[0] = 1e6 * COST[0]
    rows = Rows(X, wild, COST)
    density = fit(rows, FEATURES, SETTINGS, 0, problem="inlining-speed")
    assert np.exp(density.logits(ALL)).max() < 6
