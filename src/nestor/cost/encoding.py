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
    OpKind,
    Register,
    RegisterExt,
)
from numpy.typing import NDArray

from nestor.cost.effects import MERGES, emulation_of, traits_of
from nestor.cost.instruction_categories import CATEGORIES, category_of
from nestor.cost.operands import (
    ACCESS,
    KIND_NAMES,
    READS,
    STAND_IN,
    WRITES,
    flags,
    immediate_bytes,
    implicit_memory,
    native_register,
    operand,
    tuple_size,
    width_of,
)

WORDS: Final = 48
"""Numbers in a template; the fields are those of ``struct Template``."""

_CODE_NAMES: Final = {getattr(Code, name): name for name in dir(Code) if name[0].isupper()}
_MNEMONICS: Final = {
    getattr(Mnemonic, name): name.lower() for name in dir(Mnemonic) if name[0].isupper()
}


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
        # Padded, because a block that ends too early must not spoil the template for others.
        instruction = next(iter(Decoder(64, example[:15] + bytes(15))), None)
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
        stand_in, explicit = _with_other_registers(instruction)
        info = self._factory.info(stand_in)
        for k in range(instruction.op_count):
            where, cls, access = operand(instruction, k, ACCESS[info.op_access(k)])
            row[12 + 3 * k : 15 + 3 * k] = where, cls, access
            if where == 7:
                row[6] = access
        row[11] = implicit_memory(instruction, mnemonic)
        if row[11]:
            row[6] = 0
            for memory in info.used_memory():
                row[6] |= ACCESS[memory.access]
        reads, writes = self._implicit_registers(stand_in, explicit)
        if mnemonic in _STACK_OPERATIONS:  # the stack engine follows rsp at no cost
            reads = [register for register in reads if register != _RSP]
            writes = [register for register in writes if register != _RSP]
        if mnemonic in MERGES:
            row[14] &= ~READS
        row[0] = self._form(instruction)
        row[1] = sum(
            immediate_bytes(KIND_NAMES[kind], instruction)
            for kind in instruction.op_code().op_kinds()
        )
        row[2] = traits_of(instruction, mnemonic, row)
        row[3] = emulation_of(instruction, mnemonic, bool(writes), row)
        row[4] = width_of(instruction) if row[12] else 8
        row[5] = MemorySizeExt.size(instruction.memory_size) or (8 if row[11] in (1, 2) else 0)
        row[7] = flags(instruction.rflags_read)
        row[8] = flags(instruction.rflags_modified)
        row[9] = CATEGORIES.index(category_of(instruction, mnemonic))
        row[10] = instruction.fpu_stack_increment_info().increment
        row[27 : 27 + min(len(reads), 8)] = reads[:8]
        row[35 : 35 + min(len(writes), 8)] = writes[:8]
        row[43] = tuple_size(instruction)
        row[45] = instruction.mnemonic

    def _implicit_registers(
        self, stand_in: Instruction, explicit: set[Any]
    ) -> tuple[list[int], list[int]]:
        """Return the registers read and written that no operand names."""
        reads: list[int] = []
        writes: list[int] = []
        for used in self._factory.info(stand_in).used_registers():
            number = native_register(used.register)
            if number is None or RegisterExt.full_register(used.register) in explicit:
                continue
            access = ACCESS[used.access]
            partial = used.register < Register.EAX and access & WRITES  # it keeps the rest
            if (access & READS or partial) and number not in reads:
                reads.append(number)
            if access & WRITES and number not in writes:
                writes.append(number)
        if stand_in.fpu_stack_increment_info().increment < 0 and _TOP not in writes:
            writes.append(_TOP)
        return reads, writes


def _with_other_registers(instruction: Instruction) -> tuple[Instruction, set[Any]]:
    """Return the instruction with other registers for its operands, and the full ones of these.

    No two are equal, because iced-x86 knows idioms that read nothing, and none is one that
    instructions use without naming it.
    """
    other = instruction.copy()
    explicit: set[Any] = set()
    for k in range(instruction.op_count):
        where, cls, _ = operand(instruction, k, 0)
        if 1 <= where <= 5 and cls in STAND_IN:
            explicit.add(STAND_IN[cls] + k)
            other.set_op_register(k, STAND_IN[cls] + k)
        elif where == 6 and cls < 16:
            explicit.add(instruction.op_register(k))
    if instruction.memory_base not in (Register.NONE, Register.RIP, Register.EIP):
        explicit.add(Register.R10)
        other.memory_base = Register.R10
    if instruction.memory_index != Register.NONE and not instruction.is_vsib:
        explicit.add(Register.R9)
        other.memory_index = Register.R9
    return other, {RegisterExt.full_register(register) for register in explicit}


_RSP, _TOP = 4, 48
_STACK_OPERATIONS = ("push", "pop", "pushfq", "popfq")
