"""The record and the numbers by which instructions are explained to the native decoder.

They are those of ``native/cost/Codes.h`` and ``Decode.h``, which say what each means; the
two languages are compared when the library is loaded (``nestor.cost.native.layout``).
"""

from enum import IntEnum, IntFlag
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.isa.instruction_categories import CATEGORIES
from nestor.cost.native.layout import Layout


class NativeRegister(IntEnum):
    """Register numbers: the first of each file, flags, and the end."""

    RSP = 4
    VECTOR = 16
    STACK = 48
    MASK = 56
    CARRY = 64
    OVERFLOW = 65
    ZERO = 66
    REGISTERS = 67
    NONE = 255


class Trait(IntFlag):
    """Properties of an instruction that follow from its encoding."""

    ZERO_IDIOM = 1
    BREAKS_DEPENDENCY = 2
    ELIDED_MOVE = 4
    ADDRESS_ONLY = 8
    VECTOR_INDEX = 16
    VECTOR_OP = 32
    STACK_OP = 64
    EXTENDS = 128


class Access(IntFlag):
    """How an operand or memory is accessed."""

    READS = 1
    WRITES = 2


class Place(IntEnum):
    """Where an operand is encoded."""

    ABSENT = 0
    REG = 1
    RM = 2
    VVVV = 3
    OPCODE_FIELD = 4
    IS4 = 5
    FIXED = 6
    """A register that the opcode implies."""
    IN_MEMORY = 7
    IN_IMMEDIATE = 8
    ELSEWHERE = 9


class RegisterClass(IntEnum):
    """Which file and width a register operand is of."""

    GENERAL8 = 0
    GENERAL16 = 1
    GENERAL32 = 2
    GENERAL64 = 3
    VECTOR_CLASS = 4
    MMX_CLASS = 5
    X87_CLASS = 6
    MASK_CLASS = 7


class ImplicitMemory(IntEnum):
    """Memory that is accessed without a ModRM operand."""

    NO_IMPLICIT = 0
    PUSHES_STACK = 1
    POPS_STACK = 2
    AT_RDI = 3
    AT_RSI = 4
    AT_OFFSET = 5
    LEAVES_FRAME = 6


class Emulation(IntEnum):
    """What an instruction does to general registers, as far as addresses need it."""

    UNKNOWN = 0
    NOTHING = 1
    MOVE = 2
    ADD = 3
    SUB = 4
    AND = 5
    OR = 6
    XOR = 7
    LEA = 8
    INC = 9
    DEC = 10
    NEG = 11
    NOT = 12
    SHL = 13
    SHR = 14
    SAR = 15
    MOVE_ZERO = 16
    MOVE_SIGN = 17
    PUSH = 18
    POP = 19
    EXCHANGE = 20
    MULTIPLY = 21
    MULTIPLY3 = 22
    SIGN_TO_RDX = 23
    BYTE_SWAP = 24
    SIGN_EXTEND = 25
    STEP = 26
    SET_BIT = 27


class DecodeStatus(IntEnum):
    """What became of a block in the native decoder."""

    DECODED = 0
    UNKNOWN_KEY = 1
    """An instruction needs a template."""
    UNDECODABLE = 2


VARIANTS: Final = 8
"""Parameter sets of one instruction form, by addressing mode and idiom (``variantOf``)."""
STACK_VARIANTS: Final = VARIANTS // 2
"""The last so many of these are those of blocks that move the x87 stack, the others of the rest."""
LARGEST_WINDOW: Final = 512
"""Operations between dispatch and retirement that the native core can hold."""

OPERAND: Final = np.dtype([(name, np.int32) for name in ("place", "register_class", "access")])
TEMPLATE: Final = np.dtype(
    [
        *(
            (name, np.int32)
            for name in (
                "form", "immediate_bytes", "traits", "emulation", "width", "memory_size",
                "memory_access", "flags_read", "flags_written", "category", "stack_step",
                "implicit_memory",
            )
        ),
        ("operands", OPERAND, (5,)),
        ("implicit_reads", np.int32, (8,)),
        ("implicit_writes", np.int32, (8,)),
        ("tuple_size", np.int32),
        ("immediate_signed", np.int32),
        ("mnemonic", np.int32),
        ("spare", np.int32, (2,)),
    ]
)  # fmt: skip
"""One template: ``struct Template``."""

WORDS: Final = TEMPLATE.itemsize // 4
"""32-bit numbers in a template, as model files hold it."""

LAYOUT: Final = Layout(
    records={"TemplateOperand": OPERAND, "Template": TEMPLATE},
    codes={
        "Register": NativeRegister.__members__,
        **{
            kind.__name__: kind.__members__
            for kind in (
                Trait, Access, Place, RegisterClass, ImplicitMemory, Emulation, DecodeStatus,
            )
        },
        "Category": {
            "CATEGORY_MOV": CATEGORIES.index("mov"),
            "CATEGORY_ALU": CATEGORIES.index("alu"),
            "CATEGORY_SHIFT": CATEGORIES.index("shift"),
            "CATEGORIES": len(CATEGORIES),
        },
        "Limit": {"VARIANTS": VARIANTS, "LARGEST_WINDOW": LARGEST_WINDOW},
    },
)  # fmt: skip


_LARGEST: Final = {
    "immediate_bytes": 12,
    "width": 8,
    "memory_size": 1024,
    "category": 255,
    "emulation": 255,
}


def check_templates(rows: NDArray[np.void]) -> None:
    """Refuse templates ``[n]`` that would lead the native decoder out of its arrays.

    :raises ValueError: if one would.
    """
    fixed = rows["operands"]["place"] == Place.FIXED
    for registers in (
        rows["implicit_reads"],
        rows["implicit_writes"],
        rows["operands"]["register_class"][fixed],
    ):
        if (registers < -1).any() or (registers >= NativeRegister.REGISTERS).any():
            raise ValueError("a template names a register that is not there")
    for name, most in _LARGEST.items():
        if (rows[name] < 0).any() or (rows[name] > most).any():
            raise ValueError(f"a template has a {name} that is not there")
