"""What an instruction does besides costing time: to addresses and to dependences."""

from typing import Final

import numpy as np
from iced_x86 import Instruction
from numpy.typing import NDArray

from nestor.cost.operands import WRITES

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
MERGES: Final = frozenset(["cvtsi2sd", "cvtsi2ss", "cvtss2sd", "cvtsd2ss", "sqrtsd", "sqrtss"])
"""They keep the upper part of their destination, but do not wait for it while that is known to be
zero, which is the rule in compiled code and in the harness."""
_ZERO_IDIOM, _BREAKS, _ELIDED, _ADDRESS_ONLY, _VECTOR_INDEX, _VECTOR = 1, 2, 4, 8, 16, 32
_STACK, _EXTENDS = 64, 128


def traits_of(instruction: Instruction, mnemonic: str, row: NDArray[np.int32]) -> int:
    """Return the set of ``Trait`` of ``Decode.h``; ``row`` has its operands and memory."""
    plain = mnemonic[1:] if mnemonic.startswith("v") else mnemonic
    operands = row[12:27].reshape(5, 3)
    places = operands[:, 0]
    encoded = (places >= 1) & (places <= 5)
    vector = bool(np.isin(operands[encoded, 1], (4, 5, 6)).any())
    found = {
        _ZERO_IDIOM: plain in _ZERO_IDIOMS and operands[0, 1] >= 2,
        _BREAKS: plain in _ONES_IDIOMS,
        _ELIDED: plain in _COPIES,
        _ADDRESS_ONLY: mnemonic == "lea" or (7 in places and not row[6] and not row[11]),
        _VECTOR_INDEX: instruction.is_vsib,
        _VECTOR: vector or mnemonic.startswith("f"),
        _STACK: mnemonic in ("push", "pop"),
        _EXTENDS: mnemonic in ("movzx", "movsx", "movsxd"),
    }
    return sum(trait for trait, there in found.items() if there)


def emulation_of(
    instruction: Instruction, mnemonic: str, writes: bool, row: NDArray[np.int32]
) -> int:
    """Return the number in :data:`EMULATIONS` of what ``mnemonic`` does to general registers.

    :param writes: whether it writes registers that it does not name.
    """
    first_is_register = row[12] in (1, 2, 3, 4, 6) and row[13] < 4 and row[14] & WRITES
    stores = row[12] == 7 and row[14] & WRITES
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
