"""Blocks that show what one instruction costs: alone, several copies, and a chain of them.

- *alone*: one copy. Repeated, it waits for itself if it reads what it writes.
- *copies*: four copies that write different registers, which shows how many run at a time.
- *chain*: one copy that reads its own result, where *alone* does not.

Some instructions need others around them to do what they are for: a divisor that is not 0, a mask
that lets a gather load, values on the x87 stack.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from iced_x86 import CpuidFeature, Decoder, Instruction, OpCodeInfo, RegisterExt

from nestor.cost.isa.refusals import name_of
from nestor.cost.sweep.examples import (
    CODES,
    Operands,
    Prefix,
    example,
    prefixes,
    takes_memory,
    usable_codes,
)

Pattern = Literal["alone", "copies", "chain"]
COPIES: Final = 4

_X87: Final = frozenset(
    value
    for name, value in vars(CpuidFeature).items()
    if isinstance(value, int) and name.startswith("FPU")
)
_FLD1: Final = bytes.fromhex("d9e8")
_FSTP: Final = bytes.fromhex("ddd8")  # fstp st0: takes a value off the stack
_ZERO_RDX: Final = bytes.fromhex("31d2")  # xor edx, edx
_SMALL_COUNT: Final = bytes.fromhex("b910000000")  # mov ecx, 16
_SMALL_RAX: Final = bytes.fromhex("b855000000")  # mov eax, 0x55
_SMALL_DIVISOR: Final = bytes.fromhex("41b807000000")  # mov r8d, 7
_ALL_ONES_K1: Final = bytes.fromhex("c5f446c9")  # kxnorw k1, k1, k1
_ALL_ONES_XMM13: Final = bytes.fromhex("c4411176ed")  # vpcmpeqd xmm13, xmm13, xmm13
_ALL_ONES_YMM13: Final = bytes.fromhex("c4411576ed")  # vpcmpeqd ymm13, ymm13, ymm13


@dataclass(frozen=True)
class SweepBlock:
    """One block of the sweep."""

    block: bytes
    opcode: str
    """The instruction that it is about: a name of iced-x86's ``Code``, then perhaps a prefix."""
    pattern: Pattern
    memory: bool
    """Whether that instruction has a memory operand."""


def sweep(left_out: Collection[str] = ()) -> Iterator[SweepBlock]:
    """Yield the blocks of every instruction that the decoder knows and a block may hold.

    :param left_out: opcodes to leave out, as :attr:`SweepBlock.opcode` names them.
    """
    for code in usable_codes():
        prefixed: tuple[Prefix, ...] = ("", *prefixes(code))
        for prefix in prefixed:
            if f"{code} {prefix}".strip() in left_out:
                continue
            always = takes_memory(code)
            for memory in (False, True) if always is None else (always,):
                yield from _of(code, memory, prefix)


def _of(code: str, memory: bool, prefix: Prefix) -> Iterator[SweepBlock]:
    found: set[bytes] = set()
    for pattern, copies in _PATTERNS:
        chained = pattern == "chain"
        parts = [example(code, Operands(copy, memory, chained, prefix)) for copy in copies]
        if None in parts:
            continue
        block = b"".join(_in_context(code, part) for part in parts if part is not None)
        if block not in found:
            found.add(block)
            yield SweepBlock(block, f"{code} {prefix}".strip(), pattern, memory)


_PATTERNS: Final[tuple[tuple[Pattern, Sequence[int]], ...]] = (
    ("alone", (0,)),
    ("copies", range(COPIES)),
    ("chain", (0,)),
)


def _in_context(code: str, example: bytes) -> bytes:
    """Return an instruction with what it needs around it."""
    instruction = Decoder(64, example).decode()
    name = name_of(instruction)
    if not _X87.isdisjoint(instruction.cpuid_features()):
        left = 2 - instruction.fpu_stack_increment_info().increment
        return 2 * _FLD1 + example + max(0, left) * _FSTP
    if instruction.has_rep_prefix:
        return _SMALL_COUNT + example
    if name in ("div", "idiv"):
        narrow = code.endswith("RM8")
        return (_SMALL_RAX + _SMALL_DIVISOR if narrow else _ZERO_RDX) + example
    if OpCodeInfo(CODES[code]).require_op_mask_register:
        return _ALL_ONES_K1 + example
    if "gather" in name:
        return _gather_mask(instruction) + example
    return example


def _gather_mask(instruction: Instruction) -> bytes:
    """Return what lets a gather of AVX2 load all elements: its third operand is the mask."""
    wide = RegisterExt.is_ymm(instruction.op2_register)
    return _ALL_ONES_YMM13 if wide else _ALL_ONES_XMM13
