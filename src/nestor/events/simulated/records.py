"""Read the file that our tool writes (``native/events/Sites.c``)."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.events.errors import EventsError
from nestor.events.executed import Executed, LoadedObject
from nestor.events.image import string_bytes
from nestor.events.table import EXITS

_MAGIC: Final = b"NESTOREV"
_END: Final = b"complete"
_VERSION: Final = 1
_HEADER: Final = np.dtype(
    [("magic", "S8")]
    + [(name, "<u8") for name in ("version", "sites", "runs", "edges", "objects", "name_bytes")]
    + [("exit_status", "<i8"), ("unused", "<u8")]
)
_COUNTS: Final = (
    "taken",
    "mispredicts",
    "gshare_mispredicts",
    "indirect_mispredicts",
    "l1_misses",
    "l2_misses",
    "llc_misses",
    "code_misses",
    "tlb_misses",
    "rep_bytes",
    "rep_turns",
)
_LONGEST: Final = 15
_SITE: Final = np.dtype(
    [("address", "<u8")]
    + [(name, "<i8") for name in _COUNTS]
    + [(name, "u1") for name in ("length", "kind", "reads", "writes")]
    + [("code", "u1", _LONGEST), ("unused", "u1", 5)]
)
_RUN: Final = np.dtype(
    [("start", "<u8"), ("executions", "<i8"), ("instructions", "<u8"), ("function", "<u8")]
)
_EDGE: Final = np.dtype([("from", "<u8"), ("to", "<u8"), ("count", "<i8")])
_OBJECT: Final = np.dtype([("start", "<u8"), ("size", "<u8"), ("bias", "<i8"), ("name", "<u8")])
_LARGEST: Final = 1 << 60
_LONGEST_RUN: Final = 1 << 12
_REPEATS: Final = EXITS.index("repeats")


class _BrokenError(Exception):
    """The file is not as the tool writes it; the text says what is wrong."""


def parse(content: bytes) -> Executed:
    """Return the instructions of a run.

    :raises EventsError: if the file is cut short or damaged.
    """
    try:
        return _parse(content)
    except _BrokenError as error:
        raise EventsError(f"The counts of the run cannot be read: {error}; run it again.") from None


def gshare_mispredicts(content: bytes) -> int:
    """Return what gshare mispredicts of the conditions of a run, with the option ``--gshare``.

    :raises EventsError: as :func:`parse`.
    """
    parse(content)
    header = np.frombuffer(content, _HEADER, 1)[0]
    start = _HEADER.itemsize + int(header["objects"]) * _OBJECT.itemsize
    sites = np.frombuffer(content, _SITE, int(header["sites"]), start)
    return int(sites["gshare_mispredicts"].sum())


def _parse(content: bytes) -> Executed:
    if len(content) < _HEADER.itemsize:
        raise _BrokenError("the file is cut short")
    header = np.frombuffer(content, _HEADER, 1)[0]
    if header["magic"] != _MAGIC or header["version"] != _VERSION:
        raise _BrokenError("it is of another version")
    kinds = (("objects", _OBJECT), ("sites", _SITE), ("runs", _RUN), ("edges", _EDGE))
    sizes = [int(header[name]) * dtype.itemsize for name, dtype in kinds]
    names_size = int(header["name_bytes"])
    if _HEADER.itemsize + sum(sizes) + names_size + len(_END) != len(content):
        raise _BrokenError("the file is cut short")
    arrays, at = {}, _HEADER.itemsize
    for (name, dtype), size in zip(kinds, sizes, strict=True):
        arrays[name] = np.frombuffer(content, dtype, int(header[name]), at)
        at += size
    names = content[at : at + names_size]
    if not content.endswith(_END) or (names and names[-1]):
        raise _BrokenError("its end is missing")
    return _executed(arrays, names)


def _executed(arrays: dict[str, NDArray[Any]], names: bytes) -> Executed:
    sites = np.sort(arrays["sites"], order="address")
    runs = np.sort(arrays["runs"], order="start")
    _check(sites, runs, arrays["edges"])
    executions = _executions(sites, runs)
    ran = executions > 0
    sites, executions = sites[ran], executions[ran]
    events = {name: sites[name].astype(np.int64) for name in _COUNTS if "gshare" not in name}
    code = sites["code"].tobytes()
    codes = [
        code[row * _LONGEST : row * _LONGEST + length]
        for row, length in enumerate(sites["length"].tolist())
    ]
    times = executions.copy()  # that each instruction accesses memory
    for row in np.flatnonzero(sites["kind"] == _REPEATS).tolist():
        # The last time it may find nothing left to do, and goes on.
        times[row] = events["rep_bytes"][row] // max(string_bytes(codes[row]), 1)
    for name in ("reads", "writes"):
        events[name] = sites[name].astype(np.int64) * times
    edges = arrays["edges"]
    return Executed(
        sites["address"].astype(np.uint64),
        codes,
        sites["kind"].astype(np.int64),
        executions,
        events,
        edges["from"].astype(np.uint64),
        edges["to"].astype(np.uint64),
        edges["count"].astype(np.int64),
        [
            LoadedObject(
                _text(names, int(o["name"])), int(o["start"]), int(o["size"]), int(o["bias"])
            )
            for o in arrays["objects"]
        ],
        runs["start"].astype(np.uint64),
        [_text(names, at) for at in runs["function"].tolist()],
    )


def _check(sites: NDArray[Any], runs: NDArray[Any], edges: NDArray[Any]) -> None:
    counts = [sites[name] for name in _COUNTS] + [runs["executions"], edges["count"]]
    if any(len(count) and (count.min() < 0 or count.max() > _LARGEST) for count in counts):
        raise _BrokenError("a count is out of range")
    if len(sites) and (sites["length"].min() < 1 or sites["length"].max() > _LONGEST):
        raise _BrokenError("an instruction has no length")
    if len(sites) and sites["kind"].max() >= len(EXITS):
        raise _BrokenError("an instruction is of no such kind")
    if (np.diff(sites["address"].astype(np.uint64)) == 0).any():
        raise _BrokenError("an instruction is there twice")


def _executions(sites: NDArray[Any], runs: NDArray[Any]) -> NDArray[np.int64]:
    """Return how often each instruction ran: the sum over the runs that it is part of."""
    count = len(sites)
    result = np.zeros(count, np.int64)
    if not len(runs):
        return result
    first = np.searchsorted(sites["address"], runs["start"])
    if first.max() >= count or (sites["address"][first] != runs["start"]).any():
        raise _BrokenError("a run begins at no instruction")
    if runs["instructions"].max() > _LONGEST_RUN or runs["instructions"].min() < 1:
        raise _BrokenError("a run has no length")
    # Instructions of a run follow each other in memory; others may lie between in the table only
    # where code was entered in the middle of an instruction.
    following = np.searchsorted(sites["address"], sites["address"] + sites["length"])
    at, left = first.copy(), runs["instructions"].astype(np.int64)
    executions = runs["executions"].astype(np.int64)
    while True:
        np.add.at(result, at, executions)
        left = left - 1
        going = left > 0
        if not going.any():
            return result
        at, left, executions = following[at[going]], left[going], executions[going]
        if (at >= count).any():
            raise _BrokenError("a run ends behind its instructions")


def _text(names: bytes, at: int) -> str:
    if not 0 <= at < len(names):
        raise _BrokenError("a name is missing")
    return names[at : names.index(b"\0", at)].decode(errors="replace")
