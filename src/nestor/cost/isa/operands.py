"""Where an instruction's operands are encoded, what they are and how they are accessed.

The answers are the numbers of :mod:`nestor.cost.isa.template_layout`.
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

from nestor.cost.isa.template_layout import (
    Access,
    ImplicitMemory,
    NativeRegister,
    Place,
    RegisterClass,
)

_NEITHER, _READS, _WRITES = Access(0), Access.READS, Access.WRITES
ACCESS: Final = {
    OpAccess.NONE: _NEITHER,
    OpAccess.READ: _READS,
    OpAccess.COND_READ: _READS,
    OpAccess.WRITE: _WRITES,
    OpAccess.COND_WRITE: _READS | _WRITES,
    OpAccess.READ_WRITE: _READS | _WRITES,
    OpAccess.READ_COND_WRITE: _READS | _WRITES,
    OpAccess.NO_MEM_ACCESS: _NEITHER,
}
"""How iced-x86's kinds of access count: what is written under a condition is read, too."""

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
    "R8": RegisterClass.GENERAL8,
    "R16": RegisterClass.GENERAL16,
    "R32": RegisterClass.GENERAL32,
    "R64": RegisterClass.GENERAL64,
    **dict.fromkeys(("XMM", "YMM", "ZMM", "XMMP3", "ZMMP3"), RegisterClass.VECTOR_CLASS),
    "MM": RegisterClass.MMX_CLASS,
    "STI": RegisterClass.X87_CLASS,
    "K": RegisterClass.MASK_CLASS,
    "KP1": RegisterClass.MASK_CLASS,
}
_PLACES: Final = {
    "REG": Place.REG,
    "RM": Place.RM,
    "VVVV": Place.VVVV,
    "OPCODE": Place.OPCODE_FIELD,
    "IS4": Place.IS4,
    "IS5": Place.IS4,
}
_FIXED: Final = {
    **dict.fromkeys(("AL", "AX", "EAX", "RAX"), 0),
    "CL": 1,
    "DX": 2,
    "ST0": int(NativeRegister.STACK),
}
STAND_IN: Final[dict[int, Any]] = {
    RegisterClass.GENERAL8: Register.R12L,
    RegisterClass.GENERAL16: Register.R12W,
    RegisterClass.GENERAL32: Register.R12D,
    RegisterClass.GENERAL64: Register.R12,
    RegisterClass.VECTOR_CLASS: Register.XMM10,
    RegisterClass.MMX_CLASS: Register.MM3,
    RegisterClass.X87_CLASS: Register.ST3,
    RegisterClass.MASK_CLASS: Register.K3,
}
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
        return int(NativeRegister.VECTOR + full - Register.ZMM0)
    if Register.MM0 <= full <= Register.MM7:
        return int(NativeRegister.STACK + full - Register.MM0)
    if Register.ST0 <= full <= Register.ST7:
        return int(NativeRegister.STACK + full - Register.ST0)
    if Register.K0 <= full <= Register.K7:
        return int(NativeRegister.MASK + full - Register.K0)
    return None


def operand(instruction: Instruction, k: int, access: int) -> tuple[Place, int, int]:
    """Return where operand ``k`` is encoded, its register class (or number) and its access."""
    kind = KIND_NAMES[instruction.op_code().op_kind(k)]
    if instruction.op_kind(k) == OpKind.MEMORY:
        return Place.IN_MEMORY, 0, access
    if kind in _FIXED:
        if kind in ("AL", "AX") and access & Access.WRITES:
            access |= Access.READS
        return Place.FIXED, _FIXED[kind], access
    if kind.startswith(("IMM", "BR", "XBEGIN", "FARBR")):
        return Place.IN_IMMEDIATE, 0, 0
    cls, _, place = kind.partition("_")
    if cls in _CLASSES and (place in _PLACES or place in ("OR_MEM", "REG_MEM", "OR_MEM_MPX")):
        in_rm = place.startswith("OR_MEM") or cls == "STI"
        where = Place.RM if in_rm else _PLACES.get(place, Place.REG)
        return where, _CLASSES[cls], access
    return Place.ELSEWHERE, 0, access


def width_of(instruction: Instruction) -> int:
    """Return the bytes of the first operand, at most 8."""
    if instruction.op_kind(0) == OpKind.REGISTER:
        return min(8, RegisterExt.size(instruction.op_register(0)) or 8)
    return min(8, MemorySizeExt.size(instruction.memory_size) or 8)


def implicit_memory(instruction: Instruction, mnemonic: str) -> ImplicitMemory:
    """Return which memory is accessed without a ModRM operand."""
    kinds = {instruction.op_kind(k) for k in range(instruction.op_count)}
    if any(KIND_NAMES[k] == "MEM_OFFS" for k in instruction.op_code().op_kinds()):
        return ImplicitMemory.AT_OFFSET
    if mnemonic in ("push", "pushfq", "pushf") and OpKind.MEMORY not in kinds:
        return ImplicitMemory.PUSHES_STACK
    if mnemonic in ("pop", "popfq", "popf") and OpKind.MEMORY not in kinds:
        return ImplicitMemory.POPS_STACK
    if kinds & {OpKind.MEMORY_SEG_RSI, OpKind.MEMORY_SEG_ESI}:
        return ImplicitMemory.AT_RSI
    if kinds & {OpKind.MEMORY_ESRDI, OpKind.MEMORY_ESEDI}:
        return ImplicitMemory.AT_RDI
    return ImplicitMemory.LEAVES_FRAME if mnemonic == "leave" else ImplicitMemory.NO_IMPLICIT


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
