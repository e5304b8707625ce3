"""What a conditional branch compares, and where that comes from: read off the code before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nestor.cost.isa.decoding import Instruction

_KINDS: Final = (
    ("cmp",),
    ("test",),
    ("sub", "add", "dec", "inc"),
    ("and", "or", "xor"),
    ("shr", "shl", "sar"),
    ("bt",),
    ("ucomiss", "ucomisd", "comisd", "comiss", "vucomisd", "vucomiss", "vcomisd", "vcomiss"),
)
_TESTS: Final = (
    ("je", "jne"),
    ("jl", "jge", "jle", "jg"),
    ("jb", "jae", "jbe", "ja"),
    ("js", "jns"),
    ("jo", "jno"),
    ("jp", "jnp"),
)
_SHIFTS: Final = ("shr", "shl", "sar", "shrx", "shlx", "bzhi", "rol", "ror")
_STEPS: Final = ("add", "sub", "inc", "dec", "lea")
_ZEROES: Final = ("xor", "pxor", "xorps")
_SMALL: Final = 256
_FAR: Final = 20


@dataclass
class Condition:
    """What the flags of a branch are made of."""

    test: int = len(_TESTS)
    """Which flags decide, as a number of ``_TESTS``."""
    setter: int = len(_KINDS)
    """What sets them, as a number of ``_KINDS``; the last for others and for what is not seen."""
    distance: int = _FAR
    """Instructions between that and the branch."""
    immediate: int = -1
    """With what it compares: -1 no constant, 0 zero, 1 one of up to 256, 2 a larger one."""
    width: int = 0
    """Bytes of its operand in memory."""
    vector: int = 0
    """Whether it reads a vector register."""
    loads: int = 0
    """Loads of the branch's own block that the condition hangs on."""
    earlier_loads: int = 0
    """Those of the blocks before."""
    length: int = 0
    """Instructions that it hangs on."""
    steps: int = 0
    """Whether a register that is counted up or down is among them."""
    shifts: int = 0
    """Whether a shift or a rotation is among them."""


def condition_of(blocks: Sequence[Sequence[Instruction]]) -> Condition:
    """Return the condition of the branch that ends the last of ``blocks``.

    :param blocks: code that runs before it, in order, and its own block.
    """
    found = Condition()
    code = [(number, one) for number, block in enumerate(blocks) for one in block]
    if not code:
        return found
    branch = code[-1][1]
    found.test = _number(_TESTS, branch.mnemonic)
    flags, needed = set(branch.flags_read), set(branch.reads)
    set_by_none = True
    for distance, (number, one) in enumerate(reversed(code[:-1])):
        if set_by_none and flags & set(one.flags_written):
            set_by_none = False
            _describe(found, one, distance)
            needed |= {*one.reads, *one.merges}
        elif written := needed & set(one.writes):
            found.steps |= one.mnemonic in _STEPS and bool(written & set(one.reads))
            found.shifts |= one.mnemonic in _SHIFTS
            if not written & set(one.merges):
                needed -= written
            if not (one.mnemonic in _ZEROES and len(one.reads) == 1):
                needed |= {*one.reads, *one.merges}
        else:
            continue
        found.length += 1
        if any(place.access != "write" for place in one.memory):
            if number == len(blocks) - 1:
                found.loads += 1
            else:
                found.earlier_loads += 1
    return found


def _describe(found: Condition, setter: Instruction, distance: int) -> None:
    found.setter, found.distance = _number(_KINDS, setter.mnemonic), distance
    if setter.immediate is not None:
        size = abs(setter.immediate)
        found.immediate = 0 if size == 0 else 1 if size <= _SMALL else 2
    found.width = setter.memory[0].size if setter.memory else 0
    found.vector = int(any(name.startswith(("xmm", "ymm", "zmm")) for name in setter.reads))


def _number(groups: Sequence[Sequence[str]], name: str) -> int:
    """Return the number of the group that has ``name``; their number if none has it."""
    return next((number for number, group in enumerate(groups) if name in group), len(groups))
