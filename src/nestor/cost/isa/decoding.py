"""Machine code as what it does: the canonical form of x86-64 instructions.

Decoding is that of iced-x86. The form says nothing of where the code lies, so equal bytes are equal
instructions and each is worked out once. Registers go by their full-width names in lower case
(``al`` is ``rax``, ``xmm1`` is ``zmm1``).
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import iced_x86
from iced_x86 import OpAccess, OpKind, Register, RegisterExt, RflagsBits

from nestor.errors import NestorError

Access = Literal["read", "write", "read-write"]

_BITNESS: Final = 64
_CACHED: Final = 1 << 15
"""Instructions kept; real code repeats its own (115,000 blocks hold 128,000 different ones)."""


class DecodeError(NestorError):
    """Bytes that are not x86-64 code; ``offset`` is that of the instruction that fails."""

    def __init__(self, block: bytes, offset: int):
        self.offset = offset
        head = block[offset : offset + 15].hex(" ")
        super().__init__(
            f"The block of {len(block)} bytes is not x86-64 code at offset {offset} ({head}); check"
            " its bytes, or leave it out."
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """One access to memory: ``base + index * scale + displacement``.

    ``base`` and ``index`` are registers or empty; ``base`` is ``rip`` where the displacement counts
    from the end of the instruction. ``segment`` is ``fs`` or ``gs``, or empty where the segment
    begins at 0. ``size`` is in bytes, 0 where it depends on a register (``rep``) or is unknown.
    """

    base: str
    index: str
    scale: int
    displacement: int
    segment: str
    size: int
    access: Access


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with all that it reads and writes, implicit operands included.

    What is written only under a condition counts as read and written, for the old value may stay.
    """

    bytes: bytes
    code: str
    """Name of iced-x86's ``Code``: the encoding, which tells ``ADD_R32_RM32`` from others."""
    mnemonic: str
    """In lower case."""
    reads: tuple[str, ...]
    """Registers read, those of addresses included, in alphabetical order, each once."""
    writes: tuple[str, ...]
    """Registers written."""
    merges: tuple[str, ...]
    """General registers of which only 8 or 16 bits are written, so that the rest is kept: an
    input too on most CPUs."""
    memory: tuple[Memory, ...]
    """Accesses in iced-x86's order; address computations (``lea``) and prefetches are none."""
    flags_read: tuple[str, ...]
    flags_written: tuple[str, ...]
    """Flags changed, those with an undefined value afterwards included."""
    immediate: int | None
    """The first immediate operand, sign-extended where the instruction does so."""

    @property
    def length(self) -> int:
        """Bytes."""
        return len(self.bytes)

    @property
    def operands(self) -> tuple[str, ...]:
        """The explicit operands as text in Intel's syntax, addresses relative to the block's."""
        decoded = iced_x86.Decoder(_BITNESS, self.bytes).decode()
        formatter = _formatter()
        return tuple(
            formatter.format_operand(decoded, index)
            for index in range(formatter.operand_count(decoded))
        )

    @property
    def text(self) -> str:
        """The instruction in Intel's syntax."""
        return str(_formatter().format(iced_x86.Decoder(_BITNESS, self.bytes).decode()))


def decode(block: bytes) -> tuple[Instruction, ...]:
    """Return the instructions of ``block``; their lengths add up to the block's.

    :raises DecodeError: at the first bytes that are not a complete instruction.
    """
    result = []
    offset = 0
    for instruction in raw(block):
        end = offset + instruction.len
        result.append(_canonical(block[offset:end]))
        offset = end
    return tuple(result)


def decode_or_nothing(block: bytes) -> tuple[Instruction, ...]:
    """Return the instructions of ``block``; none if it is not x86-64 code."""
    try:
        return decode(block)
    except DecodeError:
        return ()


def sequence(block: bytes) -> tuple[int, ...]:
    """Return the opcode sequence of ``block``: iced-x86's ``Code`` of each instruction.

    :raises DecodeError: at the first bytes that are not a complete instruction.
    """
    return tuple(instruction.code for instruction in raw(block))


def raw(block: bytes) -> Iterator[iced_x86.Instruction]:
    """Yield iced-x86's own instructions, as if the block lay at address 0.

    :raises DecodeError: at the first bytes that are not a complete instruction.
    """
    offset = 0
    for instruction in iced_x86.Decoder(_BITNESS, block):
        if instruction.is_invalid:
            raise DecodeError(block, offset)
        offset += instruction.len
        yield instruction


def _names(enumeration: object) -> dict[int, str]:
    """Return the names of one of iced-x86's enumerations, which are modules of integers."""
    return {
        value: name
        for name, value in vars(enumeration).items()
        if isinstance(value, int) and not name.startswith("_")
    }


_CODES: Final = _names(iced_x86.Code)
_MNEMONICS: Final = {value: name.lower() for value, name in _names(iced_x86.Mnemonic).items()}
_REGISTERS: Final = {
    value: "" if value == Register.NONE else name.lower()
    for value, name in _names(Register).items()
}
_FULL: Final = {
    register: _REGISTERS[RegisterExt.full_register(register)]  # type: ignore[arg-type]
    for register in _REGISTERS
}
_SEGMENTS: Final = {Register.FS: "fs", Register.GS: "gs"}
_FLAGS: Final = {
    name: value for value, name in sorted(_names(RflagsBits).items()) if value != RflagsBits.NONE
}
_READING: Final = frozenset(
    {
        OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE,
        OpAccess.COND_WRITE,
    }
)  # fmt: skip
_WRITING: Final = frozenset(
    {OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE}
)
_STORING_ONLY: Final = frozenset({OpAccess.WRITE, OpAccess.COND_WRITE})
_IMMEDIATES: Final = frozenset(
    value for value, name in _names(OpKind).items() if name.startswith("IMMEDIATE")
)
_SIGN: Final = 1 << 63


@functools.cache
def _formatter() -> iced_x86.Formatter:
    return iced_x86.Formatter(iced_x86.FormatterSyntax.INTEL)


@functools.cache
def _information() -> iced_x86.InstructionInfoFactory:
    return iced_x86.InstructionInfoFactory()


@functools.lru_cache(_CACHED)
def _canonical(code: bytes) -> Instruction:
    """Return the canonical form of one instruction."""
    decoded = iced_x86.Decoder(_BITNESS, code).decode()
    information = _information().info(decoded)
    reads, writes, merges = set(), set(), set()
    for used in information.used_registers():
        name = _FULL[used.register]
        if used.access in _READING:
            reads.add(name)
        if used.access in _WRITING:
            writes.add(name)
            if RegisterExt.is_gpr8(used.register) or RegisterExt.is_gpr16(used.register):
                merges.add(name)
    return Instruction(
        bytes=code,
        code=_CODES[decoded.code],
        mnemonic=_MNEMONICS[decoded.mnemonic],
        reads=tuple(sorted(reads)),
        writes=tuple(sorted(writes)),
        merges=tuple(sorted(merges)),
        memory=tuple(
            _memory(decoded, used)
            for used in information.used_memory()
            if used.access in _READING or used.access in _WRITING
        ),
        flags_read=_flags(decoded.rflags_read),
        flags_written=_flags(decoded.rflags_modified),
        immediate=_immediate(decoded),
    )


def _memory(decoded: iced_x86.Instruction, used: iced_x86.UsedMemory) -> Memory:
    displacement = _signed(used.displacement)
    base = _FULL[used.base]
    # Iced gives the address itself where the operand is relative to the instruction pointer.
    if decoded.is_ip_rel_memory_operand and used.base == Register.NONE:
        base, displacement = "rip", displacement - decoded.next_ip
    if used.access in _STORING_ONLY:
        access: Access = "write"
    else:
        access = "read-write" if used.access in _WRITING else "read"
    return Memory(
        base=base,
        index=_FULL[used.index],
        scale=used.scale,
        displacement=displacement,
        segment=_SEGMENTS.get(used.segment, ""),
        size=iced_x86.MemorySizeExt.size(used.memory_size),
        access=access,
    )


def _flags(bits: int) -> tuple[str, ...]:
    return tuple(name for name, bit in _FLAGS.items() if bits & bit) if bits else ()


def _immediate(decoded: iced_x86.Instruction) -> int | None:
    for index in range(decoded.op_count):
        if decoded.op_kind(index) in _IMMEDIATES:
            return _signed(decoded.immediate(index))
    return None


def _signed(value: int) -> int:
    return value - 2 * _SIGN if value >= _SIGN else value
