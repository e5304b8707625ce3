"""Where the accesses of a block go, from one turn of its loop to the next: read off the code."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from nestor.cost.isa.decoding import Instruction, Memory

LINE: Final = 64
KINDS: Final = ("stack", "fixed", "invariant", "strided", "computed", "loaded", "chased")
"""What an address is made of: the stack's pointer; nothing that changes; registers that the loop
leaves alone; one that it steps through; one that it computes; one that it loads; and one that it
loads from where it pointed the turn before."""
_RETURNED: Final = "rax"
_ZEROES: Final = ("xor", "pxor", "xorps")
_WIDTH: Final = re.compile(r"(8|16|32|64)(?=_|$)")


@dataclass
class Changes:
    """How a piece of code that runs again and again changes registers."""

    steps: dict[str, float] = field(default_factory=dict)
    """Bytes a turn, of registers that are only counted up or down."""
    writers: dict[str, list[Instruction]] = field(default_factory=dict)
    """What else writes a register; an empty list where a call returns it."""
    made_of: dict[str, set[str]] = field(default_factory=dict)
    """Of what registers these writers make a register."""
    inherited: set[str] = field(default_factory=set)
    """Registers that are read before they are written, in the order of the code."""


@dataclass(frozen=True)
class Access:
    """Accesses of a block to one line: those whose addresses differ by a constant within it."""

    kind: str
    """Of :data:`KINDS`."""
    stride: float
    """Bytes a turn; 0 unless it is strided."""
    bound: float
    """Bytes within which its addresses lie, as far as the code says; infinity where it does not."""
    writes: bool
    """Whether all of them write."""
    again: bool = False
    """Whether each entry of the loop goes to the same places, as far as the loop around it says."""

    @property
    def bytes(self) -> float:
        """Bytes that an execution touches, and the one before does not; of one place, its line."""
        return min(abs(self.stride), LINE) if self.kind == "strided" else float(LINE)


def changes_of(
    blocks: Sequence[Sequence[Instruction]], turns: Sequence[float], calls: bool
) -> Changes:
    """Return how registers change in a turn of a loop.

    :param blocks: its code, or that of the part that is looked at.
    :param turns: executions of each block in a turn.
    :param calls: whether there is a call among them.
    """
    found = Changes()
    written = set[str]()
    for block, often in zip(blocks, turns, strict=True):
        for one in block:
            step = _step(one)
            made_of = _made_of(one)
            found.inherited |= made_of - written
            written |= set(one.writes)
            for name in one.writes:
                if name == "rsp":
                    continue
                if step is not None:
                    found.steps[name] = found.steps.get(name, 0.0) + often * step
                else:
                    found.writers.setdefault(name, []).append(one)
                    found.made_of.setdefault(name, set()).update(made_of)
    if calls:
        found.writers.setdefault(_RETURNED, [])
    for name in found.writers:
        found.steps.pop(name, None)
    return found


def accesses_of(
    block: Sequence[Instruction], changes: Changes, around: Changes | None = None
) -> list[Access]:
    """Return the accesses of a block, each line once.

    :param changes: those of its loop.
    :param around: those of the loop around it, outside of its own; None if there is none.
    """
    found: dict[tuple[object, ...], list[Memory]] = {}
    version: dict[str, int] = {}
    for number, one in enumerate(block):
        for place in one.memory:
            key = (
                place.base, version.get(place.base), place.index, version.get(place.index),
                place.scale, place.segment, place.displacement // LINE,
            )  # fmt: skip
            found.setdefault(key, []).append(place)
        version |= dict.fromkeys(one.writes, number)
    return [_access(places, changes, around) for places in found.values()]


def _access(places: Sequence[Memory], changes: Changes, around: Changes | None) -> Access:
    place = places[0]
    writes = all(one.access == "write" for one in places)
    parts = ((place.base, 1), (place.index, place.scale))
    registers = [(name, scale) for name, scale in parts if name not in ("", "rip")]
    names = {name for name, _ in registers}
    if place.segment or not names:
        return Access("fixed", 0.0, LINE, writes)
    if names == {"rsp"}:
        return Access("stack", 0.0, LINE, writes)
    changed = [(name, scale) for name, scale in registers if name in changes.writers]
    again = around is not None and _begins_again(names, changes, around)
    if not changed:
        stride = sum(changes.steps.get(name, 0.0) * scale for name, scale in registers)
        return Access("strided" if stride else "invariant", stride, math.inf, writes, again)
    kinds = [_kind(name, changes) for name, _ in changed]
    bound = sum(_bound(name, changes) * scale for name, scale in changed)
    return Access(max(kinds, key=KINDS.index), 0.0, bound, writes, again)


def _begins_again(names: set[str], changes: Changes, around: Changes) -> bool:
    """Tell whether registers have the same values at each entry of a loop.

    What the loop makes of itself must be set anew outside, and what is set there must come from
    registers that nothing changes.
    """
    return all(
        _is_constant(name, changes, around, carried=_is_carried(name, changes))
        for name in _sources(names, changes)
    )


def _is_carried(name: str, changes: Changes) -> bool:
    """Tell whether a turn makes a register of what the turn before left in it."""
    made_of = changes.made_of.get(name, set())
    carried = name in changes.inherited and name in _sources(made_of, changes)
    return carried or name in changes.steps


def _is_constant(name: str, changes: Changes, around: Changes, *, carried: bool) -> bool:
    if name not in around.writers:
        return name not in around.steps and not carried
    made_of = _sources({name}, around)
    return all(
        part not in around.steps
        and (part == name or (part not in changes.steps and part not in changes.writers))
        and (part not in around.writers or bool(around.writers[part]))
        and not any(one.memory for one in around.writers.get(part, ()))
        and not _is_carried(part, around)
        for part in made_of
    )


def _kind(name: str, changes: Changes) -> str:
    """Return where a register comes from that is more than counted up or down."""
    loads = [
        {part for place in one.memory for part in (place.base, place.index)} - {""}
        for source in _sources({name}, changes)
        for one in changes.writers.get(source, ())
        if any(place.access != "write" for place in one.memory)
    ]
    if any(name in _sources(address, changes) for address in loads):
        return "chased"
    return "loaded" if loads else "computed"


def _sources(names: set[str], changes: Changes) -> set[str]:
    """Return all registers that these are made of, themselves included."""
    found, waiting = set(names), list(names)
    while waiting:
        new = changes.made_of.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found


def _made_of(one: Instruction) -> set[str]:
    """Return the registers that what an instruction writes is made of."""
    return set() if _is_zero(one) else {*one.reads, *one.merges}


def _is_zero(one: Instruction) -> bool:
    return one.mnemonic in _ZEROES and len(one.reads) == 1


def _bound(name: str, changes: Changes) -> float:
    """Return how many values a register may have, as far as what writes it says."""
    writers = changes.writers[name]
    return max((_values(one) for one in writers), default=math.inf) if writers else math.inf


def _values(one: Instruction) -> float:
    if one.mnemonic == "movzx":
        return 256.0 if one.code.endswith("RM8") else 65536.0
    if one.mnemonic == "and" and one.immediate is not None and one.immediate >= 0:
        return one.immediate + 1.0
    if one.mnemonic == "shr" and one.immediate is not None:
        width = _WIDTH.search(one.code)
        if width is not None:
            return float(2 ** max(int(width[1]) - one.immediate, 0))
    if _is_zero(one):
        return 1.0
    return math.inf


def _step(one: Instruction) -> float | None:
    """Return by how much an instruction counts its register up; None if it does something else."""
    if one.memory:
        return None
    if one.mnemonic in ("inc", "dec"):
        return 1.0 if one.mnemonic == "inc" else -1.0
    if one.mnemonic in ("add", "sub") and one.immediate is not None:
        return float(one.immediate if one.mnemonic == "add" else -one.immediate)
    if one.mnemonic == "lea" and len(one.reads) == 1 and one.reads == one.writes:
        return _displacement(one)
    return None


def _displacement(one: Instruction) -> float | None:
    """Return what ``lea`` adds to its register; None if it multiplies it."""
    address = re.fullmatch(r"\[\w+([+-])([0-9A-F]+)h?\]", one.operands[1])
    if address is None:
        return None
    return float(int(address[2], 16)) * (1 if address[1] == "+" else -1)
