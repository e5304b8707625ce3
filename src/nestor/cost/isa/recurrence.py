"""Registers through which a block waits for its own last pass, and code that does not wait.

A cost model answers for a block that repeats without end. Few blocks do: the others read registers
that different code has written. There, whether a register is read and overwritten in the same block
is an accident of register allocation, and the latency that it adds to a repeated block is not real:
``mov eax, [rsp+rax*4]`` repeated takes as long as a load, and ``mov ecx, [rsp+rax*4]`` does not.
"""

from typing import Final

from iced_x86 import Code, Encoder, EncodingKind, Instruction, OpKind, Register

from nestor.cost.isa.decoding import decode, raw

_BITNESS: Final = 64
_STACK_POINTER: Final = "rsp"
_GENERAL: Final = {
    **{name: name.replace("r", "E", 1).upper() for name in ("rax", "rcx", "rdx", "rbx", "rbp")},
    **{"rsi": "ESI", "rdi": "EDI"},
    **{f"r{number}": f"R{number}D" for number in range(8, 16)},
}
_VECTOR: Final = {f"zmm{number}": f"XMM{number}" for number in range(16)}
"""Names of parts of 32 and 128 bits that can be set to zero in any mode, by the full register."""


def carried(code: bytes) -> frozenset[str]:
    """Return the registers that a block reads before it writes them, and then writes.

    :raises DecodeError: if the bytes are no code.
    """
    first_read: set[str] = set()
    written: set[str] = set()
    for instruction in decode(code):
        first_read |= {*instruction.reads, *instruction.merges} - written
        written |= set(instruction.writes)
    return frozenset(first_read & written)


def without_recurrence(code: bytes) -> bytes:
    """Return the block with its carried registers set to zero at its end, which takes no time.

    What remains carried are the stack pointer, flags that no register goes with, memory, and
    registers of other kinds than general and vector registers.

    :raises DecodeError: if the bytes are no code.
    """
    found = carried(code) - {_STACK_POINTER}
    if not found:
        return code
    vex = any(i.encoding in (EncodingKind.VEX, EncodingKind.EVEX) for i in raw(code))
    encoder = Encoder(_BITNESS)
    for name in sorted(found):
        if name in _GENERAL:
            register = getattr(Register, _GENERAL[name])
            encoder.encode(Instruction.create_reg_reg(Code.XOR_RM32_R32, register, register), 0)
        elif name in _VECTOR:
            register = getattr(Register, _VECTOR[name])
            # A mixture with legacy encodings would take time of its own.
            zero = (
                Instruction.create_reg_reg_reg(
                    Code.VEX_VPXOR_XMM_XMM_XMMM128, register, register, register
                )
                if vex
                else Instruction.create_reg_reg(Code.PXOR_XMM_XMMM128, register, register)
            )
            encoder.encode(zero, 0)
    return code + encoder.take_buffer()


def jumps_to_itself(code: bytes) -> bool:
    """Tell whether code has a direct jump to its own beginning: a loop of one block.

    :raises DecodeError: if the bytes are no code.
    """
    return any(
        instruction.op_count == 1
        and instruction.op0_kind == OpKind.NEAR_BRANCH64
        and instruction.near_branch_target == 0
        for instruction in raw(code)
    )
