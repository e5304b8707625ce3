"""Where an instruction's operands are encoded, what they are and how they are accessed.

One set of small numbers for each question, shared with ``native/cost/Decode.h``.
"""

from typing import Any, Final

from iced_x86 import (
    EncodingKind,
    Instruction,
    MemorySizeExt,
    OpAccess,
    OpCodeOperandKind,
    OpKind,
    Register,
    RegisterExt,
    RflagsBits,
)

READS, WRITES = 1, 2
ACCESS: Final = {
    OpAccess.NONE: 0,
    OpAccess.READ: READS,
    OpAccess.COND_READ: READS,
    OpAccess.WRITE: WRITES,
    OpAccess.COND_WRITE: READS | WRITES,
    OpAccess.READ_WRITE: READS | WRITES,
    OpAccess.READ_COND_WRITE: READS | WRITES,
    OpAccess.NO_MEM_ACCESS: 0,
}

KIND_NAMES: Final = {
    getattr(OpCodeOperandKind, name): name for name in dir(OpCodeOperandKind) if name.isupper()
}
KIND_NAMES.update(
    {
        getattr(OpCodeOperandKind, name): name
        for name in dir(OpCodeOperandKind)
        if name[0].isupper() and name not in ("OpCodeOperandKind",)
    }
)
_CLASSES: Final = {
    "R8": 0, "R16": 1, "R32": 2, "R64": 3, "XMM": 4, "YMM": 4, "ZMM": 4, "XMMP3": 4, "ZMMP3": 4,
    "MM": 5, "STI": 6, "K": 7, "KP1": 7,
}  # fmt: skip
_PLACES: Final = {"REG": 1, "RM": 2, "VVVV": 3, "OPCODE": 4, "IS4": 5, "IS5": 5}
_FIXED: Final = {"AL": 0, "AX": 0, "EAX": 0, "RAX": 0, "CL": 1, "DX": 2, "ST0": 48}
STAND_IN: Final[dict[int, Any]] = {
    0: Register.R12L, 1: Register.R12W, 2: Register.R12D, 3: Register.R12, 4: Register.XMM10,
    5: Register.MM3, 6: Register.ST3, 7: Register.K3,
}  # fmt: skip
"""The first of the registers that stand for encoded operands while implicit ones are looked up."""

_CARRY: Final = RflagsBits.CF
_OVERFLOW: Final = RflagsBits.OF
_OTHERS: Final = RflagsBits.ZF | RflagsBits.SF | RflagsBits.PF | RflagsBits.AF


def native_register(register: Any) -> int | None:
    """Return the number that the native decoder gives to an iced-x86 register, or None."""
    if register == Register.NONE:
        return None
    full = RegisterExt.full_register(register)
    if Register.RAX <= full <= Register.R15:
        return int(full - Register.RAX)
    if Register.ZMM0 <= full <= Register.ZMM31:
        return int(16 + full - Register.ZMM0)
    if Register.MM0 <= full <= Register.MM7:
        return int(48 + full - Register.MM0)
    if Register.ST0 <= full <= Register.ST7:
        return int(48 + full - Register.ST0)
    if Register.K0 <= full <= Register.K7:
        return int(56 + full - Register.K0)
    return None


def operand(instruction: Instruction, k: int, access: int) -> tuple[int, int, int]:
    """Return where operand ``k`` is encoded, its register class (or number) and its access."""
    kind = KIND_NAMES[instruction.op_code().op_kind(k)]
    if instruction.op_kind(k) == OpKind.MEMORY:
        return 7, 0, access
    if kind in _FIXED:
        if kind in ("AL", "AX") and access & WRITES:
            access |= READS
        return 6, _FIXED[kind], access
    if kind.startswith(("IMM", "BR", "XBEGIN", "FARBR")):
        return 8, 0, 0
    cls, _, place = kind.partition("_")
    if cls in _CLASSES and (place in _PLACES or place in ("OR_MEM", "REG_MEM", "OR_MEM_MPX")):
        where = 2 if place.startswith("OR_MEM") or cls == "STI" else _PLACES.get(place, 1)
        return where, _CLASSES[cls], access
    return 9, 0, access


def width_of(instruction: Instruction) -> int:
    """Return the bytes of the first operand, at most 8."""
    if instruction.op_kind(0) == OpKind.REGISTER:
        return min(8, RegisterExt.size(instruction.op_register(0)) or 8)
    return min(8, MemorySizeExt.size(instruction.memory_size) or 8)


def implicit_memory(instruction: Instruction, mnemonic: str) -> int:
    """Return which memory is accessed without a ModRM operand: see ``implicitMemory``."""
    kinds = {instruction.op_kind(k) for k in range(instruction.op_count)}
    if any(KIND_NAMES[k] == "MEM_OFFS" for k in instruction.op_code().op_kinds()):
        return 5
    if mnemonic in ("push", "pushfq", "pushf") and OpKind.MEMORY not in kinds:
        return 1
    if mnemonic in ("pop", "popfq", "popf") and OpKind.MEMORY not in kinds:
        return 2
    if kinds & {OpKind.MEMORY_SEG_RSI, OpKind.MEMORY_SEG_ESI}:
        return 4
    if kinds & {OpKind.MEMORY_ESRDI, OpKind.MEMORY_ESEDI}:
        return 3
    return 6 if mnemonic == "leave" else 0


def immediate_bytes(kind: str, instruction: Instruction) -> int:
    """Return how many bytes an operand of this kind takes at the end of the instruction."""
    if kind.startswith("IMM8") and kind != "IMM8_CONST_1":
        return 1
    if kind.startswith("IMM16"):
        return 2
    if kind.startswith("IMM32"):
        return 4
    if kind.startswith("IMM64"):
        return 8
    if kind == "MEM_OFFS":
        return instruction.memory_displ_size
    if kind.startswith(("BR", "XBEGIN")):
        return int(kind[-1])
    return 1 if kind.endswith(("IS4", "IS5")) else 0


def flags(bits: int) -> int:
    """Return which of the groups carry (1), overflow (2), others (4) iced-x86's flags touch."""
    return (bits & _CARRY != 0) | (bits & _OVERFLOW != 0) << 1 | (bits & _OTHERS != 0) << 2


def tuple_size(instruction: Instruction) -> int:
    """Return what an EVEX displacement of one byte is multiplied by; 0 if it is not."""
    size = MemorySizeExt.size(instruction.memory_size)
    return size if instruction.encoding == EncodingKind.EVEX else 0
