"""Turn samples into events of blocks.

A record of the last branches says exactly what ran between them, but stands for much more that was
not recorded. Each stack of records is scaled by the sample's period: where records carry cycles, so
that their cycles become the period of a sample of cycles; else so that its branches do, which is
right for samples of taken branches and relative for others. Only taken branches are on record, so
mispredictions of branches that were not taken come from samples of ``branch-misses`` alone.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import iced_x86

from nestor.events.errors import EventsError
from nestor.events.executed import table_of
from nestor.events.gathered import Gathered, Place, images_from, with_code
from nestor.events.image import Image, kind_of
from nestor.events.perf.mappings import Mappings
from nestor.events.perf.names import column_of, paces
from nestor.events.perf.script import Mapping, Sample, parse
from nestor.events.table import EXITS, About, EventTable
from nestor.files import read_regular_text, sha256_of
from nestor.processor import this_machine

_LARGEST: Final = 1 << 31
_LONGEST_RANGE: Final = 1 << 16
"""Bytes between two branches; a longer range is a record that was lost."""
_KIND: Final = {name: number for number, name in enumerate(EXITS)}
_INDIRECT: Final = frozenset(_KIND[name] for name in ("return", "indirect jump", "indirect call"))


def read(path: Path, program: Path) -> EventTable:
    """Return the events in what ``perf script`` printed.

    :param program: what was run; its code, and that of the libraries that it used, is read.
    :raises EventsError: if the text has no sample with branch records in the program's code.
    """
    text = read_regular_text(path, "the text of perf script", limit=_LARGEST)
    importer = _Importer(program)
    for item in parse(text.splitlines()):
        if isinstance(item, Mapping):
            importer.add_mapping(item)
        else:
            importer.add_sample(item)
    return importer.table(path)


@dataclass
class _Stacks:
    """What stacks of records add up to."""

    ranges: dict[tuple[Place, Place], float] = field(default_factory=lambda: defaultdict(float))
    taken: dict[tuple[Place, Place], float] = field(default_factory=lambda: defaultdict(float))
    missed: dict[Place, float] = field(default_factory=lambda: defaultdict(float))
    number: int = 0
    predicted: bool = False
    """Some record says whether it was predicted."""


class _Importer:
    """Collects samples of one program."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._image = images_from(program)
        self._images: dict[str, Image | None] = {}
        self._mappings = Mappings()
        self._places: dict[int, Place | None] = {}
        """Of addresses that were looked up since the last mapping."""
        self._paced, self._others = _Stacks(), _Stacks()
        """Of samples as dense as cycles or branches; of others, which count in want of these."""
        self._plain: list[tuple[str, Place, int]] = []
        self._periods: set[int] = set()
        self._samples = 0
        own = self._of(program.name)
        if own is not None and own.segments and own.segments[0].address >= 1 << 16:
            # Loaded at its own addresses: needs no mapping, which the text may lack.
            for segment in own.segments:
                self._mappings.add(
                    Mapping(segment.address, len(segment.code), segment.offset, str(program))
                )

    def _of(self, name: str) -> Image | None:
        if name not in self._images:
            self._images[name] = self._image(name)
        return self._images[name]

    def add_mapping(self, mapping: Mapping) -> None:
        """Take a mapping, which stands above earlier ones at its place."""
        self._mappings.add(mapping)
        self._places.clear()

    def _place(self, address: int) -> Place | None:
        if address not in self._places:
            self._places[address] = self._looked_up(address)
        return self._places[address]

    def _looked_up(self, address: int) -> Place | None:
        mapping = self._mappings.find(address)
        if mapping is None:
            return None
        image = self._of(mapping.file)
        inside = address - mapping.start
        own = image.address_of(inside + mapping.offset) if image is not None else None
        return None if own is None else (mapping.file, own)

    def add_sample(self, sample: Sample) -> None:
        """Take a sample."""
        self._samples += 1
        if sample.period:
            self._periods.add(sample.period)
        column = column_of(sample.event)
        place = self._place(sample.address)
        if column is not None and place is not None:
            self._plain.append((column, place, sample.period or 1))
        if sample.branches and column in (None, "cycles"):
            stacks = self._paced if paces(sample.event) else self._others
            self._add_stack(stacks, sample, column)

    def _add_stack(self, stacks: _Stacks, sample: Sample, column: str | None) -> None:
        stacks.number += 1
        # What ran before the oldest record is not known, so that record only says where it went.
        counted = len(sample.branches) - 1
        cycles = sum(branch.cycles for branch in sample.branches[:counted])
        covered = cycles if column == "cycles" and cycles else max(counted, 1)
        weight = (sample.period or covered) / covered
        newer: Place | None = None
        for number, branch in enumerate(sample.branches):
            source, target = self._place(branch.source), self._place(branch.target)
            if newer is not None and target is not None and _is_range(target, newer):
                stacks.ranges[target, newer] += weight
            if number == counted:
                break
            if source is not None and target is not None:
                stacks.taken[source, target] += weight
            if branch.mispredicted is not None:
                stacks.predicted = True
                if branch.mispredicted and source is not None:
                    stacks.missed[source] += weight
            newer = source

    def table(self, path: Path) -> EventTable:
        """Return the table of all samples.

        :raises EventsError: if none has branch records in known code.
        """
        if not self._samples:
            raise EventsError(
                f"'{path}' has no samples; write it with 'perf script --show-mmap-events -F"
                " pid,tid,time,event,period,ip,brstack'."
            )
        stacks = self._paced if self._paced.ranges else self._others
        if not self._mappings and (self._paced.number or self._others.number):
            raise EventsError(
                f"'{path}' does not say where '{self._program}' lay in memory; print it again with"
                " 'perf script --show-mmap-events'."
            )
        if not stacks.ranges:
            raise EventsError(
                f"'{path}' has no branch records in code of '{self._program}'; record with 'perf"
                " record -b', on a processor that has them, and name the program of that run."
            )
        gathered = Gathered()
        broken = self._fill(gathered, stacks)
        found = with_code(gathered, self._of)
        about = About(
            "perf",
            max(self._periods, default=1),
            self._program.name,
            sha256_of(self._program),
            machine=this_machine(),
            settings={
                "samples": str(self._samples),
                "stacks": str(stacks.number),
                "broken_ranges": str(broken),
            },
        )
        table = table_of(found.executed, about)
        if not len(table):
            raise EventsError(f"'{path}' is of another build of '{self._program}'; record again.")
        return table

    def _fill(self, gathered: Gathered, stacks: _Stacks) -> int:
        """Add up what ran; return how many ranges do not fit the code."""
        broken = 0
        for (start, end), weight in stacks.ranges.items():
            places = self._walk(start, end)
            broken += not places
            for place in places:
                gathered.executions[place] += weight
        events = {name for name, _, _ in self._plain}
        gathered.count("taken", ("", 0), 0)
        for (source, target), weight in stacks.taken.items():
            kind = self._kind(source)
            if source not in gathered.executions or kind is None:
                continue
            if kind == _KIND["conditional"] or kind in _INDIRECT:
                gathered.count("taken", source, weight)
            if kind in _INDIRECT:
                gathered.edges[source, target] += weight
        if stacks.predicted:
            for name in ("mispredicts", "indirect_mispredicts"):
                gathered.count(name, ("", 0), 0)
            for source, weight in stacks.missed.items():
                indirect = self._kind(source) in _INDIRECT
                if indirect or "mispredicts" not in events:
                    name = "indirect_mispredicts" if indirect else "mispredicts"
                    gathered.count(name, source, weight)
        for name, place, period in self._plain:
            gathered.count(name, ("", 0), 0)
            if place in gathered.executions:
                gathered.count(name, place, period)
        return broken

    def _kind(self, place: Place) -> int | None:
        image = self._of(place[0])
        code = image.at(place[1]) if image is not None else b""
        return kind_of(code) if code else None

    def _walk(self, start: Place, end: Place) -> list[Place]:
        """Return the instructions from one to another; none if they do not follow each other."""
        image = self._of(start[0])
        segment = (
            next((s for s in image.segments if 0 <= start[1] - s.address < len(s.code)), None)
            if image is not None
            else None
        )
        if segment is None:
            return []
        begin = start[1] - segment.address
        decoder = iced_x86.Decoder(
            64, segment.code[begin : begin + end[1] - start[1] + 15], ip=start[1]
        )
        found = []
        for instruction in decoder:
            if instruction.is_invalid or instruction.ip > end[1]:
                return []
            found.append((start[0], instruction.ip))
            if instruction.ip == end[1]:
                return found
        return []


def _is_range(start: Place, end: Place) -> bool:
    return start[0] == end[0] and 0 <= end[1] - start[1] < _LONGEST_RANGE
