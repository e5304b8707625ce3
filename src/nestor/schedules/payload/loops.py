"""What a payload computes, as sizes of loops: what guesses and policies look at."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from nestor.schedules.payload.operations import Operation
from nestor.schedules.payload.reading import Payload

_CONTRACTIONS = {"linalg.matmul": 0, "linalg.batch_matmul": 1}
_CONVOLUTIONS = {
    "linalg.conv_2d_nhwc_hwcf": "conv",
    "linalg.depthwise_conv_2d_nhwc_hwc": "depthwise",
}
_HIDDEN = {"linalg.fill", "linalg.yield", "linalg.index"}


@dataclass(frozen=True)
class Loops:
    """The operation of a payload that costs most, and how much it is."""

    kind: str
    """``matmul``, ``batch_matmul``, ``conv``, ``depthwise``, ``rows`` or ``elementwise``."""
    batch: int
    m: int
    """Rows of the result; for convolutions its width; for others all dimensions but the last."""
    n: int
    """Columns of the result, or channels; for ``rows`` the length of a row."""
    k: int
    """What one element of the result sums up; 1 if nothing."""
    bits: int
    """Size of an element of the result."""
    fused: int
    """Elementwise operations besides it."""
    steps: int
    """Scalar operations in all bodies."""
    flat: bool = False
    """Whether all operands have one shape, so that they can be taken as one long row."""
    transposed: bool = False
    """Whether the right operand of a product has its columns as rows."""

    @property
    def operations(self) -> float:
        """Floating-point operations, a multiply-add as two."""
        return float(self.batch * self.m * self.n) * max(
            1, 2 * self.k if self.k > 1 else self.steps
        )

    def features(self) -> dict[str, float]:
        """Return the numbers that policies read."""
        kinds = ("matmul", "batch_matmul", "conv", "depthwise", "rows", "elementwise")
        sizes = {"batch": self.batch, "m": self.m, "n": self.n, "k": self.k}
        return (
            {f"log2_{name}": math.log2(max(1, size)) for name, size in sizes.items()}
            | {f"is_{kind}": float(kind == self.kind) for kind in kinds}
            | {f"{name}_mod_{d}": float(sizes[name] % d == 0) for name in "mn" for d in (8, 16, 64)}
            | {"bits": float(self.bits), "fused": float(self.fused), "steps": float(self.steps)}
            | {"flat": float(self.flat)}
        )


def loops_of(payload: Payload) -> Loops:
    """Return the sizes of a payload's main operation."""
    operations = list(_linalg(payload.function))
    steps = sum(
        len(o.regions[0][0].operations) - 1 for o in operations if o.regions and o.regions[0]
    )
    bits = payload.results[0].bits
    generics = [o for o in operations if not o.name.endswith(("matmul", "conv_2d_nhwc_hwcf"))]
    for operation in operations:
        if operation.name in _CONTRACTIONS:
            left = _shape(operation.operand_types[0])
            result = _shape(operation.operand_types[2])
            batch = result[0] if _CONTRACTIONS[operation.name] else 1
            # Either operand may be transposed: what is summed up is what the result has not.
            elements = math.prod(left) // (batch * result[-2])
            kind = operation.name.removeprefix("linalg.")
            return Loops(
                kind, batch, result[-2], result[-1], elements, bits, len(generics), steps,
                transposed=_right_transposed(operation),
            )  # fmt: skip
        if operation.name in _CONVOLUTIONS:
            window = _shape(operation.operand_types[1])
            count, height, width, channels = _shape(operation.result_types[0])[:4]
            summed = math.prod(window[:2]) * (window[2] if len(window) == 4 else 1)
            kind = _CONVOLUTIONS[operation.name]
            return Loops(
                kind, count * height, width, channels, summed, bits, len(generics) - 1, steps
            )
    shapes = [_shape(kind) for o in operations for kind in o.operand_types] or [[1]]
    largest = max(shapes, key=math.prod)
    reduces = any(_reduces(o) for o in operations)
    length = largest[-1] if largest else 1
    return Loops(
        "rows" if reduces else "elementwise", 1, math.prod(largest) // length, length, 1, bits,
        len(operations), max(1, steps), flat=all(shape == largest for shape in shapes),
    )  # fmt: skip


def suggest(payload: Payload) -> str:
    """Return the packaged pipeline for a payload; ``plain`` if none is made for it."""
    operations = list(_linalg(payload.function))
    names = [o.name for o in operations]
    main = [n for n in names if n in _CONTRACTIONS or n in _CONVOLUTIONS]
    if len(main) > 1:
        return "plain"
    if main:
        short = {"conv": "conv_2d", "depthwise": "depthwise_conv_2d"}
        base = short.get(_CONVOLUTIONS.get(main[0], ""), main[0].removeprefix("linalg."))
        epilogue = main[0] in _CONTRACTIONS and any(
            n not in _HIDDEN and n != main[0] for n in names
        )
        return f"{base}_elementwise" if epilogue else base
    if any(_reduces(o) for o in operations):
        ranks = {len(_iterators(o)) for o in operations if _reduces(o)}
        return "rows" if ranks <= {2} else "plain"
    return "elementwise" if operations else "plain"


def _linalg(function: Operation) -> Iterator[Operation]:
    for operation in function.walk():
        if operation.name.startswith("linalg.") and operation.name not in _HIDDEN:
            yield operation


def _reduces(operation: Operation) -> bool:
    return operation.name in ("linalg.reduce", "linalg.softmax") or "reduction" in _iterators(
        operation
    )


def _right_transposed(operation: Operation) -> bool:
    """Return whether the last dimension of the right operand is the one that is summed up."""
    maps = re.findall(r"-> \(([^)]*)\)", operation.attributes.get("indexing_maps", ""))
    if len(maps) != 3:
        return False
    _, right, result = ([name.strip() for name in found.split(",")] for found in maps)
    return right[-1] not in result


def _iterators(operation: Operation) -> list[str]:
    if operation.name in ("linalg.reduce", "linalg.softmax"):
        return ["parallel"] * len(_shape(operation.operand_types[0]))
    return re.findall(r"iterator_type<(\w+)>", operation.attributes.get("iterator_types", ""))


def _shape(kind: str) -> list[int]:
    match = re.match(r"tensor<((?:\d+x)*)", kind)
    return [int(size) for size in match[1].split("x") if size] if match else []
