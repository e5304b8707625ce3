"""Columns of numbers and text, packed for a page: the narrowest type, deflated, in base64."""

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_INTEGERS: Final = ("u1", "i1", "u2", "i2", "u4", "i4")
"""What JavaScript has arrays of and holds exactly in a number."""


@dataclass
class Pack:
    """Blobs of a page; a blob is referred to by its place in :attr:`blobs`."""

    blobs: list[str] = field(default_factory=list)

    def column(self, values: npt.NDArray[Any], decimals: int | None = None) -> dict[str, Any]:
        """Add a column of numbers and return what the page needs to read it.

        :param values: ``[rows]``; numbers, or 64-bit identifiers (type ``u8``).
        :param decimals: round to so many digits behind the point.
        """
        values = np.asarray(values)
        if values.dtype.kind == "b":
            values = values.astype("u1")
        if values.dtype == np.dtype("<u8"):
            return self._array(values, "u8")
        if values.dtype.kind == "f" and decimals is not None:
            values = np.round(values, decimals)
        if values.dtype.kind == "f" and not _whole(values):
            return self._array(values, "f4" if decimals is not None else "f8")
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        for name in _INTEGERS:
            limits = np.iinfo(name)
            if limits.min <= low and high <= limits.max:
                return self._array(values, name)
        return self._array(values, "f8")

    def text(self, value: Any) -> int:
        """Add plain data as JSON and return its place."""
        return self._add(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode())

    def _array(self, values: npt.NDArray[Any], name: str) -> dict[str, Any]:
        return {"type": name, "blob": self._add(values.astype(f"<{name}").tobytes())}

    def _add(self, content: bytes) -> int:
        self.blobs.append(base64.b64encode(zlib.compress(content, 9)).decode())
        return len(self.blobs) - 1


def _whole(values: npt.NDArray[Any]) -> bool:
    finite = np.isfinite(values).all()
    return bool(finite and (values == np.round(values)).all() and (np.abs(values) < 2**53).all())
