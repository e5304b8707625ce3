from __future__ import annotations

import hashlib
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
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as save_tensors

from nestor.policy import bundle
from nestor.policy.network import MlpPolicy
from nestor.policy.rule import PICK, THRESHOLD
from nestor.policy.spec import Policy, PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problems.inlining_size.builtins import BUILTINS

Fields = dict[str, Any]
X = np.random.default_rng(4).integers(-50, 400, (30, 3))


def parts(policy: Policy) -> tuple[Fields, Fields]:
    return policy.metadata.to_json(), dict(policy.tensors())


def pack(fields: object, tensors: Fields, **other: str) -> bytes:
    text = fields if isinstance(fields, str) else json.dumps(fields)
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return save_tensors(arrays, metadata={"nestor": text, **other})


def refused(data: bytes, reason: str) -> None:
    with pytest.raises(PolicyError, match=reason) as caught:
        bundle.from_bytes(data, "p.safetensors")
    text = str(caught.value)
    assert text.startswith("Cannot use the policy p.safetensors: ")
    assert text.endswith(".")
    assert text.isprintable()
    assert len(text) < 250


def raw(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


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


@pytest.mark.parametrize("name", ["shipped", "distilled", "mlgo2020"])
def test_the_bytes_of_published_policies_stay(name: str) -> None:
    policy = BUILTINS.resolve(name)
    assert policy is not None
    assert hashlib.sha256(bundle.to_bytes(policy)).hexdigest() == policy.file_digest


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
        "": "directory",
        "pipe": "plain file",
        "big": "larger than 64 MiB",
        "a\0b": "null",
    }.items():
        with pytest.raises(PolicyError, match=reason):
            bundle.load(f"{tmp_path}/{name}")
    with pytest.raises(PolicyError, match="larger than 64 MiB"):
        bundle.from_bytes(bytes((64 << 20) + 1))


def sample(kind: str) -> bytes:
    policy = BUILTINS.resolve({"trees": "threshold:9", "mlp": "mlgo2020"}[kind])
    assert policy is not None
    return bundle.to_bytes(policy)


SAMPLES = {kind: sample(kind) for kind in ("trees", "mlp")}


def believed(data: bytes) -> None:
    """Either refused in one sentence, or a policy that can be evaluated and saved."""
    try:
        policy = bundle.from_bytes(data)
    except PolicyError as error:
        assert str(error).isprintable()
        return
    policy.logits(np.zeros((2, len(policy.features))))
    assert bundle.from_bytes(bundle.to_bytes(policy)).metadata == policy.metadata


@settings(max_examples=250)
@given(st.data())
def test_mutated_files_never_surprise(data: st.DataObject) -> None:
    whole = bytearray(SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))])
    header = 8 + int.from_bytes(whole[:8], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        # Mostly in the header: there is the structure.
        end = data.draw(st.sampled_from([8, header, header, len(whole)]))
        at = data.draw(st.integers(0, min(end, len(whole))))
        length = data.draw(st.integers(0, 12))
        token = st.sampled_from([b'"', b"{", b"[", b"]", b"0", b"9", b"-", b"\\", b",", b"null"])
        whole[at : at + length] = data.draw(st.binary(max_size=length) | token)
    if data.draw(st.booleans()):  # make the stated length fit, to get further
        size = min(max(len(whole) - (len(SAMPLES["trees"]) - header), 0), 1 << 20)
        whole[:8] = size.to_bytes(8, "little")
    believed(bytes(whole))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@settings(max_examples=250)
@given(st.data())
def test_mutated_headers_never_surprise(data: st.DataObject) -> None:
    whole = SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))]
    size = int.from_bytes(whole[:8], "little")
    header, body = json.loads(whole[8 : 8 + size]), whole[8 + size :]
    fields = json.loads(header["__metadata__"]["nestor"])
    place = data.draw(st.sampled_from(["field", "tensor", "entry", "metadata"]))
    if place == "field":
        fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(JSON)
        header["__metadata__"]["nestor"] = json.dumps(fields)
    elif place == "metadata":
        header["__metadata__"] = data.draw(JSON)
    else:
        name = data.draw(st.sampled_from(sorted(header)[1:]))
        if place == "tensor":
            header[name] = data.draw(JSON)
        else:
            key = data.draw(st.sampled_from(["dtype", "shape", "data_offsets"]))
            header[name][key] = data.draw(JSON | st.lists(st.integers(0, 2**64), max_size=3))
    believed(raw(header, body))


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_any_bytes_never_surprise(data: bytes) -> None:
    believed(data)
    believed(raw(data))
