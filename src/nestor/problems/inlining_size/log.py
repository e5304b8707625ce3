"""Read the trajectory logs that the plugin writes (docs/reference/formats.md).

They are LLVM training logs whose last context is ``nestor:summary {…}``, what belongs to the module
as a whole; a log without it was cut short.
"""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from nestor.compiler import training_log
from nestor.problem.trajectory import LogError, Trajectory

DEFAULT: Final = "inlining_default"
"""The column, and the feature, that holds the stock heuristic's answer: LLVM's own name."""

COLUMNS: Final = (
    DEFAULT,
    "answer",
    "logit",
    "log_probability",
    "overridden",
    "effect",
    "site",
    "caller",
    "callee",
    "copy_of",
)
"""What the plugin logs after the compiler's features."""

INLINED: Final = (1, 2)
FAILED: Final = 3
"""Values of the column ``effect``."""

LARGEST_LOG: Final = 1 << 30
"""Bytes of a log that a user names; none of a real module comes near."""
_SUMMARY: Final = "nestor:summary "


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


def trajectory(records: Any, names: dict[int, str] | None = None, **facts: int) -> Trajectory:
    """Return the trajectory with these records: the features and :data:`COLUMNS`, ``[sites]``."""
    return Trajectory(
        features=tuple(n for n in (records.dtype.names or ()) if n not in COLUMNS),
        decisions=records,
        default_column=DEFAULT,
        names=names or {},
        facts=facts,
    )


def _parse(data: bytes) -> Trajectory:
    log = training_log.parse(data)
    summaries = [text for text in log.contexts if text.startswith(_SUMMARY)]
    if not summaries:
        raise ValueError("the summary at its end is missing")
    summary = json.loads(summaries[-1][len(_SUMMARY) :])
    if summary["decisions"] != len(log.records):
        raise ValueError("decisions are missing")
    if any(column[0].shape for column in (log.records.dtype.fields or {}).values()):
        raise ValueError("only scalar tensors are supported")
    missing = [name for name in COLUMNS if name not in (log.records.dtype.names or ())]
    if missing:
        raise ValueError(f"it has no {missing[0]}")
    return trajectory(
        np.asarray(log.records),
        {int(key, 16): str(name) for key, name in summary.get("names", {}).items()},
        growth_cap_reached=int(bool(summary["growth_cap_reached"])),
        asked_after_growth_cap=int(summary["asked_after_growth_cap"]),
        module=int(summary["module"], 16),
    )
