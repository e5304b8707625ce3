"""One example of each instruction encoding that a block may hold.

An example is encoded by iced-x86 from the encoding's own description of its operands. Registers are
chosen so that no two operands share one, unless the caller wants a chain.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import iced_x86
from iced_x86 import (
    Code,
    Decoder,
    DecoderOptions,
    Encoder,
    EncodingKind,
    Instruction,
    OpCodeInfo,
    OpKind,
    Register,
)
from iced_x86 import OpCodeOperandKind as Kind

from nestor.cost.isa.refusals import instruction_refusal

BASE: Final = Register.RDI
"""The address register of memory operands; the measuring harness lets it point to a line."""
_STEP: Final = 64
"""Bytes between the memory operands of copies."""
_IMMEDIATE: Final = 3


Prefix = Literal["", "lock", "rep"]
"""What makes another operation of an instruction: a locked access, or a repeated one."""


@dataclass(frozen=True)
class Operands:
    """Which registers an example takes."""

    copy: int = 0
    """Moves what is written to another register, and memory to another line; 0 to 3."""
    memory: bool = False
    """Take memory where an operand may be a register or memory."""
    chained: bool = False
    """Read what the copy before it wrote, in the first operand that can be the same register."""
    prefix: Prefix = ""


# First register of each kind of operand; an operand that is written takes another one by copy.
_FILES: Final = {
    "R8_": Register.R8L - 8, "R16_": Register.AX, "R32_": Register.EAX, "R64_": Register.RAX,
    "XMM_": Register.XMM0, "YMM_": Register.YMM0, "ZMM_": Register.ZMM0, "MM_": Register.MM0,
    "K_": Register.K0,
}  # fmt: skip
_SMALL: Final = (Register.MM0, Register.K0)
"""Files with eight registers."""
_FIXED: Final[dict[int, Any]] = {
    Kind.AL: Register.AL, Kind.AX: Register.AX, Kind.EAX: Register.EAX, Kind.RAX: Register.RAX,
    Kind.CL: Register.CL, Kind.DX: Register.DX, Kind.ST0: Register.ST0,
    Kind.STI_OPCODE: Register.ST1, Kind.SEG_REG: Register.DS, Kind.KP1_REG: Register.K4,
    Kind.ES: Register.ES, Kind.CS: Register.CS, Kind.SS: Register.SS, Kind.DS: Register.DS,
    Kind.FS: Register.FS, Kind.GS: Register.GS,
    Kind.XMMP3_VVVV: Register.XMM12, Kind.ZMMP3_VVVV: Register.ZMM12,
}  # fmt: skip
_INDEXES: Final[dict[int, Any]] = {
    Kind.MEM_VSIB32X: Register.XMM14, Kind.MEM_VSIB64X: Register.XMM14,
    Kind.MEM_VSIB32Y: Register.YMM14, Kind.MEM_VSIB64Y: Register.YMM14,
    Kind.MEM_VSIB32Z: Register.ZMM14, Kind.MEM_VSIB64Z: Register.ZMM14,
}  # fmt: skip
_ALWAYS_MEMORY: Final = frozenset({Kind.MEM, Kind.MEM_MIB, Kind.SIBMEM, *_INDEXES})
_IMPLIED: Final[dict[int, Any]] = {
    Kind.SEG_RSI: OpKind.MEMORY_SEG_RSI, Kind.SEG_RDI: OpKind.MEMORY_SEG_RDI,
    Kind.ES_RDI: OpKind.MEMORY_ESRDI,
}  # fmt: skip
_IMMEDIATES: Final[dict[int, Any]] = {
    Kind.IMM8: OpKind.IMMEDIATE8, Kind.IMM16: OpKind.IMMEDIATE16, Kind.IMM32: OpKind.IMMEDIATE32,
    Kind.IMM64: OpKind.IMMEDIATE64, Kind.IMM8SEX16: OpKind.IMMEDIATE8TO16,
    Kind.IMM8SEX32: OpKind.IMMEDIATE8TO32, Kind.IMM8SEX64: OpKind.IMMEDIATE8TO64,
    Kind.IMM32SEX64: OpKind.IMMEDIATE32TO64, Kind.IMM8_CONST_1: OpKind.IMMEDIATE8,
    Kind.IMM4_M2Z: OpKind.IMMEDIATE8,
}  # fmt: skip
_NAMES: Final = {
    value: name for name, value in vars(Kind).items() if isinstance(value, int) and name[0] != "_"
}
CODES: Final[dict[str, Any]] = {
    name: value
    for name, value in vars(Code).items()
    if isinstance(value, int) and not name.startswith("_")
}
"""Name of each of iced-x86's instruction encodings, and its number."""


def usable_codes() -> Iterator[str]:
    """Yield the names of the encodings of 64-bit code that a block may hold."""
    for name, code in CODES.items():
        facts = OpCodeInfo(code)
        plain = facts.is_instruction and facts.mode64 and facts.encoding != EncodingKind.MVEX
        if not plain or facts.decoder_option != DecoderOptions.NONE:
            continue
        bare = Instruction()
        bare.code = code
        if not instruction_refusal(bare):
            yield name


def takes_memory(code: str) -> bool | None:
    """Return whether an encoding has a memory operand: None if a register may stand for it."""
    kinds = OpCodeInfo(CODES[code]).op_kinds()
    if any(kind in _ALWAYS_MEMORY for kind in kinds):
        return True
    return None if any("_OR_MEM" in _NAMES[kind] for kind in kinds) else False


def prefixes(code: str) -> tuple[Prefix, ...]:
    """Return the prefixes that make another operation of an encoding's instruction."""
    facts = OpCodeInfo(CODES[code])
    bare = Instruction()
    bare.code = CODES[code]
    if facts.can_use_lock_prefix:
        return ("lock",)
    return ("rep",) if facts.can_use_rep_prefix and bare.is_string_instruction else ()


def example(code: str, operands: Operands) -> bytes | None:
    """Return the bytes of an instruction; None if this encoding cannot be written so.

    :param code: a name of :data:`CODES`.
    """
    facts = OpCodeInfo(CODES[code])
    instruction = Instruction()
    instruction.code = CODES[code]
    kinds: list[int] = list(facts.op_kinds())
    if not all(_set(instruction, kinds, place, operands) for place in range(len(kinds))):
        return None
    if facts.require_op_mask_register:
        instruction.op_mask = Register.K1
    if operands.prefix and operands.prefix not in prefixes(code):
        return None
    instruction.has_lock_prefix = operands.prefix == "lock"
    instruction.has_rep_prefix = operands.prefix == "rep"
    if operands.chained and not _chain(instruction):
        return None
    return _encoded(instruction)


def _set(instruction: Instruction, kinds: list[int], place: int, operands: Operands) -> bool:
    kind = kinds[place]
    name = _NAMES[kind]
    if kind in _ALWAYS_MEMORY or ("_OR_MEM" in name and operands.memory):
        instruction.set_op_kind(place, OpKind.MEMORY)
        instruction.memory_base = BASE
        instruction.memory_index = _INDEXES.get(kind, Register.NONE)
        instruction.memory_displacement = _STEP * operands.copy
        instruction.memory_displ_size = 1 if operands.copy else 0
        return True
    if kind in _IMPLIED:
        instruction.set_op_kind(place, _IMPLIED[kind])
        return True
    if kind in _IMMEDIATES:
        instruction.set_op_kind(place, _IMMEDIATES[kind])
        instruction.set_immediate_u64(place, 1 if kind == Kind.IMM8_CONST_1 else _IMMEDIATE)
        return True
    register = _FIXED.get(kind)
    if register is None:
        register = _register(name, place, operands)
    if register is None:
        return False
    instruction.set_op_kind(place, OpKind.REGISTER)
    instruction.set_op_register(place, register)
    return True


def _register(name: str, place: int, operands: Operands) -> Any:
    """Return a register of its own for an operand; None if the file is not known here."""
    for start, first in _FILES.items():
        if name.startswith(start):
            if first in _SMALL:  # 0 is no mask
                return int(first) + (1 + operands.copy if place == 0 else 4 + place)
            return int(first) + (8 + operands.copy if place == 0 else 11 + place)
    return None


def _chain(instruction: Instruction) -> bool:
    """Let the first operand be read too, if it is only written; return whether that can be."""
    information = iced_x86.InstructionInfoFactory().info(instruction)
    registers = [
        k for k in range(instruction.op_count) if instruction.op_kind(k) == OpKind.REGISTER
    ]
    if not registers or registers[0] != 0:
        return False
    if information.op_access(0) != iced_x86.OpAccess.WRITE:
        return False
    written = instruction.op_register(0)
    for place in registers[1:]:
        same = _same_file(written, instruction.op_register(place))
        if same is not None:
            instruction.set_op_register(place, same)
            return True
    return False


def _same_file(written: int, read: int) -> Any:
    """Return the register of the file and width of ``read`` with the number of ``written``."""
    number = iced_x86.RegisterExt.number(written)  # type: ignore[arg-type]
    for files in (
        (Register.AX, Register.EAX, Register.RAX), (Register.XMM0, Register.YMM0, Register.ZMM0),
        (Register.MM0,), (Register.K0,),
    ):  # fmt: skip
        size = (
            8 if files[0] in _SMALL else 16 if len(files) == 3 and files[0] == Register.AX else 32
        )
        ranges = [range(first, first + size) for first in files]
        if any(written in one for one in ranges):
            return next((one.start + number for one in ranges if read in one), None)
    return None


def _encoded(instruction: Instruction) -> bytes | None:
    """Return the bytes, if they decode to what was meant."""
    encoder = Encoder(64)
    try:
        encoder.encode(instruction, 0)
    except ValueError:
        return None
    code = encoder.take_buffer()
    decoded = Decoder(64, code).decode()
    return code if decoded.code == instruction.code and decoded.len == len(code) else None
