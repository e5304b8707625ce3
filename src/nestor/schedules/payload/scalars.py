"""Scalar operations of MLIR, evaluated on numpy arrays, in double precision if these are."""

import functools
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from nestor.schedules.language.text import ScheduleError
from nestor.schedules.payload.operations import Operation

Value = Any
"""A numpy array, or a number."""

_WIDTHS: Final = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32,
                  "i64": np.int64, "index": np.int64}  # fmt: skip
_FLOATS: Final[dict[str, Any]] = {"f64": np.float64, "f16": np.float16}
"""The numpy type of a constant; single precision for all others, which holds bf16."""
_FLOAT_ORDER: Final[dict[int, Callable[[Value, Value], Value]]] = {
    1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal,
    6: np.not_equal, 8: np.equal, 9: np.greater, 10: np.greater_equal, 11: np.less,
    12: np.less_equal, 13: np.not_equal,
}  # fmt: skip
"""Ordered and unordered predicates of arith.cmpf; they differ for NaN alone, which no input has."""
_INTEGER_ORDER: Final[dict[int, Callable[[Value, Value], Value]]] = {
    0: np.equal, 1: np.not_equal, 2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal,
    6: np.less, 7: np.less_equal, 8: np.greater, 9: np.greater_equal,
}  # fmt: skip


def _erf(value: Value) -> Value:
    from scipy.special import erf

    return erf(value)


_PLAIN: Final[dict[str, Callable[..., Value]]] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply,
    "arith.divf": np.divide, "arith.negf": np.negative, "arith.remf": np.fmod,
    "arith.maximumf": np.maximum, "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.divsi": lambda a, b: np.trunc(a / b).astype(np.int64), "arith.remsi": np.fmod,
    "arith.select": np.where,
    "math.exp": np.exp, "math.exp2": np.exp2, "math.expm1": np.expm1, "math.log": np.log,
    "math.log2": np.log2, "math.log1p": np.log1p, "math.log10": np.log10, "math.tanh": np.tanh,
    "math.sin": np.sin, "math.cos": np.cos, "math.sqrt": np.sqrt, "math.atan": np.arctan,
    "math.rsqrt": lambda a: 1.0 / np.sqrt(a), "math.absf": np.abs, "math.absi": np.abs,
    "math.powf": np.power, "math.erf": _erf, "math.floor": np.floor, "math.ceil": np.ceil,
    "math.round": lambda a: np.trunc(a + np.copysign(0.5, a)), "math.roundeven": np.round,
    "math.fma": lambda a, b, c: a * b + c, "math.fpowi": np.power, "math.atan2": np.arctan2,
}  # fmt: skip
_SAME: Final = {"arith.extf", "arith.truncf", "arith.index_cast"}
"""Conversions that do nothing in double precision."""
_TO_FLOAT: Final = {"arith.sitofp", "arith.uitofp"}
_TO_INTEGER: Final = {"arith.extsi", "arith.extui", "arith.trunci", "arith.fptosi"}

COMBINING: Final[dict[str, Any]] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.mulf": np.multiply,
    "arith.muli": np.multiply, "arith.maximumf": np.maximum, "arith.maxnumf": np.fmax,
    "arith.minimumf": np.minimum, "arith.minnumf": np.fmin, "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum, "arith.ori": np.bitwise_or, "arith.andi": np.bitwise_and,
}  # fmt: skip
"""Operations by which a reduction combines values, in any order."""


def evaluate(operation: Operation, values: list[Value]) -> Value:
    """Return the result of one operation.

    :raises ScheduleError: if the operation is not among those that can be evaluated.
    """
    name = operation.name
    if name in _PLAIN:
        return _PLAIN[name](*values)
    if name in _SAME:
        return values[0]
    if name in _TO_FLOAT:
        return np.asarray(values[0], np.float64)
    if name in _TO_INTEGER:
        return np.asarray(values[0]).astype(_WIDTHS[operation.result_types[0]])
    if name in ("arith.cmpf", "arith.cmpi"):
        order = _FLOAT_ORDER if name == "arith.cmpf" else _INTEGER_ORDER
        return order[int(operation.attributes["predicate"].split(":")[0])](*values)
    if name == "arith.constant":
        return constant(operation.attributes["value"])
    raise ScheduleError(f"numpy cannot verify this payload: '{name}' has no reference here.")


@functools.lru_cache(maxsize=256)
def constant(text: str) -> Value:
    """Return the value of a constant attribute: a number or a ``dense`` tensor.

    It has its own precision: what it meets decides whether the result is in double precision.
    """
    if text.startswith("dense"):
        return _dense(text)
    number, _, kind = text.partition(" : ")
    return _number(number.strip(), kind.strip())


def _number(text: str, kind: str) -> Value:
    if text in ("true", "false", "unit"):
        return np.bool_(text == "true")
    float_type = _FLOATS.get(kind, np.float32)
    if text.startswith(("0x", "-0x")) and kind[:1] in "fb":
        bits = int(text, 16)
        if kind == "bf16":
            return np.array(bits << 16, np.uint32).view(np.float32)[()]
        width = int(kind.lstrip("bf"))
        return np.array(bits, f"u{width // 8}").view(f"f{width // 8}")[()]
    if kind in _WIDTHS:
        return _WIDTHS[kind](int(text))
    return float_type(text)


def _dense(text: str) -> Value:
    match = re.fullmatch(r"dense<(.*)> : tensor<((?:\d+x)*)(\w+)>", text, re.DOTALL)
    if match is None:
        raise ScheduleError("numpy cannot verify this payload: a constant cannot be read.")
    body, kind = match[1].strip(), match[3]
    shape = [int(size) for size in match[2].split("x") if size]
    if body.startswith('"0x'):
        raw = bytes.fromhex(body.strip('"')[2:])
        if kind == "bf16":
            wide = np.frombuffer(raw, np.uint16).astype(np.uint32) << 16
            return wide.view(np.float32).reshape(shape)
        return np.frombuffer(raw, f"{kind[0]}{int(kind[1:]) // 8}").reshape(shape)
    words = re.findall(r"[^\s,\[\]]+", body)
    values = np.array([_number(word, kind) for word in words])
    return np.broadcast_to(values.reshape(shape if len(words) > 1 else ()), shape)
