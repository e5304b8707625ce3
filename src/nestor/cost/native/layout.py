"""Check that Python and C++ agree on the records and numbers that they exchange.

The library says what it was built with (``nestor_cost_layout``, in ``native/cost/Layout.cpp``);
each Python module that lays out such a record or list declares its own, and compares both once,
before the first use. C++ names are in camelCase, Python's in snake_case.
"""

import ctypes
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nestor.errors import NestorError

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class LayoutError(NestorError):
    """Python and the native library disagree on what they exchange."""


@dataclass(frozen=True)
class Layout:
    """What one module of Python exchanges with the library; keys are the names in C++."""

    records: Mapping[str, np.dtype[Any]] = field(default_factory=lambda: _NONE)
    codes: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: _NONE)
    """Enumerations and constants, by name in capitals."""
    names: Mapping[str, Sequence[str]] = field(default_factory=lambda: _NONE)
    """Lists whose order matters."""


def check_layout(library: ctypes.CDLL, expected: Layout) -> None:
    """Compare ``expected`` with what the library exports.

    :raises LayoutError: if a record, a number or a list differs; the text says which.
    """
    library.nestor_cost_layout.restype = ctypes.c_char_p
    exported = json.loads(library.nestor_cost_layout())
    for name, dtype in expected.records.items():
        record = exported["records"].get(name, {"fields": [], "size": 0})
        theirs = {_snake(field): tuple(rest) for field, *rest in record["fields"]}
        _compare(f"the record {name}", _fields(dtype, expected.records), theirs)
        _compare(f"the bytes of {name}", {"size": dtype.itemsize}, {"size": record["size"]})
    for name, numbers in expected.codes.items():
        theirs = {_snake(k).upper(): v for k, v in exported["codes"].get(name, {}).items()}
        _compare(f"the numbers of {name}", {k: int(v) for k, v in numbers.items()}, theirs)
    for name, words in expected.names.items():
        listed: list[str] = exported["names"].get(name, [])
        _compare(f"the list of {name}", dict(enumerate(words)), dict(enumerate(listed)))


def _compare(what: str, ours: Mapping[Any, Any], theirs: Mapping[Any, Any]) -> None:
    for key in [*ours, *(key for key in theirs if key not in ours)]:
        if ours.get(key) != theirs.get(key):
            raise LayoutError(
                f"Python and the native library disagree on {what}: '{key}' is"
                f" {ours.get(key, 'absent')} in Python and {theirs.get(key, 'absent')} in C++;"
                " change both sides together."
            )


def _fields(dtype: np.dtype[Any], records: Mapping[str, np.dtype[Any]]) -> dict[str, Any]:
    """Return kind, offset and size of each field."""
    found: dict[str, Any] = {}
    for name in dtype.names or ():
        part, offset = dtype.fields[name][:2]  # type: ignore[index]  # there are names
        inner = [key for key, other in records.items() if other == part.base]
        found[name] = (inner[0] if inner else part.base.name, int(offset), part.itemsize)
    return found


def _snake(name: str) -> str:
    return _WORD_START.sub("_", name).lower()
