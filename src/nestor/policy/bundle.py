"""
Policy files: reading with every check of docs/reference/formats.md, writing, and describing.

A policy file may come from anywhere. Whatever its bytes are, reading gives a valid policy or a
PolicyError of one sentence, in bounded time and memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from nestor.files import ReadError, read_regular, write_atomically
from nestor.policy.linear import as_sums
from nestor.policy.network import (
    MAX_LAYERS,
    Layer,
    LogNormalisation,
    MlpPolicy,
    Normalisation,
    QuantileNormalisation,
    QuantileScoreNormalisation,
)
from nestor.policy.portfolio import PortfolioPolicy
from nestor.policy.spec import RANGE, Array, Metadata, Policy, PolicyError, shown
from nestor.policy.trees import TreesPolicy

MAX_FILE: Final = 64 << 20
MAX_HEADER: Final = 1 << 20
MAX_NESTING: Final = 16
_KEY: Final = "nestor"
_NORMALISE: Final[Mapping[str, Mapping[str, str]]] = {
    "log": {"normalise.shift": "F64", "normalise.scale": "F64"},
    "quantile": {"normalise.boundaries": "F32"},
    "quantile-z-score": {
        "normalise.boundaries": "F32",
        "normalise.mean": "F32",
        "normalise.scale": "F32",
    },
}
_TREE: Final = ("root", "feature", "threshold", "left", "right", "value")

# A string, or a bracket outside of one. The closing quote is optional so that each character
# is looked at once, whatever the text: a hostile header must not cost quadratic time.
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)


def load(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file; raises PolicyError if it cannot be read or is not a valid policy."""
    return from_bytes(read(path), str(path))


def read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a policy file, not yet checked; raises PolicyError if it cannot be read."""
    try:
        return read_regular(Path(path), "a policy", limit=MAX_FILE)
    except ReadError as error:
        raise PolicyError(str(error)) from error


def save(policy: Policy, path: str | os.PathLike[str]) -> None:
    """
    Write a policy file at once or not at all, and its folder if need be.

    The bytes depend on the policy alone. Raises PolicyError if it cannot be written.
    """
    data = to_bytes(policy)
    try:
        write_atomically(Path(path), data)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else None
        raise PolicyError(f"Cannot write the policy {path}: {reason or error}.") from error


def from_bytes(data: bytes, name: str = "in memory") -> Policy:
    """The policy in the bytes of a file; `name` is for the PolicyError that it may raise."""
    try:
        policy = _parse(data)
    except PolicyError as error:
        raise PolicyError(f"Cannot use the policy {name}: {error}.") from error
    object.__setattr__(policy, "file_digest", hashlib.sha256(data).hexdigest())
    return policy


def to_bytes(policy: Policy) -> bytes:
    """
    The bytes of the policy's file: the same for the same policy, on every machine.

    Raises PolicyError for what cannot be in a file: a limit that is exceeded, or a provenance
    that is not plain JSON.
    """
    try:
        # Escaped to ASCII and sorted: one text for one object.
        text = json.dumps(
            policy.metadata.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise PolicyError(f"The policy's provenance is not plain JSON: {error}.") from error
    data = save_tensors(policy.tensors(), metadata={_KEY: text})
    # Read back what was written: no file is saved that `load` would refuse.
    from_bytes(data, "to be written")
    return data


def digest(policy: Policy) -> str:
    """SHA-256 (hex) of the policy's file: the one it was read from, else the one to be written."""
    return policy.file_digest or hashlib.sha256(to_bytes(policy)).hexdigest()


def describe(policy: Policy) -> dict[str, Any]:
    """What there is to say about a policy, as a plain JSON object.

    ``logit`` is the logit of a network without hidden layers as a sum, ``members`` those of a
    portfolio's members; None for policies that are none of that.
    """
    sums = [asdict(each) for each in as_sums(policy)] or None
    is_portfolio = isinstance(policy, PortfolioPolicy)
    return {
        **policy.metadata.to_json(),
        "parameters": policy.parameters,
        "sha256": digest(policy),
        "tensors": {name: list(array.shape) for name, array in sorted(policy.tensors().items())},
        "logit": sums[0] if sums and not is_portfolio else None,
        **({"members": sums} if is_portfolio else {}),
    }


def _parse(data: bytes) -> Policy:
    if len(data) > MAX_FILE:
        raise PolicyError(f"it is larger than {MAX_FILE >> 20} MiB")
    if len(data) < 8:
        raise PolicyError("it is too short to be a safetensors file")
    size = int.from_bytes(data[:8], "little")
    if size > MAX_HEADER:
        raise PolicyError(f"its header is larger than {MAX_HEADER >> 20} MiB, or it is no policy")
    if size > len(data) - 8:
        raise PolicyError("it is cut off within its header")
    try:
        text = data[8 : 8 + size].decode("utf-8")
    except UnicodeDecodeError as error:
        raise PolicyError("its header is not UTF-8") from error
    header = _json(text, "header")
    metadata = header.pop("__metadata__", None)
    own = metadata.get(_KEY) if isinstance(metadata, dict) else None
    if not isinstance(own, str):
        raise PolicyError(f"it is no policy: its metadata has no {_KEY!r}")
    meta = Metadata.from_json(_json(own, "metadata"))
    layers = _check_entries(header, meta)
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise PolicyError(f"it is not a sound safetensors file ({shown(str(error))})") from error
    return _assemble(meta, tensors, layers)


def _json(text: str, what: str) -> dict[str, Any]:
    """Parse an object of JSON; the nesting is checked first, as the parser is recursive."""
    depth = 0
    for token in _TOKEN.finditer(text):
        character = token[0][0]
        if character in "[{":
            depth += 1
            if depth > MAX_NESTING:
                raise PolicyError(f"its {what} is nested more than {MAX_NESTING} deep")
        elif character in "]}":
            depth -= 1
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_number, parse_float=_number
        )
    except ValueError as error:
        raise PolicyError(f"its {what} is not JSON ({shown(str(error))})") from error
    if not isinstance(value, dict):
        raise PolicyError(f"its {what} is not a JSON object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Readers differ in which of two equal keys they take: none is safe.
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _check_entries(header: Mapping[str, Any], meta: Metadata) -> int:
    """Check names, types and shapes before numpy meets any; returns the number of layers."""
    layers = 0
    expected: dict[str, str]
    if meta.kind == "trees":
        expected = {f"tree.{n}": "F64" if n in ("threshold", "value") else "I32" for n in _TREE}
    else:
        expected = dict(_NORMALISE[meta.transform])
        # One more than allowed, so that the error speaks of layers; without any, layer 0 lacks.
        while layers <= MAX_LAYERS and f"layer.{layers}.weight" in header:
            layers += 1
        layers = max(1, layers)
        for k in range(layers):
            expected |= {f"layer.{k}.weight": "F32", f"layer.{k}.bias": "F32"}
    if layers > MAX_LAYERS:
        raise PolicyError(f"it has more than {MAX_LAYERS} layers")
    if RANGE in header:
        expected[RANGE] = "F64"
    missing = sorted(expected.keys() - header.keys())
    if missing:
        raise PolicyError(f"it lacks the tensor {missing[0]}")
    unknown = sorted(header.keys() - expected.keys())
    if unknown:
        raise PolicyError(f"it has a tensor {shown(unknown[0])} that its kind does not define")
    for name, dtype in expected.items():
        entry = header[name]
        if not isinstance(entry, dict) or entry.get("dtype") != dtype:
            raise PolicyError(f"the tensor {name} must have the type {dtype}")
        shape = entry.get("shape")
        if not isinstance(shape, list) or not all(
            type(n) is int and 1 <= n <= MAX_FILE for n in shape
        ):
            raise PolicyError(f"the tensor {name} must have dimensions of at least 1")
    return layers


def _assemble(meta: Metadata, tensors: Mapping[str, Array], layers: int) -> Policy:
    limits = tensors.get(RANGE)
    if meta.kind == "trees":
        arrays = {name: np.asarray(tensors[f"tree.{name}"]) for name in _TREE}
        return TreesPolicy(meta, **arrays, range=limits)
    normalisation: Normalisation
    if meta.transform == "log":
        normalisation = LogNormalisation(tensors["normalise.shift"], tensors["normalise.scale"])
    elif meta.transform == "quantile":
        normalisation = QuantileNormalisation(tensors["normalise.boundaries"])
    else:
        names = ("boundaries", "mean", "scale")
        normalisation = QuantileScoreNormalisation(*(tensors[f"normalise.{n}"] for n in names))
    parts = (Layer(tensors[f"layer.{k}.weight"], tensors[f"layer.{k}.bias"]) for k in range(layers))
    if meta.kind == "portfolio":
        return PortfolioPolicy(meta, normalisation, tuple(parts), range=limits)
    return MlpPolicy(meta, normalisation, tuple(parts), range=limits)
