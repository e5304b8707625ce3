"""Files that are no sound policies are refused with the reason."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

from nestor.policy import bundle
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy
from tests.policy.bundles import Fields, pack, parts, raw, refused


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "newer Nestor"),
        ({"version": 0}, "version"),
        ({"version": True}, "version"),
        ({"version": "1"}, "version"),
        ({"version": 10**5000}, "JSON"),
        ({"problem": ""}, "problem"),
        ({"problem": "Inlining"}, "problem"),
        ({"problem": "a--b"}, "problem"),
        ({"problem": "a-b\n"}, "problem"),
        ({"problem": "a" * 65}, "problem"),
        ({"problem": 3}, "problem"),
        ({"rule": "choose"}, "rule must be threshold or pick or value"),
        ({"rule": None}, "rule"),
        ({"rule": "pick"}, "decision, not deviation, with the rule pick"),
        ({"rule": "value"}, "decision, not deviation, with the rule value"),
        ({"candidate_features": ["callee_users"]}, "the rule threshold does not use"),
        ({"candidate_features": "cost"}, "list of names"),
        ({"candidate_features": [1]}, "must be names"),
        ({"kind": "forest"}, "kind"),
        ({"kind": ["mlp"]}, "kind"),
        ({"kind": "trees", "transform": "none"}, "lacks the tensor tree"),
        ({"transform": "none"}, "transform"),
        ({"transform": "quantile"}, "lacks the tensor normalise.boundaries"),
        ({"answers": "maybe"}, "answers"),
        ({"features": "abc"}, "features"),
        ({"features": []}, "features"),
        ({"features": ["a", "b", "a"]}, "features list 'a' twice"),
        ({"features": ["a", "b", 3]}, "must be names"),
        ({"features": ["a", "b", "\ud800"]}, "must be names"),
        ({"features": ["a", "b"]}, "names 2"),
        ({"features": [f"f{i}" for i in range(1025)]}, "1 to 1024"),
        ({"provenance": []}, "provenance"),
        ({"provenance": {"x": float("inf")}}, "JSON"),
    ],
)
def test_metadata_is_checked(log_policy: MlpPolicy, change: Fields, reason: str) -> None:
    fields, tensors = parts(log_policy)
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        data = pack(fields | change, tensors)
    finally:
        sys.set_int_max_str_digits(limit)
    refused(data, reason)


def test_absent_and_unknown_fields(log_policy: MlpPolicy) -> None:
    fields, tensors = parts(log_policy)
    for name in ("version", "problem", "kind", "features", "answers", "transform"):
        short = {key: value for key, value in fields.items() if key != name}
        refused(pack(short, tensors), f"lacks the field '{name}'")
    del fields["provenance"]
    policy = bundle.from_bytes(pack(fields | {"later": {"x": 1}}, tensors, other="text"))
    assert policy.metadata.provenance == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "JSON"),
        ("[]", "not a JSON object"),
        ('{"version":1,"version":1}', "twice"),
        ('{"x":NaN}', "finite"),
        ('{"x":1e999}', "finite"),
        ("[" * 17 + "]" * 17, "nested"),
        ("[" * 100_000, "nested"),
        ('{"x":"' + "[{" * 99 + '"}', "lacks the field"),  # brackets in a string are text
        ('{"x":"\\"' + "[{" * 99 + '"}', "lacks the field"),
        ("{" * 16, "JSON"),
    ],
)
def test_the_text_of_the_metadata_is_checked(log_policy: MlpPolicy, text: str, reason: str) -> None:
    refused(pack(text, parts(log_policy)[1]), reason)


def broken(name: str, make: Callable[[Any], Any]) -> Callable[[Fields], None]:
    def change(tensors: Fields) -> None:
        tensors[name] = make(tensors[name].copy())

    return change


def put(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array.flat[-1] = value
        return array

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.pop("layer.0.bias"), "lacks the tensor layer.0.bias"),
        (lambda t: t.pop("layer.0.weight"), "layer.0.weight"),
        (lambda t: t.pop("layer.1.weight"), "layer.1.bias"),
        (lambda t: t.update(extra=np.zeros(1)), "'extra' that its kind does not define"),
        (lambda t: t.update({"layer.00.bias": np.zeros(1)}), "does not define"),
        (lambda t: t.update({"tree.root": np.zeros(1, np.int32)}), "does not define"),
        (
            lambda t: t.update({f"layer.{k}.weight": np.zeros((1, 1)) for k in range(3, 9)}),
            "8 layers",
        ),
        (broken("layer.0.weight", lambda a: a.astype(np.float64)), "type F32"),
        (broken("normalise.shift", lambda a: a.astype(np.float32)), "type F64"),
        (broken("layer.0.weight", lambda a: a[:, :2]), "layer 0 must be"),
        (broken("layer.0.weight", lambda a: a.ravel()), "2 non-empty dimensions"),
        (broken("layer.0.bias", lambda a: a[:0]), "dimensions of at least 1"),
        (broken("layer.2.bias", lambda a: a.reshape(1, 1)), "1 non-empty dimensions"),
        (broken("layer.1.weight", put(np.nan)), "not finite"),
        (broken("normalise.scale", put(-np.inf)), "not finite"),
    ],
)
def test_tensors_are_checked(
    log_policy: MlpPolicy, change: Callable[[Fields], None], reason: str
) -> None:
    fields, tensors = parts(log_policy)
    bundle.from_bytes(pack(fields, tensors))
    change(tensors)
    refused(pack(fields, tensors), reason)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((2, 2)), "every feature"),
        (np.zeros((3, 3)), "every feature"),
        (np.zeros(6), "2 non-empty dimensions"),
        (np.zeros((3, 2), np.float32), "type F64"),
        (np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 0.0]]), "low value above"),
        (np.array([[0.0, 1.0], [0.0, np.inf], [0.0, 0.0]]), "not finite"),
        (np.array([[0.0, 1.0], [np.nan, 1.0], [0.0, 0.0]]), "not finite"),
    ],
)
def test_ranges_are_checked(log_policy: MlpPolicy, array: Any, reason: str) -> None:
    fields, tensors = parts(log_policy)
    refused(pack(fields, tensors | {"range": array}), reason)


def test_a_decision_has_no_range(quantile_policy: MlpPolicy) -> None:
    fields, tensors = parts(quantile_policy)
    refused(pack(fields, tensors | {"range": np.zeros((3, 2))}), "deviations")
    with pytest.raises(PolicyError, match="deviations"):
        replace(quantile_policy, range=np.zeros((3, 2)))


def test_descending_boundaries(quantile_policy: MlpPolicy) -> None:
    fields, tensors = parts(quantile_policy)
    tensors["normalise.boundaries"] = tensors["normalise.boundaries"][:, ::-1]
    refused(pack(fields, tensors), "ascending")


def test_files_that_are_no_policies(log_policy: MlpPolicy) -> None:
    whole = bundle.to_bytes(log_policy)
    refused(b"", "too short")
    refused(b"\x7fELF\x02\x01\x01\x00" * 9, "header is larger")
    refused((1 << 62).to_bytes(8, "little") + whole[8:], "header is larger")
    refused(whole[:60], "cut off")
    refused(whole[:-1], "not a sound")
    refused(whole + b"\0", "not a sound")
    refused(raw(b"\xff\xfe"), "UTF-8")
    refused(raw(b"[" * (1 << 20)), "nested")
    refused(raw(b"{"), "JSON")
    refused(raw({}), "no policy")
    refused(raw({"__metadata__": ["nestor"]}), "no policy")
    refused(raw({"__metadata__": {"nestor": 1}}), "no policy")
    refused(save_tensors({"x": np.zeros(3)}), "no policy")


def test_hostile_shapes_and_offsets(trees_policy: TreesPolicy) -> None:
    whole = bundle.to_bytes(trees_policy)
    size = int.from_bytes(whole[:8], "little")
    header, body = json.loads(whole[8 : 8 + size]), whole[8 + size :]
    assert bundle.from_bytes(raw(header, body)).features == trees_policy.features
    for shape in ([2**63], [2**40, 2**40], [-1], [7, 0], [1.0], [True], "7", None, [[7]], [8]):
        changed = {**header, "tree.left": {**header["tree.left"], "shape": shape}}
        refused(raw(changed, body), r"dimensions|sound")
    for offsets in ([0, 2**63], [-4, 24], [0], None, [28, 0], header["tree.root"]["data_offsets"]):
        changed = {**header, "tree.left": {**header["tree.left"], "data_offsets": offsets}}
        refused(raw(changed, body), "sound")
    refused(raw({**header, "tree.left": 3}, body), "type I32")


def test_a_hostile_header_takes_linear_time() -> None:
    for text in (b'"' + b'\\"' * 500_000, b'"\\' * 500_000, b'{"a":"' + b"\\\\" * 500_000):
        start = time.process_time()
        refused(raw(text), "JSON")
        assert time.process_time() - start < 1.0


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate((64 << 20) + 1)
    os.mkfifo(tmp_path / "pipe")
    for name, reason in {
        "none": "No such file",
        "": "it is a folder; name a regular file",
        "pipe": "it is a named pipe; name a regular file",
        "big": "larger than 64 MiB; name a regular file",
        "a\0b": "null",
    }.items():
        with pytest.raises(PolicyError, match=reason):
            bundle.load(f"{tmp_path}/{name}")
    with pytest.raises(PolicyError, match="larger than 64 MiB"):
        bundle.from_bytes(bytes((64 << 20) + 1))
