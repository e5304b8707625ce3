"""Code whose passes hand nothing to each other through memory.

A model of blocks answers for a block that repeats without end, so a place that a pass reads and
then writes, such as a counter or a spilled register, makes each pass wait for the store of the one
before. In a program other code runs in between, and the store is long done. So from its first write
on, such a place is put elsewhere: a pass then reads what no pass writes.
"""

from collections.abc import Sequence
from typing import Any, Final

import iced_x86
from iced_x86 import Code, Instruction, OpAccess, OpKind, Register

from nestor.cost.isa.decoding import raw

_BITNESS: Final = 64
_ELSEWHERE: Final = 17 * 64
"""Bytes: neither a line nor a page that the code is likely to use."""
_MOVES: Final = {
    8: ("R{}", Code.MOV_R64_RM64, Code.MOV_RM64_R64),
    4: ("R{}D", Code.MOV_R32_RM32, Code.MOV_RM32_R32),
    2: ("R{}W", Code.MOV_R16_RM16, Code.MOV_RM16_R16),
    1: ("R{}L", Code.MOV_R8_RM8, Code.MOV_RM8_R8),
}
"""By size in bytes: a register's name by its number, how it is loaded, and how it is stored."""
_Place = tuple[Any, ...]


def passes_apart(code: bytes) -> bytes:
    """Return the code as one pass after other code runs it; itself if nothing is handed on.

    :raises DecodeError: if the bytes are no code.
    """
    instructions = list(raw(code))
    info = iced_x86.InstructionInfoFactory()
    read, moved = set[_Place](), set[_Place]()
    pieces: list[Instruction] = []
    for one in instructions:
        place = _place(one)
        if place is None:
            pieces.append(one)
            continue
        accesses = {memory.access for memory in info.info(one).used_memory()}
        own = [one]
        if OpAccess.READ_WRITE in accesses and place not in moved:
            own = _split(one, instructions)
            moved |= {place} if len(own) > 1 else set()
        elif OpAccess.WRITE in accesses and place in read:
            moved.add(place)
        elif OpAccess.READ in accesses and place not in moved:
            read.add(place)
        if place in moved:
            own[-1] = own[-1].copy()
            own[-1].memory_displacement = (one.memory_displacement + _ELSEWHERE) & (2**64 - 1)
            own[-1].memory_displ_size = 8
        pieces += own
    return _encoded(pieces) if moved else code


def _place(one: Instruction) -> _Place | None:
    """Return what says which memory an instruction names; None if it names none."""
    if not any(one.op_kind(number) == OpKind.MEMORY for number in range(one.op_count)):
        return None
    return (
        one.memory_base, one.memory_index, one.memory_index_scale, one.memory_displacement,
        one.memory_segment,
    )  # fmt: skip


def _split(one: Instruction, all_of_them: Sequence[Instruction]) -> list[Instruction]:
    """Return an instruction that changes memory as a load, its work on a register, and a store."""
    size = iced_x86.MemorySizeExt.size(one.memory_size)
    number = _unused(all_of_them)
    if number is None or size not in _MOVES or one.op0_kind != OpKind.MEMORY or one.has_lock_prefix:
        return [one]
    name, load, store = _MOVES[size]
    register = getattr(Register, name.format(number))
    first = one.copy()  # all that names the place, whatever else the instruction does
    signed = one.memory_displacement - (one.memory_displacement >> 63 << 64)
    memory = iced_x86.MemoryOperand(
        one.memory_base, one.memory_index, one.memory_index_scale, signed, one.memory_displ_size,
        seg=one.segment_prefix,
    )  # fmt: skip
    first.op0_kind = OpKind.REGISTER
    first.op0_register = register
    return [
        Instruction.create_reg_mem(load, register, memory),
        first,
        Instruction.create_mem_reg(store, memory, register),
    ]


def _unused(instructions: Sequence[Instruction]) -> int | None:
    """Return the number of a register from 8 to 15 that no instruction names."""
    used = {
        iced_x86.RegisterExt.full_register(register.register)
        for one in instructions
        for register in iced_x86.InstructionInfoFactory().info(one).used_registers()
    }
    free = [n for n in range(8, 16) if getattr(Register, f"R{n}") not in used]
    return free[0] if free else None


def _encoded(pieces: Sequence[Instruction]) -> bytes:
    encoder, place = iced_x86.Encoder(_BITNESS), 0
    for piece in pieces:
        place += encoder.encode(piece, place)
    return encoder.take_buffer()
