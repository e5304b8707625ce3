"""Counts by object and address, which callgrind and perf give, as instructions with their code."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.events.errors import EventsError
from nestor.events.executed import Executed, LoadedObject
from nestor.events.image import Image, kind_of, string_accesses, string_bytes
from nestor.events.table import EXITS, LARGEST_COUNT

I64 = npt.NDArray[np.int64]

_APART: Final = 1 << 44
"""Objects are laid out this far apart, since only addresses in their files are at hand."""
_HIGHEST: Final = _APART - 1
_REPEATS: Final = EXITS.index("repeats")
_INDIRECT: Final = frozenset(
    EXITS.index(name) for name in ("return", "indirect jump", "indirect call")
)

Place = tuple[str, int]
"""An object and an address in its file."""


@dataclass
class Gathered:
    """Counts of instructions."""

    executions: dict[Place, float] = field(default_factory=lambda: defaultdict(float))
    events: dict[str, dict[Place, float]] = field(default_factory=dict)
    """By event; one that is absent is not counted."""
    edges: dict[tuple[Place, Place], float] = field(default_factory=lambda: defaultdict(float))
    """Of branches whose code does not say where they go."""

    def count(self, event: str, place: Place, amount: float) -> None:
        """Add to an event; adding 0 says that it is counted."""
        counts = self.events.setdefault(event, defaultdict(float))
        if amount:
            counts[place] += amount


@dataclass(frozen=True)
class WithCode:
    """Instructions that ran, and how many there was no code for."""

    executed: Executed
    missing: int


def with_code(gathered: Gathered, image: Callable[[str], Image | None]) -> WithCode:
    """Return the instructions with their code; those without are left out and counted.

    :param image: returns the code of an object; None if its file is absent.
    :raises EventsError: if a count is larger than any run has.
    """
    names = sorted({name for name, _ in gathered.executions})
    images = {name: image(name) for name in names}
    rows: list[tuple[int, bytes, Place]] = []
    missing = 0
    for place in gathered.executions:
        name, address = place
        own = images[name]
        code = own.at(address) if own is not None and 0 <= address < _HIGHEST else b""
        if code:
            rows.append((names.index(name) * _APART + address, code, place))
        else:
            missing += 1
    rows.sort()
    places = [place for _, _, place in rows]
    kinds = np.array([kind_of(code) for _, code, _ in rows], np.int64)
    executions = _column(gathered.executions, places)
    events = {name: _column(counts, places) for name, counts in gathered.events.items()}
    _add_turns(events, kinds, [code for _, code, _ in rows])
    present = set(places)
    indirect = {p for p, kind in zip(places, kinds.tolist(), strict=True) if kind in _INDIRECT}
    edges = [
        (names.index(a) * _APART + at, names.index(b) * _APART + to, count)
        for ((a, at), (b, to)), count in gathered.edges.items()
        if (a, at) in indirect and (b, to) in present
    ]
    functions = _functions(names, images)
    return WithCode(
        Executed(
            np.array([address for address, _, _ in rows], np.uint64),
            [code for _, code, _ in rows],
            kinds,
            executions,
            events,
            np.array([edge[0] for edge in edges], np.uint64),
            np.array([edge[1] for edge in edges], np.uint64),
            _numbers(edge[2] for edge in edges),
            [
                LoadedObject(name, number * _APART, _APART, number * _APART)
                for number, name in enumerate(names)
            ],
            np.array([start for start, _ in functions], np.uint64),
            [name for _, name in functions],
        ),
        missing,
    )


def overlapping(run: Executed) -> int:
    """Return how many instructions begin inside of the one before: of another build, many do."""
    length = np.fromiter(map(len, run.code), np.uint64, len(run.code))
    return int((run.address[1:] < run.address[:-1] + length[:-1]).sum())


def _column(counts: Mapping[Place, float], places: list[Place]) -> I64:
    return _numbers([counts.get(place, 0.0) for place in places])


def _numbers(counts: Iterable[float]) -> I64:
    """Return whole counts.

    :raises EventsError: if one is larger than any run has.
    """
    numbers = [round(count) for count in counts]
    if any(not 0 <= number <= LARGEST_COUNT for number in numbers):
        raise EventsError("The file has impossible counts; make it again.")
    return np.array(numbers, np.int64)


def _add_turns(
    events: dict[str, I64],
    kinds: I64,
    codes: list[bytes],
) -> None:
    """Add the turns of string instructions, as their accesses tell, and their bytes."""
    if "reads" not in events or "writes" not in events:
        return
    turns, size = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
    for row in np.flatnonzero(kinds == _REPEATS).tolist():
        accesses = max(events["reads"][row], events["writes"][row])
        turns[row], size[row] = accesses // string_accesses(codes[row]), string_bytes(codes[row])
    events["rep_turns"], events["rep_bytes"] = turns, turns * size


def _functions(names: list[str], images: Mapping[str, Image | None]) -> list[tuple[int, str]]:
    found = []
    for number, name in enumerate(names):
        own = images[name]
        found.append((number * _APART, ""))
        if own is not None:
            found += [
                (number * _APART + start, function)
                for start, function in zip(own.function_start, own.function_name, strict=True)
                if 0 < start < _HIGHEST
            ]
    return found


def images_from(program: Path) -> Callable[[str], Image | None]:
    """Return what finds the code of objects: files by their paths, and ``program`` by its name."""

    def image(name: str) -> Image | None:
        if Path(name).name == program.name:
            return Image.read(program)
        return Image.read(Path(name)) if name.startswith("/") else None

    return image
