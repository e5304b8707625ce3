"""Policies are saved and loaded again, byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.policy import bundle
from nestor.policy.network import MlpPolicy
from nestor.policy.rule import PICK, THRESHOLD
from nestor.policy.spec import Policy, PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problems.inlining_size.builtins import BUILTINS
from tests.policy.bundles import Fields, pack, parts, refused

X = np.random.default_rng(4).integers(-50, 400, (30, 3))


def test_round_trip(policy: Policy, tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    bundle.save(policy, path)
    again = bundle.load(path)
    assert type(again) is type(policy)
    assert again.metadata == policy.metadata
    assert again.logits(X).tobytes() == policy.logits(X).tobytes()
    data = path.read_bytes()
    assert bundle.to_bytes(again) == data == bundle.to_bytes(policy)
    assert bundle.digest(policy) == bundle.digest(again) == hashlib.sha256(data).hexdigest()
    assert [p.name for p in tmp_path.iterdir()] == ["p.safetensors"]


def test_bytes_do_not_depend_on_the_order_of_keys(log_policy: MlpPolicy) -> None:
    turned = dict(reversed(list(log_policy.metadata.provenance.items())))
    assert list(turned) != list(log_policy.metadata.provenance)
    other = replace(log_policy, metadata=replace(log_policy.metadata, provenance=turned))
    assert bundle.to_bytes(other) == bundle.to_bytes(log_policy)


def test_the_digest_is_that_of_the_file(trees_policy: TreesPolicy) -> None:
    fields, tensors = parts(trees_policy)
    data = pack(fields | {"comment": "not ours"}, tensors, format="np")
    policy = bundle.from_bytes(data)
    assert bundle.digest(policy) == hashlib.sha256(data).hexdigest() != bundle.digest(trees_policy)
    # What is derived from it is another policy, with a file of its own.
    assert bundle.digest(replace(policy)) == bundle.digest(trees_policy)


def test_describe_is_plain_json(log_policy: MlpPolicy) -> None:
    facts = json.loads(json.dumps(bundle.describe(log_policy)))
    assert facts["kind"] == "mlp"
    assert facts["features"] == list(log_policy.features)
    assert facts["answers"] == "deviation"
    assert facts["parameters"] == 164
    assert facts["provenance"] == log_policy.metadata.provenance
    assert facts["sha256"] == bundle.digest(log_policy)
    assert facts["tensors"]["layer.1.weight"] == [5, 17]


def test_saving_replaces_at_once_or_not_at_all(
    log_policy: MlpPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(PolicyError, match="No space left"):
            bundle.save(log_policy, path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["p"]
    with pytest.raises(PolicyError, match="Cannot write"):
        bundle.save(log_policy, path / "a file is no folder")
    with pytest.raises(PolicyError, match="Cannot write"):
        bundle.save(log_policy, f"{path}\0")


@pytest.mark.parametrize(
    "provenance",
    [{"a": np.float32(1)}, {"a": float("nan")}, {"a": {1, 2}}, {1: 2, "1": 3}, {"a": b"x"}],
)
def test_only_plain_json_is_saved(log_policy: MlpPolicy, provenance: Any) -> None:
    metadata = replace(log_policy.metadata, provenance=provenance)
    with pytest.raises(PolicyError):
        bundle.to_bytes(replace(log_policy, metadata=metadata))


def test_nothing_is_saved_that_could_not_be_read(log_policy: MlpPolicy) -> None:
    deep: Fields = {}
    for _ in range(14):
        deep = {"a": deep}
    metadata = replace(log_policy.metadata, provenance=deep)
    bundle.to_bytes(replace(log_policy, metadata=metadata))  # the object itself is the 1st level
    for provenance in ({"a": deep}, {"a": "x" * (1 << 20)}):
        metadata = replace(log_policy.metadata, provenance=provenance)
        with pytest.raises(PolicyError, match=r"nested|header"):
            bundle.to_bytes(replace(log_policy, metadata=metadata))


def test_rule_and_candidate_features(quantile_policy: MlpPolicy, log_policy: MlpPolicy) -> None:
    fields, tensors = parts(quantile_policy)
    assert "rule" not in fields
    assert "candidate_features" not in fields
    policy = bundle.from_bytes(pack(fields, tensors))
    assert policy.rule is THRESHOLD
    assert policy.metadata.candidate_features == ()
    names = ["cost_estimate", "inlining_default"]
    policy = bundle.from_bytes(
        pack(fields | {"rule": "pick", "candidate_features": names}, tensors)
    )
    assert policy.rule is PICK
    assert policy.metadata.candidate_features == tuple(names)
    again = bundle.from_bytes(bundle.to_bytes(policy))
    assert again.metadata == policy.metadata
    assert bundle.describe(again)["rule"] == "pick"
    for change, reason in (
        ({"candidate_features": ["weight"]}, "candidate feature 'weight' is none of its features"),
        ({"candidate_features": names[:1] * 2}, "twice"),
        ({"rule": "value", "candidate_features": names}, "the rule value does not use"),
    ):
        refused(pack({**fields, "rule": "pick", **change}, tensors), reason)


@pytest.mark.parametrize(
    "name", ["shipped", "shipped-lto", "distilled", "distilled-lto", "mlgo2020"]
)
def test_the_bytes_of_published_policies_stay(name: str) -> None:
    policy = BUILTINS.resolve(name)
    assert policy is not None
    assert hashlib.sha256(bundle.to_bytes(policy)).hexdigest() == policy.file_digest
