from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from nestor.policy import bundle
from nestor.policy.names import DEFAULT, named_policy
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import Policy, PolicyError
from nestor.problems.inlining_size.builtins import BUILTINS, MAX_THRESHOLD
from nestor.problems.inlining_size.features.sets import FEATURES

DATA = Path(__file__).parent / "data"


def found(name: str) -> Policy:
    policy = named_policy(name, BUILTINS).policy
    assert policy is not None
    return policy


def test_the_default_is_no_policy() -> None:
    assert named_policy("default", BUILTINS) is DEFAULT


def test_constants() -> None:
    x = np.array([[-(2**31)], [0], [2**31]])
    assert found("always").answer(x).tolist() == [True] * 3
    assert found("never").answer(x).tolist() == [False] * 3


@pytest.mark.parametrize("n", [0, 1, -35, 225, MAX_THRESHOLD, -MAX_THRESHOLD])
def test_thresholds_are_strict(n: int) -> None:
    policy = found(f"threshold:{n}")
    assert policy.features == ("cost_estimate",)
    assert policy.answer(np.array([[n - 1], [n], [n + 1]])).tolist() == [True, False, False]
    assert policy.answer(np.array([[n - 1e-9], [float(n)]])).tolist() == [True, False]


@pytest.mark.parametrize(
    "text", ["", "x", "1.5", "1_0", " 1", "1 ", "٣", "1000001", "-1000001", "9" * 5000, "1\n"]
)
def test_other_thresholds_are_refused(text: str) -> None:
    with pytest.raises(PolicyError, match="threshold:N"):
        BUILTINS.resolve(f"threshold:{text}")


def test_builtins_are_files_like_any_other(tmp_path: Path) -> None:
    for name in ("always", "never", "threshold:5", "mlgo2020"):
        policy = found(name)
        bundle.save(policy, tmp_path / "p")
        assert bundle.digest(bundle.load(tmp_path / "p")) == bundle.digest(policy)


def test_a_builtin_name_wins_over_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bundle.save(found("threshold:7"), "never")
    assert found("never").metadata.provenance == {"builtin": "never"}
    assert found("./never").metadata.provenance == {"builtin": "threshold:7"}


@pytest.mark.parametrize("name", ["nope", "threshold", "a/b", "", "x" * 9000, "a\0b"])
def test_a_missing_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError) as caught:
        named_policy(name, BUILTINS)
    if name in ("nope", "threshold", "a/b"):
        assert all(builtin in str(caught.value) for builtin in BUILTINS.names)


def test_the_policy_for_lto() -> None:
    """It was trained inside full LTO, reads no summary, and is bounded where a callee is large."""
    policy = found("shipped-lto")
    settings = policy.metadata.provenance["settings"]
    assert isinstance(settings, Mapping) and settings["build"] == "full-lto"
    assert policy.metadata.answers == "deviation"
    assert set(policy.features) <= set(FEATURES.unit)
    assert policy.range is not None
    size = policy.features.index("callee_code_size")
    assert policy.range[size][1] < 1000, "instructions"
    # Small enough for a header in a release, and for the linker to load at no cost.
    assert policy.parameters < 10_000


def test_the_published_policy() -> None:
    """The reader beside the published arrays (not ours) made the table; see its README."""
    policy = found("mlgo2020")
    assert isinstance(policy, MlpPolicy)
    assert policy.widths == (33, 100, 40, 2)
    assert policy.tensors()["normalise.boundaries"].shape == (11, 999)
    table = load_file(DATA / "mlgo2020_reference.safetensors")
    x, expected = table["inputs"], table["margins"]
    assert len(x) >= 5000
    assert np.abs(expected).min() > 1e-5
    assert 0.1 < (expected > 0).mean() < 0.9
    logits = policy.logits(x)
    np.testing.assert_array_equal(logits > 0, expected > 0)
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    np.testing.assert_array_equal(policy.answer(x), expected > 0)
    np.testing.assert_allclose(policy.fast_logits(x), expected, atol=1e-4)
