from __future__ import annotations

from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np
import pytest
from numpy.typing import NDArray

from nestor.policy import bundle
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy, from_lightgbm

NAMES = ("a", "b", "c", "d")
RNG = np.random.default_rng(11)
X = RNG.integers(-20, 200, (1200, 4)).astype(np.float64)
Y = np.sin(X[:, 0] / 9) + (X[:, 1] > 50) * X[:, 2] / 100 + RNG.normal(0, 0.1, len(X))


def train(
    x: NDArray[np.float64] = X, y: NDArray[Any] = Y, *, dataset: Any = None, **options: Any
) -> Any:
    settings = {"objective": "regression", "num_leaves": 15, "verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(x, y, **(dataset or {}))
    return lightgbm.train({**settings, **options}, data, num_boost_round=25)


def scalar_logit(policy: TreesPolicy, x: list[float]) -> float:
    total = 0.0
    for root in policy.root.tolist():
        node = root
        while policy.feature[node] >= 0:
            left = x[policy.feature[node]] <= policy.threshold[node]
            node = int(policy.left[node] if left else policy.right[node])
        total += float(policy.value[node])
    return total


def test_logits_of_a_small_forest(trees_policy: TreesPolicy) -> None:
    x = np.array([[10, 2, 0], [10, 3, 0], [10.000001, 0, 1]])
    assert trees_policy.logits(x).tolist() == [0.1 + 0.3, 0.2 + 0.3, -0.7 + 0.3]


def test_many_rows_have_the_logits_of_few() -> None:
    policy = from_lightgbm(train(), NAMES, "decision", problem="anything")
    few = np.concatenate([policy.logits(X[first : first + 100]) for first in range(0, 1200, 100)])
    assert policy.logits(X).tolist() == few.tolist()


def test_sums_are_in_the_order_of_the_trees() -> None:
    values = np.array([1e16, 1.0, -1e16, 1.0])
    leaves = len(values)
    policy = TreesPolicy(
        from_lightgbm(train(), NAMES, "decision", problem="anything").metadata,
        root=np.arange(leaves, dtype=np.int32),
        feature=np.full(leaves, -1, dtype=np.int32),
        threshold=np.zeros(leaves),
        left=np.zeros(leaves, dtype=np.int32),
        right=np.zeros(leaves, dtype=np.int32),
        value=values,
    )
    assert policy.logits(np.zeros((1, 4))).tolist() == [((1e16 + 1.0) - 1e16) + 1.0] == [1.0]
    swapped = replace(policy, root=np.array([0, 2, 1, 3], dtype=np.int32))
    assert swapped.logits(np.zeros((1, 4))).tolist() == [2.0]


@pytest.mark.parametrize("objective", ["regression", "binary"])
@pytest.mark.parametrize("offset", [0.0, -0.125])
def test_lightgbm_logits_are_its_raw_scores(objective: str, offset: float) -> None:
    booster = train(y=Y if objective == "regression" else Y > 0.2, objective=objective)
    policy = from_lightgbm(
        booster, NAMES, "deviation", offset, {"learner": "gbt"}, problem="anything"
    )
    probe = np.concatenate([X, X + 0.5, RNG.integers(-900, 900, (600, 4)).astype(np.float64)])
    expected = booster.predict(probe, raw_score=True) + offset
    logits = policy.logits(probe)
    assert logits.tobytes() == expected.tobytes()
    assert len(np.unique(logits)) > 100
    few = probe[:40]
    assert logits[:40].tolist() == [scalar_logit(policy, row) for row in few.tolist()]
    assert policy.metadata.provenance == {"learner": "gbt"}
    again = bundle.from_bytes(bundle.to_bytes(policy))
    assert again.logits(probe).tobytes() == logits.tobytes()


def test_exact_thresholds_go_left() -> None:
    booster = train()
    policy = from_lightgbm(booster, NAMES, "decision", problem="anything")
    # Without the thresholds at ±1e-35: LightGBM reads inputs that small as 0.
    splits = np.flatnonzero((policy.feature >= 0) & (abs(policy.threshold) > 1e-3))[:200]
    x = np.repeat(X[:1], 2 * len(splits), axis=0)
    edges = policy.threshold[splits]
    rows = np.arange(len(splits))
    x[rows, policy.feature[splits]] = edges
    x[rows + len(splits), policy.feature[splits]] = np.nextafter(edges, np.inf)
    assert policy.logits(x).tobytes() == booster.predict(x, raw_score=True).tobytes()


def test_nodes_are_numbered_breadth_first() -> None:
    policy = from_lightgbm(train(), NAMES, "decision", problem="anything")
    inner = policy.feature >= 0
    assert (policy.right[inner] == policy.left[inner] + 1).all()
    # The children of later nodes come later: level by level.
    assert (np.diff(policy.left[inner]) == 2).sum() >= inner.sum() - len(policy.root)
    assert (np.diff(policy.left[inner]) > 0).all()


def test_a_constant_model_and_named_columns() -> None:
    named = train(dataset={"feature_name": list(NAMES)})
    assert from_lightgbm(named, NAMES, "decision", problem="anything").features == NAMES
    with pytest.raises(PolicyError, match="other names or order"):
        from_lightgbm(named, ("b", "a", "c", "d"), "decision", problem="anything")
    constant = train(y=np.full(len(X), 2.0))
    policy = from_lightgbm(constant, NAMES, "decision", 0.5, problem="anything")
    expected = constant.predict(X[:9], raw_score=True) + 0.5
    assert policy.logits(X[:9]).tolist() == expected.tolist()


def with_nan() -> NDArray[np.float64]:
    x = X.copy()
    x[::5, 0] = np.nan
    return x


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: train(with_nan()), "missing values as 'NaN'"),
        (lambda: train(zero_as_missing=True), "missing values as 'Zero'"),
        (lambda: train(abs(X), dataset={"categorical_feature": [1]}), "categorical"),
        (lambda: train(linear_tree=True), "linear"),
        (lambda: train(boosting="rf", bagging_freq=1, bagging_fraction=0.5), "forest"),
        (lambda: train(reg_sqrt=True), "objective"),
        (lambda: train(y=abs(Y), objective="poisson"), "objective"),
        (lambda: train(y=X[:, 0] % 3 // 1 + 0 * Y, objective="multiclass", num_class=3), "obje"),
        (lambda: train(X[:, :3]), "has 3 features, not 4"),
    ],
)
def test_other_models_are_refused(make: Any, reason: str) -> None:
    with pytest.raises(PolicyError, match=reason):
        from_lightgbm(make(), NAMES, "decision", problem="anything")


@pytest.mark.parametrize(
    ("tensor", "index", "value", "reason"),
    [
        ("root", 0, 7, "root"),
        ("root", 1, -1, "root"),
        ("feature", 0, 3, "feature"),
        ("feature", 2, -2, "feature"),
        ("left", 1, 1, "left must be a later"),  # itself
        ("right", 1, 0, "right must be a later"),
        ("right", 5, 7, "right must be a later"),
        ("left", 2, 3, "left must be 0"),
        ("right", 6, 3, "right must be 0"),
        ("value", 0, 0.5, "value must be 0"),
        ("value", 2, np.inf, "finite"),
        ("threshold", 3, np.nan, "finite"),
    ],
)
def test_unsound_trees_are_refused(
    trees_policy: TreesPolicy, tensor: str, index: int, value: float, reason: str
) -> None:
    array = getattr(trees_policy, tensor).copy()
    array[index] = value
    with pytest.raises(PolicyError, match=reason):
        replace(trees_policy, **{tensor: array})


def test_arrays_of_other_lengths_and_types_are_refused(trees_policy: TreesPolicy) -> None:
    with pytest.raises(PolicyError, match="as many"):
        replace(trees_policy, threshold=trees_policy.threshold[:-1])
    with pytest.raises(PolicyError, match="int32"):
        replace(trees_policy, left=trees_policy.left.astype(np.int64))
    with pytest.raises(PolicyError, match="non-empty"):
        replace(trees_policy, root=trees_policy.root[:0])
    with pytest.raises(PolicyError, match="more than"):
        replace(trees_policy, root=np.zeros((1 << 16) + 1, dtype=np.int32))


@pytest.mark.parametrize("height", [512, 513])
def test_depth_is_limited(trees_policy: TreesPolicy, height: int) -> None:
    """A chain of splits whose left children are leaves: as deep as allowed, and deeper."""
    splits = np.arange(height, dtype=np.int32)
    feature = np.concatenate([np.zeros(height), np.full(height + 1, -1)]).astype(np.int32)
    left = np.concatenate([splits + height, np.zeros(height + 1)]).astype(np.int32)
    right = np.concatenate([splits + 1, np.zeros(height + 1)]).astype(np.int32)
    right[height - 1] = 2 * height
    change: dict[str, Any] = {
        "feature": feature,
        "left": left,
        "right": right,
        "root": np.zeros(1, np.int32),
    }
    zeros = np.zeros(2 * height + 1)
    if height > 512:
        with pytest.raises(PolicyError, match="512 nodes deep"):
            replace(trees_policy, **change, threshold=zeros, value=zeros)
    else:
        assert replace(trees_policy, **change, threshold=zeros, value=zeros).parameters > height
