"""Read training logs in LLVM's own format (llvm/Analysis/Utils/TrainingLogger.h).

One JSON line declares the tensors, ``{"context": …}`` lines name what is compiled, and each
decision is ``{"observation": N}``, the raw tensors and a newline. In the plugin's logs the last
context is ``nestor:summary {…}``, what belongs to the module as a whole.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

DTYPES: Final = {"int64_t": "<i8", "int32_t": "<i4", "float": "<f4", "double": "<f8"}
"""NumPy's types by LLVM's names for them."""

MALFORMED: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading raises of a log that is none, or in which something is not as it should be."""

_SUMMARY: Final = "nestor:summary "

_OBSERVATION = re.compile(rb'\{\s*"observation"\s*:\s*\d+\s*\}\n')
"""Nearly every line of a log is one; reading them all as JSON takes longer than a search's rest."""


@dataclass(frozen=True)
class TrainingLog:
    """A log as it stands in the file."""

    records: npt.NDArray[Any]
    """Structured array with the tensors of each observation, ``[observations]``."""
    contexts: tuple[str, ...]
    """In their order."""


def parse(data: bytes) -> TrainingLog:
    """Parse the bytes of a log; a tensor of several elements becomes a column of vectors.

    :raises MALFORMED: if it is no log.
    """
    line, position = _line(data, 0)
    row = np.dtype([_column(spec) for spec in line["features"]])
    rows: list[bytes] = []
    contexts: list[str] = []
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
        if "context" in line:
            contexts.append(str(line["context"]))
    return TrainingLog(np.frombuffer(b"".join(rows), dtype=row), tuple(contexts))


@dataclass(frozen=True)
class ModuleSummary:
    """What the plugin's log says of the module as a whole."""

    module: int
    """The module's id."""
    names: Mapping[int, str]
    """Names of functions by their ids; empty unless they were asked for."""
    values: Mapping[str, Any]
    """All of it, as it stands in the log."""


def summary_of(log: TrainingLog) -> ModuleSummary:
    """Return the summary at the end of a log of the plugin.

    :raises MALFORMED: if there is none, or not of all decisions: the log was cut short.
    """
    summaries = [text for text in log.contexts if text.startswith(_SUMMARY)]
    if not summaries:
        raise ValueError("the summary at its end is missing")
    values = json.loads(summaries[-1].removeprefix(_SUMMARY))
    if values["decisions"] != len(log.records):
        raise ValueError("decisions are missing")
    names = {int(key, 16): str(name) for key, name in values.get("names", {}).items()}
    return ModuleSummary(int(values["module"], 16), names, values)


def _column(spec: dict[str, Any]) -> tuple[str, str, tuple[int, ...]]:
    """Return the column of a tensor: of scalars if it has one element."""
    elements = math.prod(int(size) for size in spec["shape"])
    return spec["name"], DTYPES[spec["type"]], () if elements == 1 else (elements,)


def _line(data: bytes, position: int) -> tuple[dict[str, Any], int]:
    end = data.index(b"\n", position)
    line = json.loads(data[position:end])
    if not isinstance(line, dict):
        raise ValueError("a line is not a JSON object")
    return line, end + 1
