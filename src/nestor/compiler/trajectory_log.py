"""Read the trajectory logs that the plugin writes (LLVM's training-log format).

One JSON line declares the tensors, ``{"context": …}`` lines name the module, and each decision
is ``{"observation": N}``, the raw tensors and a newline (llvm/Analysis/Utils/TrainingLogger.h).
The plugin closes a log with the context ``nestor:summary {…}``; a log without it was cut short.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError

DTYPES: Final = {"int64_t": "<i8", "int32_t": "<i4", "float": "<f4", "double": "<f8"}
"""NumPy's types by LLVM's names for them."""

EXTRA_TENSORS: Final = (
    "inlining_default",
    "answer",
    "logit",
    "log_probability",
    "overridden",
    "effect",
    "site",
    "caller",
    "callee",
)
"""What the plugin logs after the compiler's features."""

_SUMMARY = "nestor:summary "
_OBSERVATION = re.compile(rb'\{\s*"observation"\s*:\s*\d+\s*\}\n')
"""Nearly every line of a log is one; reading them all as JSON takes longer than a search's rest."""


class LogError(NestorError):
    """A log is malformed or incomplete."""


@dataclass(frozen=True)
class Trajectory:
    """All decisions of one module, in order."""

    features: tuple[str, ...]
    """Names of the compiler's features, in its order."""
    records: npt.NDArray[Any]
    """Structured array, one row a decision: the features, then :data:`EXTRA_TENSORS`."""
    growth_cap_reached: bool
    """The module doubled, so the advisor stopped asking."""
    asked_after_growth_cap: int
    stale_overrides: int
    names: dict[int, str]
    """Function names by their 64-bit id; empty unless they were asked for."""
    module: int = 0
    """The module's 64-bit id, as overrides know it."""

    def __len__(self) -> int:
        return len(self.records)

    def matrix(self, names: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the values of ``names`` as f64 ``[decisions, len(names)]``.

        :raises LogError: if the log lacks one of them.
        """
        missing = [name for name in names if name not in (self.records.dtype.names or ())]
        if missing:
            raise LogError(f"The log has no feature {', '.join(missing)}.")
        if not names:
            return np.empty((len(self), 0))
        return np.stack([self.records[name].astype(np.float64) for name in names], axis=1)


def read(path: Path) -> Trajectory:
    """Read the log of one module.

    :raises LogError: if it is not a log, is malformed, or was cut short.
    """
    return parse(path.read_bytes(), str(path))


def parse(data: bytes, name: str = "log") -> Trajectory:
    """Parse the bytes of a log; ``name`` is used in errors. See :func:`read`."""
    try:
        return _parse(data)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise LogError(
            f"'{name}' is no complete trajectory log ({error}); compile again."
        ) from None


def _parse(data: bytes) -> Trajectory:
    line, position = _line(data, 0)
    specs = line["features"]
    if any(spec["shape"] != [1] for spec in specs):
        raise ValueError("only scalar tensors are known")
    row = np.dtype([(spec["name"], DTYPES[spec["type"]]) for spec in specs])
    rows: list[bytes] = []
    summary: dict[str, Any] | None = None
    while position < len(data):
        if observation := _OBSERVATION.match(data, position):
            position = observation.end()
            end = position + row.itemsize
            if data[end : end + 1] != b"\n":
                raise ValueError(f"observation {len(rows)} is truncated")
            rows.append(data[position:end])
            position = end + 1
            continue
        line, position = _line(data, position)
        if str(line.get("context", "")).startswith(_SUMMARY):
            summary = json.loads(line["context"][len(_SUMMARY) :])
    if summary is None:
        raise ValueError("the summary at its end is missing")
    if summary["decisions"] != len(rows):
        raise ValueError("decisions are missing")
    return Trajectory(
        features=tuple(n for n in (row.names or ()) if n not in EXTRA_TENSORS),
        records=np.frombuffer(b"".join(rows), dtype=row),
        growth_cap_reached=bool(summary["growth_cap_reached"]),
        asked_after_growth_cap=int(summary["asked_after_growth_cap"]),
        stale_overrides=int(summary["stale_overrides"]),
        names={int(key, 16): str(name) for key, name in summary.get("names", {}).items()},
        module=int(summary["module"], 16),
    )


def _line(data: bytes, position: int) -> tuple[dict[str, Any], int]:
    end = data.index(b"\n", position)
    line = json.loads(data[position:end])
    if not isinstance(line, dict):
        raise ValueError("a line is not a JSON object")
    return line, end + 1
