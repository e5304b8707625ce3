"""Policy files that the tests write themselves, sound ones and damaged ones."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

from nestor.policy import bundle
from nestor.policy.spec import Policy, PolicyError

Fields = dict[str, Any]


def parts(policy: Policy) -> tuple[Fields, Fields]:
    return policy.metadata.to_json(), dict(policy.tensors())


def pack(fields: object, tensors: Fields, **other: str) -> bytes:
    text = fields if isinstance(fields, str) else json.dumps(fields)
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return save_tensors(arrays, metadata={"nestor": text, **other})


def raw(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def refused(data: bytes, reason: str) -> None:
    with pytest.raises(PolicyError, match=reason) as caught:
        bundle.from_bytes(data, "p.safetensors")
    text = str(caught.value)
    assert text.startswith("Cannot use the policy p.safetensors: ")
    assert text.endswith(".")
    assert text.isprintable()
    assert len(text) < 250
