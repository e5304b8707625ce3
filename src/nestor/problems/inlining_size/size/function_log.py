"""Read the function logs that the plugin writes: counts of each function's IR before it is code.

JSON lines: ``{"nestor_functions": 1, "module": …, "counts": [names]}``, a line ``[name, counts…]``
for each function that code is generated for, and ``{"functions": N}``; a log without that last
line was cut short. docs/studies/size-estimator.md says what is counted.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nestor.compiler.plugin import Plugin
from nestor.compiler.releases import FUNCTION_LOG
from nestor.problem.trajectory import LogError

F64 = npt.NDArray[np.float64]

_VERSION = 1
_LARGEST = 1 << 30
"""Bytes of a log that nobody's module has."""


@dataclass(frozen=True)
class FunctionLog:
    """What the functions of one module are made of."""

    counts: tuple[str, ...]
    """Names of the counts."""
    names: tuple[str, ...]
    """The functions, as their symbols are called."""
    values: F64
    """``[functions, counts]``"""


def flags(path: Path, *, no_code: bool = False) -> list[str]:
    """Return the compiler's options, behind those of the plugin, that write a log to ``path``.

    :param no_code: generate no code; the object stays empty.
    """
    options = [f"-nestor-function-log={path}", *(["-nestor-no-code"] if no_code else [])]
    return [word for option in options for word in ("-mllvm", option)]


def load(plugin: Plugin) -> list[str]:
    """Return the options that load ``plugin`` without giving it anything to decide.

    :raises ToolchainError: if this release of LLVM has no function log.
    """
    plugin.toolchain.require(FUNCTION_LOG)
    return plugin.words()


def read(path: Path) -> FunctionLog:
    """Read the log of one module.

    :raises LogError: if it is not a log, is malformed, or was cut short.
    """
    if path.stat().st_size > _LARGEST:
        raise LogError(f"'{path}' is too large for a function log; compile again.")
    return parse(path.read_bytes(), str(path))


def parse(data: bytes, name: str = "log") -> FunctionLog:
    """Parse the bytes of a log; ``name`` is used in errors. See :func:`read`."""
    try:
        return _parse(data.decode())
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise LogError(f"'{name}' is no complete function log ({error}); compile again.") from None


def _parse(text: str) -> FunctionLog:
    head, *rows, last = (json.loads(line) for line in text.splitlines())
    if head["nestor_functions"] != _VERSION:
        raise ValueError("its version is of a newer Nestor")
    if last != {"functions": len(rows)}:
        raise ValueError("functions are missing")
    counts = _words(head["counts"])
    if len(set(counts)) < len(counts):
        raise ValueError("two counts have one name")
    if any(len(row) != 1 + len(counts) for row in rows):
        raise ValueError("a function has other counts than the head names")
    values = np.array([row[1:] for row in rows], dtype=np.float64).reshape(len(rows), len(counts))
    if not np.isfinite(values).all():
        raise ValueError("a count is not finite")
    return FunctionLog(counts, _words([row[0] for row in rows]), values)


def _words(values: Sequence[object]) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise ValueError("a name is not a text")
    return tuple(str(value) for value in values)
