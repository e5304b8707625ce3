"""Call a kernel from numpy, over MLIR's C interface."""

import ctypes
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.schedules.payload.reading import TensorType

ALIGNMENT: Final = 64
"""Bytes: results begin at such a multiple, a line of the cache."""

DTYPES: Final[dict[str, Any]] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i64": np.int64,
    "i32": np.int32, "i16": np.int16, "i8": np.int8, "i1": np.bool_, "index": np.int64,
}  # fmt: skip
"""The numpy type of an element; numpy has no bf16, so its bits are passed as ``uint16``."""

_NUMBERS: Final[dict[str, Any]] = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_int64, "i32": ctypes.c_int32,
    "i16": ctypes.c_int16, "i8": ctypes.c_int8, "i1": ctypes.c_bool, "index": ctypes.c_int64,
}  # fmt: skip

Array = npt.NDArray[Any]


class Kernel:
    """A compiled function on numpy arrays.

    It never writes to its arguments. Results are new arrays, or those in ``out``.
    """

    def __init__(
        self,
        library: Path,
        name: str,
        arguments: Sequence[TensorType],
        results: Sequence[TensorType],
    ) -> None:
        """Load a shared object; it must have been built on this machine."""
        self.name = name
        self.arguments = tuple(arguments)
        self.results = tuple(results)
        self._function = getattr(ctypes.CDLL(str(library)), f"_mlir_ciface_{name}")
        self._function.restype = None

    def __call__(self, *arrays: Any, out: Sequence[Array] | None = None) -> Any:
        """Return the result, or a tuple of several.

        :param arrays: one per argument; numbers for arguments that are no tensors.
        :param out: contiguous arrays for the results, instead of new ones.
        :raises NestorError: if number, shape or type of an array is another.
        """
        results = [empty(t) for t in self.results] if out is None else list(out)
        self.prepared(arrays, results)()
        return results[0] if len(results) == 1 else tuple(results)

    def prepared(self, arrays: Sequence[Any], results: Sequence[Array]) -> "Call":
        """Return a call with all descriptors made, for timing.

        :raises NestorError: if number, shape or type of an array is another.
        """
        if len(arrays) != len(self.arguments):
            raise NestorError(
                f"'{self.name}' takes {len(self.arguments)} arrays, not {len(arrays)}."
            )
        if len(results) != len(self.results):
            raise NestorError(f"'{self.name}' returns {len(self.results)} arrays.")
        passed: list[Any] = []
        kept: list[Any] = []
        for number, (kind, array) in enumerate(zip(self.arguments, arrays, strict=True), 1):
            if not kind.tensor:
                passed.append(_NUMBERS[kind.element](array))
                continue
            whole = np.ascontiguousarray(_checked(array, kind, f"argument {number}"))
            kept.append(whole)
            passed.append(_reference(whole))
        for number, (kind, array) in enumerate(zip(self.results, results, strict=True), 1):
            _checked(array, kind, f"result {number}")
            if not array.flags.c_contiguous or not array.flags.writeable:
                raise NestorError(f"Result {number} of '{self.name}' must be contiguous.")
            kept.append(array)
            passed.append(_reference(array))
        return Call(self._function, passed, kept)


class Call:
    """A function with its arguments, and the arrays that these point into."""

    def __init__(self, function: Any, passed: list[Any], kept: list[Any]) -> None:
        self.function = function
        self.passed = passed
        self.kept = kept

    def __call__(self) -> None:
        """Run the kernel once."""
        self.function(*self.passed)


def empty(kind: TensorType) -> Array:
    """Return a new array of a type, without values, that begins at a line of the cache."""
    dtype = np.dtype(DTYPES[kind.element])
    size = math.prod(kind.shape) * dtype.itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    offset = -raw.ctypes.data % ALIGNMENT
    array: Array = raw[offset : offset + size].view(dtype).reshape(kind.shape)
    return array


def _checked(array: Any, kind: TensorType, what: str) -> Array:
    dtype = np.dtype(DTYPES[kind.element])
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != kind.shape:
        have = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array)
        raise NestorError(f"The {what} must be {dtype}{list(kind.shape)}, not {have}.")
    return array


@functools.cache
def _descriptor(rank: int) -> type[ctypes.Structure]:
    """Return MLIR's descriptor of a memref of some rank."""
    fields: list[tuple[str, Any]] = [
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
    ]
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"MemRef{rank}", (ctypes.Structure,), {"_fields_": fields})


def _reference(array: Array) -> Any:
    rank = array.ndim
    data = array.ctypes.data
    extent: list[Any] = []
    if rank:
        numbers = ctypes.c_int64 * rank
        strides = [stride // array.itemsize for stride in array.strides]
        extent = [numbers(*array.shape), numbers(*strides)]
    return ctypes.byref(_descriptor(rank)(data, data, 0, *extent))
