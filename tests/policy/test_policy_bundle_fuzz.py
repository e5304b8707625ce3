"""Random damage to a policy file is refused, or leaves a policy that can be used."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.policy import bundle
from nestor.policy.spec import PolicyError
from nestor.problems.inlining_size.builtins import BUILTINS
from tests.policy.bundles import raw


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
