"""What an instruction does to addresses and to dependences between instructions."""

import functools
import operator
from typing import Final

import numpy as np
from iced_x86 import Instruction
from numpy.typing import NDArray

from nestor.cost.isa.template_layout import (
    Access,
    Emulation,
    ImplicitMemory,
    NativeRegister,
    Place,
    RegisterClass,
    Trait,
)

_EMULATIONS: Final = {
    "mov": Emulation.MOVE, "movabs": Emulation.MOVE, "add": Emulation.ADD, "adc": Emulation.ADD,
    "sub": Emulation.SUB, "sbb": Emulation.SUB, "and": Emulation.AND, "or": Emulation.OR,
    "xor": Emulation.XOR, "lea": Emulation.LEA, "inc": Emulation.INC, "dec": Emulation.DEC,
    "neg": Emulation.NEG, "not": Emulation.NOT, "shl": Emulation.SHL, "sal": Emulation.SHL,
    "shr": Emulation.SHR, "sar": Emulation.SAR, "movzx": Emulation.MOVE_ZERO,
    "movsx": Emulation.MOVE_SIGN, "movsxd": Emulation.MOVE_SIGN, "push": Emulation.PUSH,
    "pop": Emulation.POP, "xchg": Emulation.EXCHANGE, "cdq": Emulation.SIGN_TO_RDX,
    "cqo": Emulation.SIGN_TO_RDX, "cwd": Emulation.SIGN_TO_RDX, "bswap": Emulation.BYTE_SWAP,
    "cdqe": Emulation.SIGN_EXTEND, "cwde": Emulation.SIGN_EXTEND, "cbw": Emulation.SIGN_EXTEND,
}  # fmt: skip
"""By mnemonic; :func:`emulation_of` knows the exceptions."""
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
MERGES: Final = frozenset(["cvtsi2sd", "cvtsi2ss", "cvtss2sd", "cvtsd2ss", "sqrtsd", "sqrtss"])
"""They keep the upper part of their destination, but do not wait for it as long as that is
zero, which is the rule in compiled code and in the harness."""


def traits_of(instruction: Instruction, mnemonic: str, row: NDArray[np.void]) -> Trait:
    """Return the properties of an instruction that follow from its encoding.

    :param row: a :data:`~nestor.cost.isa.template_layout.TEMPLATE` with its operands and memory.
    """
    plain = mnemonic[1:] if mnemonic.startswith("v") else mnemonic
    places, classes = row["operands"]["place"], row["operands"]["register_class"]
    encoded = (places >= Place.REG) & (places <= Place.IS4)
    vectors = (RegisterClass.VECTOR_CLASS, RegisterClass.MMX_CLASS, RegisterClass.X87_CLASS)
    vector = bool(np.isin(classes[encoded], vectors).any())
    untouched = not row["memory_access"] and not row["implicit_memory"]
    found = {
        # Not of 8 or 16 bits: the rest of the register stays.
        Trait.ZERO_IDIOM: plain in _ZERO_IDIOMS and classes[0] >= RegisterClass.GENERAL32,
        Trait.BREAKS_DEPENDENCY: plain in _ONES_IDIOMS,
        Trait.ELIDED_MOVE: plain in _COPIES,
        Trait.ADDRESS_ONLY: mnemonic == "lea" or (Place.IN_MEMORY in places and untouched),
        Trait.VECTOR_INDEX: instruction.is_vsib,
        Trait.VECTOR_OP: vector or mnemonic.startswith("f"),
        Trait.STACK_OP: mnemonic in ("push", "pop"),
        Trait.EXTENDS: mnemonic in ("movzx", "movsx", "movsxd"),
    }
    return functools.reduce(operator.or_, (t for t, applies in found.items() if applies), Trait(0))


def emulation_of(
    instruction: Instruction, mnemonic: str, writes: bool, row: NDArray[np.void]
) -> Emulation:
    """Return what ``mnemonic`` does to general registers.

    :param writes: whether it writes registers that no operand names.
    :param row: a :data:`~nestor.cost.isa.template_layout.TEMPLATE` with its operands and memory.
    """
    place, cls, access = row["operands"][0].tolist()
    memory = ImplicitMemory(int(row["implicit_memory"]))
    in_register = place in (Place.REG, Place.RM, Place.VVVV, Place.OPCODE_FIELD, Place.FIXED)
    writes_first = bool(access & Access.WRITES)
    general = writes_first and in_register and cls <= RegisterClass.GENERAL64
    stores = writes_first and place == Place.IN_MEMORY
    if memory in (ImplicitMemory.AT_RDI, ImplicitMemory.AT_RSI):
        return Emulation.STEP
    if mnemonic.startswith("cmov"):
        found = Emulation.MOVE
    elif mnemonic.startswith("set"):
        return Emulation.SET_BIT
    elif mnemonic == "imul":
        return _MULTIPLICATIONS[instruction.op_count]
    elif memory == ImplicitMemory.LEAVES_FRAME:
        return Emulation.UNKNOWN
    elif mnemonic not in _EMULATIONS:
        return Emulation.UNKNOWN if general or writes or stores else Emulation.NOTHING
    else:
        found = _EMULATIONS[mnemonic]
    if found in (Emulation.PUSH, Emulation.POP) and memory == ImplicitMemory.NO_IMPLICIT:
        return Emulation.UNKNOWN
    if found == Emulation.MOVE and place == Place.FIXED and cls >= NativeRegister.VECTOR:
        return Emulation.NOTHING
    return found


_MULTIPLICATIONS: Final = {
    1: Emulation.UNKNOWN,
    2: Emulation.MULTIPLY,
    3: Emulation.MULTIPLY3,
}
"""``imul`` by its number of operands."""
