"""A policy as scalar MLIR: one function over int64, of the dialects func and arith.

LLVM's ``LLVM_MLGO_MODELS`` takes such a file, lowers it to C++ and compiles it in. The operations
are those of docs/reference/formats.md in their order, so the decisions are the same to the bit
where nothing is fused.
"""

import struct
from typing import Final

import numpy as np

from nestor.policy.layers import Layer
from nestor.policy.network import (
    LogNormalisation,
    MlpPolicy,
    QuantileNormalisation,
    QuantileScoreNormalisation,
)
from nestor.policy.trees import TreesPolicy
from nestor.release.in_tree import DECISION, InTreePolicy

FILE: Final = "inliner.mlir"

_BITS: Final = 63
"""The largest binary logarithm of |x| + 1, x being int64."""


def module(policy: InTreePolicy) -> str:
    """Return the text of the MLIR module."""
    code = _Code()
    if isinstance(policy, TreesPolicy):
        kind, logit = "f64", _trees(code, policy)
    else:
        kind, logit = "f32", _network(code, policy)
    above = code.compare("ogt", logit, code.constant(0.0, kind), kind)
    answer = code.add(f"arith.extui {above} : i1 to i64")
    arguments = ", ".join(
        f'%arg{index}: i64 {{tf_saved_model.index_path = ["{feature}"]}}'
        for index, feature in enumerate(policy.features)
    )
    result = f'(i64 {{tf_saved_model.index_path = ["{DECISION}"]}})'
    return "\n".join(
        [
            "module {",
            f"  func.func @Model({arguments}) -> {result} {{",
            *code.lines,
            f"    return {answer} : i64",
            "  }",
            "}\n",
        ]
    )


class _Code:
    """The lines of a function's body; each operation has a result of its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._constants: dict[tuple[str, bytes], str] = {}

    def add(self, operation: str) -> str:
        """Append an operation and return the name of its result."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"    {name} = {operation}")
        return name

    def constant(self, value: float, kind: str) -> str:
        """Return a number of the type ``f32`` or ``f64``; equal ones are written once."""
        packed = struct.pack(">f" if kind == "f32" else ">d", value)
        key = (kind, packed)
        if key not in self._constants:
            digits = packed.hex().upper()
            self._constants[key] = self.add(f"arith.constant 0x{digits} : {kind}")
        return self._constants[key]

    def arithmetic(self, operation: str, left: str, right: str, kind: str) -> str:
        """Append ``arith.addf`` and the like."""
        return self.add(f"arith.{operation} {left}, {right} : {kind}")

    def compare(self, predicate: str, left: str, right: str, kind: str) -> str:
        """Append an ordered comparison."""
        return self.add(f"arith.cmpf {predicate}, {left}, {right} : {kind}")

    def select(self, condition: str, yes: str, no: str, kind: str) -> str:
        """Append a choice between two values."""
        return self.add(f"arith.select {condition}, {yes}, {no} : {kind}")


def _double(code: _Code, index: int) -> str:
    return code.add(f"arith.sitofp %arg{index} : i64 to f64")


def _single(code: _Code, value: str) -> str:
    return code.add(f"arith.truncf {value} : f64 to f32")


def _trees(code: _Code, policy: TreesPolicy) -> str:
    inputs = [_double(code, index) for index in range(len(policy.features))]
    values: dict[int, str] = {}
    for node in reversed(range(len(policy.feature))):  # children come after their parents
        feature = int(policy.feature[node])
        if feature < 0:
            values[node] = code.constant(float(policy.value[node]), "f64")
            continue
        threshold = code.constant(float(policy.threshold[node]), "f64")
        goes_left = code.compare("ole", inputs[feature], threshold, "f64")
        left, right = values[int(policy.left[node])], values[int(policy.right[node])]
        values[node] = code.select(goes_left, left, right, "f64")
    total = code.constant(0.0, "f64")
    for root in policy.root:
        total = code.arithmetic("addf", total, values[int(root)], "f64")
    return total


def _network(code: _Code, policy: MlpPolicy) -> str:
    values = [
        value for index in range(len(policy.features)) for value in _inputs(code, policy, index)
    ]
    for k, layer in enumerate(policy.layers):
        values = _dense(code, layer, values)
        if k + 1 < len(policy.layers):
            values = [_rectified(code, value) for value in values]
    return values[0] if len(values) == 1 else code.arithmetic("subf", values[1], values[0], "f32")


def _dense(code: _Code, layer: Layer, values: list[str]) -> list[str]:
    results = []
    for row, bias in zip(layer.weight, layer.bias, strict=True):
        total = code.constant(float(bias), "f32")
        for weight, value in zip(row, values, strict=True):
            product = code.arithmetic("mulf", code.constant(float(weight), "f32"), value, "f32")
            total = code.arithmetic("addf", total, product, "f32")
        results.append(total)
    return results


def _rectified(code: _Code, value: str) -> str:
    zero = code.constant(0.0, "f32")
    return code.select(code.compare("ogt", value, zero, "f32"), value, zero, "f32")


def _inputs(code: _Code, policy: MlpPolicy, index: int) -> list[str]:
    """Append the network's inputs of one feature and return them."""
    normalisation = policy.normalisation
    x = _double(code, index)
    if isinstance(normalisation, LogNormalisation):
        shift, scale = normalisation.shift[index], normalisation.scale[index]
        squashed = _squashed(code, x)
        moved = code.arithmetic("subf", squashed, code.constant(float(shift), "f64"), "f64")
        scaled = code.arithmetic("mulf", moved, code.constant(float(scale), "f64"), "f64")
        for predicate, limit in (("olt", -8.0), ("ogt", 8.0)):
            bound = code.constant(limit, "f64")
            beyond = code.compare(predicate, scaled, bound, "f64")
            scaled = code.select(beyond, bound, scaled, "f64")
        return [_single(code, scaled)]
    assert isinstance(normalisation, QuantileNormalisation | QuantileScoreNormalisation)
    single = _single(code, x)
    values = _shares(code, single, normalisation.boundaries[index])
    if isinstance(normalisation, QuantileScoreNormalisation):
        mean = code.constant(float(normalisation.mean[index]), "f32")
        scale32 = code.constant(float(normalisation.scale[index]), "f32")
        moved = code.arithmetic("subf", single, mean, "f32")
        values.append(code.arithmetic("mulf", moved, scale32, "f32"))
    return values


def _shares(
    code: _Code, x: str, boundaries: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> list[str]:
    """Append the share of boundaries up to ``x``, its root and its square: steps of ``x``."""
    levels, counts = np.unique(boundaries, return_counts=True)
    share = np.cumsum(counts).astype(np.float32) / np.float32(len(boundaries))
    z, root = code.constant(0.0, "f32"), code.constant(0.0, "f32")
    for level, value in zip(levels, share, strict=True):
        reached = code.compare("oge", x, code.constant(float(level), "f32"), "f32")
        z = code.select(reached, code.constant(float(value), "f32"), z, "f32")
        root_here = code.constant(float(np.sqrt(value)), "f32")
        root = code.select(reached, root_here, root, "f32")
    return [z, root, code.arithmetic("mulf", z, z, "f32")]


def _squashed(code: _Code, x: str) -> str:
    """Append the piecewise-linear logarithm of ``x``: a choice for each power of two."""
    zero, one = code.constant(0.0, "f64"), code.constant(1.0, "f64")
    negative = code.compare("olt", x, zero, "f64")
    size = code.select(negative, code.arithmetic("subf", zero, x, "f64"), x, "f64")
    m = code.arithmetic("addf", size, one, "f64")
    result = code.arithmetic("subf", m, one, "f64")
    for k in range(1, _BITS + 1):
        part = code.arithmetic("mulf", m, code.constant(2.0**-k, "f64"), "f64")
        part = code.arithmetic("subf", part, one, "f64")
        part = code.arithmetic("addf", code.constant(float(k), "f64"), part, "f64")
        reached = code.compare("oge", m, code.constant(2.0**k, "f64"), "f64")
        result = code.select(reached, part, result, "f64")
    turned = code.arithmetic("subf", zero, result, "f64")
    return code.select(negative, turned, result, "f64")
