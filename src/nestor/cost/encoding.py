"""Explain x86-64 instructions to the native decoder, one template for each encoding.

The native decoder (``native/cost/Decode.cpp``) knows how instructions are laid out in bytes; what
they read, write and are called comes from here, by way of iced-x86. A template is made from one
example and holds for all registers, displacements and immediates, so that a few hundred of them
decode everything that compilers emit.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from iced_x86 import (
    Code,
    Decoder,
    Instruction,
    InstructionInfoFactory,
    MemorySizeExt,
    Mnemonic,
    OpAccess,
    OpCodeOperandKind,
    OpKind,
    Register,
    RegisterExt,
    RflagsBits,
)
from numpy.typing import NDArray

from nestor.cost.instruction_categories import CATEGORIES, category_of

WORDS: Final = 48
"""Numbers in a template; the fields are those of ``struct Template``."""

_READS, _WRITES = 1, 2
_ACCESS: Final = {
    OpAccess.NONE: 0,
    OpAccess.READ: _READS,
    OpAccess.COND_READ: _READS,
    OpAccess.WRITE: _WRITES,
    OpAccess.COND_WRITE: _READS | _WRITES,
    OpAccess.READ_WRITE: _READS | _WRITES,
    OpAccess.READ_COND_WRITE: _READS | _WRITES,
    OpAccess.NO_MEM_ACCESS: 0,
}

EMULATIONS: Final = [
    "unknown",
    "nothing",
    "mov",
    "add",
    "sub",
    "and",
    "or",
    "xor",
    "lea",
    "inc",
    "dec",
    "neg",
    "not",
    "shl",
    "shr",
    "sar",
    "movzx",
    "movsx",
    "push",
    "pop",
    "xchg",
    "imul",
    "imul3",
    "cdq",
    "bswap",
    "cdqe",
    "step",
    "setcc",
]
"""What an instruction does to general registers; the order is that of ``Emulate.h``."""

_SAME_EFFECT: Final = {
    "adc": "add", "sbb": "sub", "sal": "shl", "movsxd": "movsx", "cqo": "cdq", "cwd": "cdq",
    "cwde": "cdqe", "cbw": "cdqe", "movabs": "mov",
}  # fmt: skip
_ZERO_IDIOMS: Final = frozenset(
    [
        "xor",
        "sub",
        "pxor",
        "xorps",
        "xorpd",
        "psubb",
        "psubw",
        "psubd",
        "psubq",
        "pcmpgtb",
        "pcmpgtw",
        "pcmpgtd",
        "pcmpgtq",
        "pandn",
        "andnps",
        "andnpd",
    ]
)
_ONES_IDIOMS: Final = frozenset(("pcmpeqb", "pcmpeqw", "pcmpeqd", "pcmpeqq"))
_COPIES: Final = frozenset(
    ["mov", "movaps", "movups", "movapd", "movupd", "movdqa", "movdqu", "movq", "xchg", "fxch"]
)
_MERGES: Final = frozenset(["cvtsi2sd", "cvtsi2ss", "cvtss2sd", "cvtsd2ss", "sqrtsd", "sqrtss"])
"""They keep the upper part of their destination, but do not wait for it while that is known to be
zero, which is the rule in compiled code and in the harness."""
_ZERO_IDIOM, _BREAKS, _ELIDED, _ADDRESS_ONLY, _VECTOR_INDEX, _VECTOR = 1, 2, 4, 8, 16, 32
_STACK, _EXTENDS = 64, 128

_KIND_NAMES: Final = {
    getattr(OpCodeOperandKind, name): name for name in dir(OpCodeOperandKind) if name.isupper()
}
_KIND_NAMES.update(
    {
        getattr(OpCodeOperandKind, name): name
        for name in dir(OpCodeOperandKind)
        if name[0].isupper() and name not in ("OpCodeOperandKind",)
    }
)
_CODE_NAMES: Final = {getattr(Code, name): name for name in dir(Code) if name[0].isupper()}
_MNEMONICS: Final = {
    getattr(Mnemonic, name): name.lower() for name in dir(Mnemonic) if name[0].isupper()
}
_CLASSES: Final = {
    "R8": 0, "R16": 1, "R32": 2, "R64": 3, "XMM": 4, "YMM": 4, "ZMM": 4, "XMMP3": 4, "ZMMP3": 4,
    "MM": 5, "STI": 6, "K": 7, "KP1": 7,
}  # fmt: skip
_PLACES: Final = {"REG": 1, "RM": 2, "VVVV": 3, "OPCODE": 4, "IS4": 5, "IS5": 5}
_FIXED: Final = {"AL": 0, "AX": 0, "EAX": 0, "RAX": 0, "CL": 1, "DX": 2, "ST0": 48}
_STAND_IN: Final[dict[int, Any]] = {
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


@dataclass
class Templates:
    """The templates made so far and the forms that they belong to."""

    keys: list[int] = field(default_factory=list)
    rows: list[NDArray[np.int32]] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    """Name of each form: iced-x86 code, ``mem`` if it has a memory operand, prefixes."""

    def __post_init__(self) -> None:
        self._numbers = {name: number for number, name in enumerate(self.forms)}
        self._factory = InstructionInfoFactory()

    def learn(self, key: int, example: bytes) -> NDArray[np.int32]:
        """Return the template of the instruction that ``example`` begins with, kept under ``key``.

        Its form is −1 if iced-x86 says that there is no such instruction.
        """
        instruction = next(iter(Decoder(64, example)), None)
        row = np.zeros(WORDS, dtype=np.int32)
        row[27:43] = -1
        row[0] = -1
        if instruction is not None and instruction.code != Code.INVALID:
            self._describe(instruction, row)
        self.keys.append(key)
        self.rows.append(row)
        return row

    def categories(self) -> NDArray[np.int64]:
        """Return the number of each form's category."""
        numbers = np.zeros(len(self.forms), dtype=np.int64)
        for row in self.rows:
            if row[0] >= 0:
                numbers[row[0]] = row[9]
        return numbers

    def _form(self, instruction: Instruction) -> int:
        words = [_CODE_NAMES[instruction.code]]
        kinds = {instruction.op_kind(k) for k in range(instruction.op_count)}
        words += ["mem"] if OpKind.MEMORY in kinds else []
        words += ["lock"] if instruction.has_lock_prefix else []
        if instruction.has_rep_prefix or instruction.has_repne_prefix:
            words += ["rep"] if instruction.is_string_instruction else []
        name = " ".join(words)
        if name not in self._numbers:
            self._numbers[name] = len(self.forms)
            self.forms.append(name)
        return self._numbers[name]

    def _describe(self, instruction: Instruction, row: NDArray[np.int32]) -> None:
        """Fill ``row``, in the order of ``struct Template``."""
        mnemonic = _MNEMONICS[instruction.mnemonic]
        plain = mnemonic[1:] if mnemonic.startswith("v") else mnemonic
        op_code = instruction.op_code()
        stand_in = instruction.copy()
        traits = 0
        explicit: set[Any] = set()
        width = 8
        for k in range(instruction.op_count):
            where, cls, _ = _operand(instruction, k, 0)
            if 1 <= where <= 5 and cls in _STAND_IN:
                explicit.add(_STAND_IN[cls] + k)
                stand_in.set_op_register(k, _STAND_IN[cls] + k)
        # Two equal registers would be an idiom, which reads nothing.
        info = self._factory.info(stand_in)
        for k in range(instruction.op_count):
            where, cls, access = _operand(instruction, k, _ACCESS[info.op_access(k)])
            row[12 + 3 * k : 15 + 3 * k] = where, cls, access
            if where == 6 and cls < 16:
                explicit.add(instruction.op_register(k))
            if cls in (4, 5, 6) and 1 <= where <= 5:
                traits |= _VECTOR
            if where == 7:
                row[6] = access
        if row[12]:
            width = _width(instruction)
        if instruction.memory_base not in (Register.NONE, Register.RIP, Register.EIP):
            explicit.add(Register.R10)
            if row[6] or mnemonic in ("lea", "nop"):
                stand_in.memory_base = Register.R10
        if instruction.memory_index != Register.NONE and not instruction.is_vsib:
            explicit.add(Register.R9)
            stand_in.memory_index = Register.R9
        if mnemonic.startswith("f") or "mm" in str(instruction):
            traits |= _VECTOR
        explicit_full = {RegisterExt.full_register(r) for r in explicit}
        seen = self._factory.info(stand_in)
        reads: list[int] = []
        writes: list[int] = []
        for used in seen.used_registers():
            number = native_register(used.register)
            if number is None or RegisterExt.full_register(used.register) in explicit_full:
                continue
            access = _ACCESS[used.access]
            partial = used.register < Register.EAX and access & _WRITES
            if (access & _READS or partial) and number not in reads:
                reads.append(number)
            if access & _WRITES and number not in writes:
                writes.append(number)
        step = instruction.fpu_stack_increment_info().increment
        if step < 0 and 48 not in writes:
            writes.append(48)
        row[11] = _implicit_memory(instruction, mnemonic)
        if row[11]:
            row[6] = 0
            for memory in info.used_memory():
                row[6] |= _ACCESS[memory.access]
        if row[11] in (1, 2) or mnemonic in (
            "push",
            "pop",
        ):  # the stack engine follows rsp at no cost
            reads = [r for r in reads if r != 4]
            writes = [r for r in writes if r != 4]
        if mnemonic in ("push", "pop"):
            traits |= _STACK
        if mnemonic in ("movzx", "movsx", "movsxd"):
            traits |= _EXTENDS
        if mnemonic in _MERGES:
            row[14] &= ~_READS
        if instruction.is_vsib:
            traits |= _VECTOR_INDEX
        if mnemonic == "lea" or (7 in row[12:27:3] and row[6] == 0 and not row[11]):
            traits |= _ADDRESS_ONLY
        if plain in _ZERO_IDIOMS and (cls_of(row) >= 2):
            traits |= _ZERO_IDIOM
        if plain in _ONES_IDIOMS:
            traits |= _BREAKS
        if plain in _COPIES:
            traits |= _ELIDED
        immediates = sum(
            _immediate_bytes(_KIND_NAMES[kind], instruction) for kind in op_code.op_kinds()
        )
        row[0] = self._form(instruction)
        row[1] = immediates
        row[2] = traits
        row[3] = _emulation(instruction, mnemonic, bool(writes), row)
        row[4] = width
        row[5] = MemorySizeExt.size(instruction.memory_size)
        if row[11] in (1, 2) and not row[5]:
            row[5] = 8
        row[7] = _flags(instruction.rflags_read)
        row[8] = _flags(instruction.rflags_modified)
        row[9] = CATEGORIES.index(category_of(instruction, mnemonic))
        row[10] = step
        row[27 : 27 + min(len(reads), 8)] = reads[:8]
        row[35 : 35 + min(len(writes), 8)] = writes[:8]
        row[43] = _tuple_size(instruction)
        row[45] = instruction.mnemonic


def cls_of(row: NDArray[np.int32]) -> int:
    """Return the register class of a template's first operand."""
    return int(row[13])


def _operand(instruction: Instruction, k: int, access: int) -> tuple[int, int, int]:
    """Return where operand ``k`` is encoded, its register class (or number) and its access."""
    kind = _KIND_NAMES[instruction.op_code().op_kind(k)]
    if instruction.op_kind(k) == OpKind.MEMORY:
        return 7, 0, access
    if kind in _FIXED:
        if kind in ("AL", "AX") and access & _WRITES:
            access |= _READS
        return 6, _FIXED[kind], access
    if kind.startswith(("IMM", "BR", "XBEGIN", "FARBR")):
        return 8, 0, 0
    cls, _, place = kind.partition("_")
    if cls in _CLASSES and (place in _PLACES or place in ("OR_MEM", "REG_MEM", "OR_MEM_MPX")):
        where = 2 if place.startswith("OR_MEM") or cls == "STI" else _PLACES.get(place, 1)
        return where, _CLASSES[cls], access
    return 9, 0, access


def _width(instruction: Instruction) -> int:
    if instruction.op_kind(0) == OpKind.REGISTER:
        return min(8, RegisterExt.size(instruction.op_register(0)) or 8)
    return min(8, MemorySizeExt.size(instruction.memory_size) or 8)


def _implicit_memory(instruction: Instruction, mnemonic: str) -> int:
    """Return which memory is accessed without a ModRM operand: see ``implicitMemory``."""
    kinds = {instruction.op_kind(k) for k in range(instruction.op_count)}
    if any(_KIND_NAMES[k] == "MEM_OFFS" for k in instruction.op_code().op_kinds()):
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


def _immediate_bytes(kind: str, instruction: Instruction) -> int:
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


def _flags(bits: int) -> int:
    return (bits & _CARRY != 0) | (bits & _OVERFLOW != 0) << 1 | (bits & _OTHERS != 0) << 2


def _emulation(
    instruction: Instruction, mnemonic: str, writes: bool, row: NDArray[np.int32]
) -> int:
    first_is_register = row[12] in (1, 2, 3, 4, 6) and row[13] < 4 and row[14] & _WRITES
    stores = row[12] == 7 and row[14] & _WRITES
    name = _SAME_EFFECT.get(mnemonic, mnemonic)
    if row[11] in (3, 4):
        name = "step"
    elif mnemonic.startswith("cmov"):
        name = "mov"
    elif mnemonic.startswith("set"):
        name = "setcc"
    elif name == "imul":
        name = {1: "unknown", 2: "imul", 3: "imul3"}[instruction.op_count]
    elif row[11] == 6:
        name = "unknown"
    elif name not in EMULATIONS:
        name = "unknown" if first_is_register or writes or stores else "nothing"
    elif name in ("push", "pop") and row[11] == 0:
        name = "unknown"
    if name == "mov" and row[12] == 6 and row[13] >= 16:
        name = "nothing"
    return EMULATIONS.index(name)


def _tuple_size(instruction: Instruction) -> int:
    """Return what an EVEX displacement of one byte is multiplied by; 0 if it is not."""
    size = MemorySizeExt.size(instruction.memory_size)
    from iced_x86 import EncodingKind

    return size if instruction.encoding == EncodingKind.EVEX else 0
