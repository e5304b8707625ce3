from __future__ import annotations

import ctypes
import math
import pickle
import struct

import numpy as np
import pytest

from nestor.policy import bundle
from nestor.policy.network import (
    Layer,
    LogNormalisation,
    MlpPolicy,
    Network,
    QuantileNormalisation,
    QuantileScoreNormalisation,
    build,
    fit_normalisation,
    from_torch,
    initial_layers,
    squash,
    to_torch,
)
from nestor.policy.spec import PolicyError


def f32(value: float) -> float:
    """Round once; products and sums of two f32 are exact enough in double for that."""
    return ctypes.c_float(value).value


def scalar_squash(x: float) -> float:
    m = abs(x) + 1
    k = (int.from_bytes(struct.pack(">d", m), "big") >> 52) - 1023
    return math.copysign(k + (m / 2.0**k - 1), x)


def scalar_logit(policy: MlpPolicy, x: list[float]) -> float:
    """The specification, one number at a time and without numpy's arithmetic."""
    tensors = {name: array.tolist() for name, array in policy.tensors().items()}
    z: list[float] = []
    for index, value in enumerate(x):
        if policy.metadata.transform == "log":
            shift, scale = tensors["normalise.shift"][index], tensors["normalise.scale"][index]
            z.append(f32(max(-8.0, min(8.0, (scalar_squash(value) - shift) * scale))))
        else:
            row = tensors["normalise.boundaries"][index]
            share = f32(sum(b <= f32(value) for b in row) / len(row))
            z += [share, f32(math.sqrt(share)), f32(share * share)]
    for k in range(len(policy.layers)):
        outputs = []
        weights = zip(tensors[f"layer.{k}.weight"], tensors[f"layer.{k}.bias"], strict=True)
        for row, bias in weights:
            y = bias
            for w, v in zip(row, z, strict=True):
                y = f32(y + f32(w * v))
            outputs.append(y)
        z = outputs if k + 1 == len(policy.layers) else [max(y, 0.0) for y in outputs]
    return z[0] if len(z) == 1 else f32(z[1] - z[0])


def inputs(rows: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    rng = np.random.default_rng(seed)
    x = rng.integers(-60, 420, (rows, 3))
    x[::7] *= rng.integers(1, 2**40, x[::7].shape)
    x[::5, 2] = 0
    return x


@pytest.mark.parametrize("name", ["log_policy", "quantile_policy"])
def test_logits_have_the_bits_of_the_specification(
    name: str, request: pytest.FixtureRequest
) -> None:
    policy = request.getfixturevalue(name)
    x = inputs(400)
    expected = np.array([scalar_logit(policy, row) for row in x.astype(float).tolist()])
    assert policy.logits(x).tobytes() == expected.tobytes()
    # More rows than one block, in another order: a row's logit does not depend on the others.
    many = np.concatenate([x[::-1]] * 6)
    assert policy.logits(many).tobytes() == np.concatenate([expected[::-1]] * 6).tobytes()
    fast = policy.fast_logits(x)
    np.testing.assert_allclose(fast, expected, rtol=1e-3, atol=1e-5)


def test_products_and_sums_are_rounded_one_by_one() -> None:
    tiny = 2.0**-13
    row = np.array([[1 + tiny, 1.0, 1.0]], dtype=np.float32)
    bias = np.array([-1.0], dtype=np.float32)
    x = np.array([[2**10, 2**25, -(2**25)]])

    def logit(weight: object) -> float:
        normalisation = LogNormalisation(np.zeros(3), np.array([0.1 * (1 + tiny), 0.2, 0.2]))
        layer = Layer(np.asarray(weight, dtype=np.float32), bias)
        return float(
            build(("a", "b", "c"), "decision", normalisation, [layer], problem="anything").logits(
                x
            )[0]
        )

    z = f32(scalar_squash(2**10) * (0.1 * (1 + tiny)))
    weight = float(row[0, 0])
    big = f32(scalar_squash(2**25) * 0.2)
    separate = f32(f32(f32(-1.0 + f32(weight * z)) + big) - big)
    fused = f32(-1.0 + weight * z)
    assert separate != fused
    assert logit(row) == separate


def test_relu_of_what_is_not_a_number() -> None:
    """Weights may be finite and their sums not: `y > 0 ? y : 0` decides what follows."""
    huge = 3e38

    def policy(*weights: list[list[float]]) -> MlpPolicy:
        layers = [
            Layer(np.array(w, dtype=np.float32), np.full(len(w), 0.5, dtype=np.float32))
            for w in weights
        ]
        return build(
            ("a",),
            "decision",
            LogNormalisation(np.zeros(1), np.ones(1)),
            layers,
            problem="anything",
        )

    x = np.array([[0], [2**40]])
    # In the second layer: infinity - infinity, which becomes 0.
    assert policy([[huge], [huge]], [[huge, -huge]], [[1]]).logits(x).tolist() == [0.5, 0.5]
    # In the last layer there is no ReLU; the answer is then the negative one.
    last = policy([[huge], [huge]], [[huge, -huge]])
    assert np.isnan(last.logits(x)[1])
    assert not last.answer(x)[1]
    assert last.probabilities(x)[1] == 0


def test_squash() -> None:
    x = np.array([0.0, 1, 2, 3, 7, -1, -7, 2**52, 1e300])
    expected = [0.0, 1, 1.5, 2, 3, -1, -3]
    assert squash(x)[:7].tolist() == expected
    assert squash(x).tolist() == [scalar_squash(v) for v in x.tolist()]
    rising = squash(np.linspace(-5000, 5000, 20001))
    assert (np.diff(rising) > 0).all()


def test_log_inputs_are_clamped() -> None:
    normalisation = LogNormalisation(np.array([0.0, 1e308]), np.array([1e9, 1e300]))
    z = normalisation.apply(np.array([[5.0, 0.0], [-5.0, 0.0]]))
    assert z.tolist() == [[8.0, -8.0], [-8.0, -8.0]]


def test_quantiles_count_the_boundaries_up_to_x() -> None:
    boundaries = np.array([[1, 1, 1, 4]], dtype=np.float32)
    z = QuantileNormalisation(boundaries).apply(np.array([[0.0], [1], [3], [4], [1e300]]))
    assert z[:, 0].tolist() == [0, 0.75, 0.75, 1, 1]
    assert z[1].tolist() == [0.75, f32(math.sqrt(0.75)), 0.5625]


def test_z_scores_stand_behind_quantiles() -> None:
    boundaries = np.array([[1, 1, 1, 4], [0, 0, 0, 0]], dtype=np.float32)
    mean, scale = np.array([4, 2.0**24], np.float32), np.array([0.5, 3], np.float32)
    normalisation = QuantileScoreNormalisation(boundaries, mean, scale)
    z = normalisation.apply(np.array([[3.0, 2.0**24 + 3]]))
    root = f32(math.sqrt(0.75))
    # 2^24 + 3 is 2^24 + 4 in f32.
    assert z.tolist() == [[0.75, root, 0.5625, -0.5, 1, 1, 1, 12]]
    with pytest.raises(PolicyError, match=r"normalise\.mean must have a value per feature"):
        QuantileScoreNormalisation(boundaries, mean[:1], scale)


def test_fitted_normalisation() -> None:
    x = inputs(500, seed=3)
    x[:, 1] = 12345  # constant, and its mean is not exact
    shift, scale = fit_normalisation(x)
    assert scale[1] == 0
    z = LogNormalisation(shift, scale).apply(np.concatenate([x, x * 1000]).astype(np.float64))
    np.testing.assert_allclose(z[:500].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(z[:500].std(axis=0), [1, 0, 1], atol=1e-6)
    assert (z[:, 1] == 0).all()  # also for values that were never seen
    with pytest.raises(ValueError, match="n > 0"):
        fit_normalisation(x[:0])


def test_parameters_round_trip(log_policy: MlpPolicy) -> None:
    vector = log_policy.flatten_parameters()
    assert vector.shape == (log_policy.parameters,) == (3 * 17 + 17 + 17 * 5 + 5 + 5 + 1,)
    assert bundle.digest(log_policy.with_parameters(vector)) == bundle.digest(log_policy)
    changed = log_policy.with_parameters(np.arange(len(vector), dtype=np.float32))
    assert changed.layers[0].weight[1].tolist() == [3, 4, 5]
    assert changed.layers[0].bias[0] == 51
    assert changed.layers[2].bias[0] == len(vector) - 1
    with pytest.raises(ValueError, match="parameters"):
        log_policy.with_parameters(vector[1:])
    with pytest.raises(PolicyError, match="finite"):
        log_policy.with_parameters(np.full_like(vector, np.nan))


def test_a_policy_shares_nothing_with_its_maker(log_policy: MlpPolicy) -> None:
    vector = log_policy.flatten_parameters()
    policy = log_policy.with_parameters(vector)
    vector[:] = 0
    assert policy.layers[0].weight.any()
    with pytest.raises(ValueError, match="read-only"):
        policy.layers[0].weight[0] = 0


def test_torch_agrees_both_ways(log_policy: MlpPolicy, quantile_policy: MlpPolicy) -> None:
    import torch

    x = inputs(64)
    for policy in (log_policy, quantile_policy):
        network = to_torch(policy)
        assert isinstance(network, Network)
        logits = network(torch.from_numpy(policy.normalise(x)))
        assert logits.shape == (64,)
        np.testing.assert_allclose(logits.detach().numpy(), policy.logits(x), 1e-3, 1e-5)
        flat = torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()
        assert flat.tobytes() == policy.flatten_parameters().tobytes()
        assert bundle.digest(from_torch(network, policy)) == bundle.digest(policy)
        # Training one changes the other only through `from_torch`.
        before = policy.flatten_parameters()
        with torch.no_grad():
            next(network.parameters()).add_(1.0)
        assert policy.flatten_parameters().tobytes() == before.tobytes()
        assert from_torch(network, policy).flatten_parameters()[0] == before[0] + 1
        copied = pickle.loads(pickle.dumps(network))
        assert isinstance(copied, Network)


def test_initial_layers_depend_on_the_seed_alone() -> None:
    first, again = (initial_layers((4, 8, 1), np.random.default_rng(5)) for _ in range(2))
    assert first[0].weight.tobytes() == again[0].weight.tobytes()
    wide = initial_layers((200, 300), np.random.default_rng(0))[0].weight
    assert wide.std() == pytest.approx(math.sqrt(2 / 200), rel=0.02)


@pytest.mark.parametrize(
    ("widths", "reason"),
    [
        ((3,), "1 to 8 layers"),
        ((3, *[2] * 9), "1 to 8 layers"),
        ((3, 3), "one or two outputs"),
        ((4, 1), "layer 0 must be"),
        ((3, 4097, 1), "layer 0 must be"),
    ],
)
def test_networks_that_do_not_fit(widths: tuple[int, ...], reason: str) -> None:
    normalisation = LogNormalisation(np.zeros(3), np.ones(3))
    layers = initial_layers(widths, np.random.default_rng(0))
    with pytest.raises(PolicyError, match=reason):
        build(("a", "b", "c"), "decision", normalisation, layers, problem="anything")


def test_normalisations_that_do_not_fit() -> None:
    with pytest.raises(PolicyError, match="same length"):
        LogNormalisation(np.zeros(3), np.ones(2))
    with pytest.raises(PolicyError, match="float64"):
        LogNormalisation(np.zeros(3, dtype=np.float32), np.ones(3))
    with pytest.raises(PolicyError, match="ascending"):
        QuantileNormalisation(np.array([[1, 2], [2, 1]], dtype=np.float32))
    layers = initial_layers((3, 1), np.random.default_rng(0))
    with pytest.raises(PolicyError, match="names 2"):
        build(
            ("a", "b"),
            "decision",
            LogNormalisation(np.zeros(3), np.ones(3)),
            layers,
            problem="anything",
        )
