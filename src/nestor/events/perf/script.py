"""Read what ``perf script`` prints.

The command is ``perf script --show-mmap-events -F pid,tid,time,event,period,ip,brstack``; fields
before the event may be absent. A record of a branch is ``FROM/TO/M|P|-/…/CYCLES``, the newest
first. What is neither a sample nor a mapping is passed over.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_MAPPED: Final = re.compile(
    r"PERF_RECORD_MMAP2? -?\d+/-?\d+: "
    r"\[(?:0x)?([0-9a-f]{1,16})\((?:0x)?([0-9a-f]{1,16})\) @ (?:0x)?([0-9a-f]{1,16})[^\]]*\]:"
    r" ([r-][w-])x\S* (\S.*)"
)
_BRANCH: Final = re.compile(r"0x([0-9a-f]{1,16})/0x([0-9a-f]{1,16})/([MP-])((?:/[^\s/]*){0,8})")
_EVENT: Final = re.compile(
    r"(?:^|\s)(?:(\d{1,15})\s+)?([A-Za-z][\w.\-]*(?:/[\w.\-,=]*/[A-Za-z]*)?(?::[A-Za-z]+)?):(?=\s)"
)
_ADDRESS: Final = re.compile(r"(?:^|\s)(?:0x)?([0-9a-f]{1,16})(?=\s|$)")


@dataclass(frozen=True)
class Mapping:
    """A file, or a part of it, in memory."""

    start: int
    size: int
    offset: int
    """Of the part in the file."""
    file: str


@dataclass(frozen=True)
class Branch:
    """One branch that was taken."""

    source: int
    target: int
    mispredicted: bool | None
    """None where the processor does not say."""
    cycles: int
    """Since the branch before it; 0 where the processor does not say."""


@dataclass(frozen=True)
class Sample:
    """One sample."""

    event: str
    """Without its modifiers; empty where the text does not say."""
    period: int
    """Events that it stands for; 0 where the text does not say."""
    address: int
    branches: tuple[Branch, ...]
    """The newest first."""


def parse(lines: Iterable[str]) -> Iterator[Mapping | Sample]:
    """Yield mappings and samples in their order."""
    head: str | None = None
    branches: list[Branch] = []
    for line in lines:
        mapped = _MAPPED.search(line)
        if mapped is not None:
            yield from _finished(head, branches)
            head, branches = None, []
            start, size, offset = (int(mapped[group], 16) for group in (1, 2, 3))
            yield Mapping(start, size, offset, mapped[5].strip())
            continue
        found = list(_BRANCH.finditer(line))
        before = line[: found[0].start()] if found else line
        if before.strip():
            yield from _finished(head, branches)
            head, branches = before, []
        branches += map(_branch, found)
    yield from _finished(head, branches)


def _branch(found: re.Match[str]) -> Branch:
    rest = found[4].split("/")
    numbers = [word for word in rest if word.isdigit()]
    cycles = int(numbers[0][:9]) if numbers else 0
    flag = {"M": True, "P": False}.get(found[3])
    return Branch(int(found[1], 16), int(found[2], 16), flag, cycles)


def _name(word: str) -> str:
    """Return the name of an event without modifiers and without its unit (``cpu_core/…/u``)."""
    unit, slash, rest = word.partition("/")
    return (re.split("[/,]", rest)[0] if slash else unit).partition(":")[0]


def _finished(head: str | None, branches: list[Branch]) -> Iterator[Sample]:
    if head is None:
        return
    event = _EVENT.search(head)
    after = head[event.end() :] if event else head
    addresses = _ADDRESS.findall(after)
    if not addresses:
        return
    yield Sample(
        _name(event[2]) if event else "",
        int(event[1] or 0) if event else 0,
        int(addresses[0 if event else -1], 16),
        tuple(branches),
    )
