"""The size model: a weighted sum of counts, and trees that say how far it is off.

A function's bytes are

    base(x) * ratio(x),   base(x) = max(least, x @ weight + offset)

where x are the counts of its IR. Trees alone do not extrapolate to functions larger than those
that they were fitted to, and a sum alone knows nothing of what folds; the ratio is bounded by the
leaves, so the product has neither fault. Trees read the counts, the base, and each count per
instruction.

A file is safetensors: ``linear.weight`` f64 ``[counts]``, ``linear.offset`` and ``linear.least``
f64 ``[1]``, the tensors ``tree.*`` of a policy (docs/reference/formats.md), and, in the metadata
under ``nestor-size``, one JSON object with ``version``, ``counts`` and ``provenance``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from nestor.errors import NestorError
from nestor.files import read_regular, write_atomically
from nestor.policy.spec import Metadata, PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problems.inlining_size.size.function_log import FunctionLog

F64 = npt.NDArray[np.float64]

_KEY: Final = "nestor-size"
_VERSION: Final = 1
_TREE: Final = ("root", "feature", "threshold", "left", "right", "value")
_LINEAR: Final = ("linear.weight", "linear.offset", "linear.least")


class SizeModelError(NestorError):
    """A file that holds no size model, or counts that a model does not know."""


@dataclass(frozen=True)
class Linear:
    """The base: bytes by count."""

    weight: F64
    """``[counts]``"""
    offset: float
    """Bytes of every function: its unwind entry, for one."""
    least: float
    """Bytes that no base goes below."""

    def base(self, x: F64) -> F64:
        """Return the base of functions ``x`` ``[rows, counts]``, ``[rows]``."""
        return np.maximum(self.least, x @ self.weight + self.offset)


@dataclass(frozen=True)
class SizeModel:
    """Predicts the bytes of functions from the counts of their IR."""

    counts: tuple[str, ...]
    """What it reads, in order."""
    linear: Linear
    trees: TreesPolicy
    """Their logit is the ratio; they read :func:`inputs`."""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def predict(self, counts: Sequence[str], values: F64) -> F64:
        """Return the bytes of functions with the counts ``values`` ``[rows, counts]``.

        :raises SizeModelError: if a count that the model reads is not among ``counts``.
        """
        x = columns(counts, values, self.counts)
        base = self.linear.base(x)
        return base * np.maximum(0.0, self.trees.logits(inputs(self.counts, x, base)))

    def predict_log(self, log: FunctionLog) -> F64:
        """Return the bytes of each function of a log, ``[functions]``. See :meth:`predict`."""
        return self.predict(log.counts, log.values)

    def sizes(self, log: FunctionLog) -> dict[str, float]:
        """Return the bytes of each function of a module by name."""
        return dict(zip(log.names, self.predict_log(log).tolist(), strict=True))


def columns(counts: Sequence[str], values: F64, wanted: Sequence[str]) -> F64:
    """Return the columns ``wanted``; :raises SizeModelError: if one is not among ``counts``."""
    place = {name: index for index, name in enumerate(counts)}
    missing = [name for name in wanted if name not in place]
    if missing:
        raise SizeModelError(
            f"The function log lacks the counts {', '.join(missing[:3])}: train the size model"
            " again with this Nestor."
        )
    return values[:, [place[name] for name in wanted]]


def input_names(counts: Sequence[str]) -> tuple[str, ...]:
    """Return what the trees read: counts, ``base``, and each count per instruction."""
    return (*counts, "base", *(f"{name} / instructions" for name in counts))


def inputs(counts: Sequence[str], x: F64, base: F64) -> F64:
    """Return the trees' inputs, ``[rows, len(input_names(counts))]``."""
    opcodes = [index for index, name in enumerate(counts) if name.startswith("opcode_")]
    instructions = np.maximum(1.0, x[:, opcodes].sum(axis=1))[:, None]
    return np.concatenate([x, base[:, None], x / instructions], axis=1)


def trees_metadata(counts: Sequence[str]) -> Metadata:
    """Return the metadata that trees of a model with ``counts`` carry in memory."""
    return Metadata(
        kind="trees",
        features=input_names(counts),
        answers="decision",
        transform="none",
        problem="function-size",
    )


def save(model: SizeModel, path: Path) -> None:
    """Write ``model``, whole or not at all. The bytes depend on the model alone."""
    content = {
        "version": _VERSION,
        "counts": list(model.counts),
        "provenance": dict(model.provenance),
    }
    tensors = {f"tree.{name}": getattr(model.trees, name) for name in _TREE} | {
        "linear.weight": model.linear.weight,
        "linear.offset": np.array([model.linear.offset]),
        "linear.least": np.array([model.linear.least]),
    }
    data = save_tensors(tensors, metadata={_KEY: json.dumps(content, sort_keys=True)})
    write_atomically(path, data)


def load(path: Path) -> SizeModel:
    """Read a model.

    :raises NestorError: if the file cannot be read or is not a valid one.
    """
    try:
        return _parse(read_regular(path, "a size model"))
    except (
        OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, SafetensorError,
        PolicyError,
    ) as error:  # fmt: skip
        raise SizeModelError(f"Cannot use the size model {path}: {error}.") from None


def _parse(data: bytes) -> SizeModel:
    tensors = load_tensors(data)  # which checks the header
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    content = json.loads(header["__metadata__"][_KEY])
    if content["version"] != _VERSION:
        raise ValueError("its version is of a newer Nestor")
    counts = content["counts"]
    if not isinstance(counts, list) or not all(isinstance(name, str) for name in counts):
        raise ValueError("its counts have no names")
    for name in _LINEAR:
        shape = (len(counts),) if name == "linear.weight" else (1,)
        if tensors[name].dtype != np.float64 or tensors[name].shape != shape:
            raise ValueError(f"the tensor {name} must be f64 {list(shape)}")
        if not np.isfinite(tensors[name]).all():
            raise ValueError(f"the tensor {name} must be finite")
    weight, offset, least = (tensors[name] for name in _LINEAR)
    trees = TreesPolicy(trees_metadata(counts), **{n: tensors[f"tree.{n}"] for n in _TREE})
    linear = Linear(weight, float(offset[0]), float(least[0]))
    return SizeModel(tuple(counts), linear, trees, content["provenance"])
