"""Read the trajectory logs that the plugin writes (docs/reference/formats.md)."""

from collections.abc import Mapping
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


def read(path: Path) -> Trajectory:
    """Read the log of one module.

    :raises LogError: if it is not a log, is malformed, or was cut short.
    """
    return parse(path.read_bytes(), str(path))


def parse(data: bytes, name: str = "log") -> Trajectory:
    """Parse the bytes of a log; ``name`` is used in errors. See :func:`read`."""
    try:
        return _parse(data)
    except training_log.MALFORMED as error:
        raise LogError(
            f"'{name}' is no complete trajectory log ({error}); compile again."
        ) from None


def trajectory(records: Any, names: Mapping[int, str] | None = None, **facts: int) -> Trajectory:
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
    summary = training_log.summary_of(log)
    if any(column[0].shape for column in (log.records.dtype.fields or {}).values()):
        raise ValueError("only scalar tensors are supported")
    missing = [name for name in COLUMNS if name not in (log.records.dtype.names or ())]
    if missing:
        raise ValueError(f"it has no {missing[0]}")
    return trajectory(
        np.asarray(log.records),
        summary.names,
        growth_cap_reached=int(bool(summary.values["growth_cap_reached"])),
        asked_after_growth_cap=int(summary.values["asked_after_growth_cap"]),
        module=summary.module,
    )
