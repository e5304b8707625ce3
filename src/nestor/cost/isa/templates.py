"""Describe x86-64 instructions for the native decoder, one template for each encoding.

The native decoder (``native/cost/Decode.cpp``) knows how instructions are laid out in bytes; what
they read, write and are called comes from here, by way of iced-x86. A template is derived from one
example and holds for all registers, displacements and immediates, so that a thousand of them
decode everything that compilers emit.
"""

import functools
import operator
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

from nestor.cost.isa.effects import MERGES, emulation_of, traits_of
from nestor.cost.isa.instruction_categories import CATEGORIES, category_of
from nestor.cost.isa.operands import (
    ACCESS,
    KIND_NAMES,
    STAND_IN,
    flags,
    immediate_bytes,
    implicit_memory,
    native_register,
    operand,
    tuple_size,
    width_of,
)
from nestor.cost.isa.template_layout import (
    TEMPLATE,
    Access,
    ImplicitMemory,
    NativeRegister,
    Place,
)

_CODE_NAMES: Final = {getattr(Code, name): name for name in dir(Code) if name[0].isupper()}
_MNEMONICS: Final = {
    getattr(Mnemonic, name): name.lower() for name in dir(Mnemonic) if name[0].isupper()
}


@dataclass
class Templates:
    """The templates met so far, and the instruction forms that they belong to."""

    keys: list[int] = field(default_factory=list)
    """What the native decoder looks a template up by."""
    rows: list[NDArray[np.void]] = field(default_factory=list)
    """One :data:`TEMPLATE` for each key."""
    forms: list[str] = field(default_factory=list)
    """Name of each form: iced-x86 code, ``mem`` if it has a memory operand, prefixes."""

    def __post_init__(self) -> None:
        self._numbers = {name: number for number, name in enumerate(self.forms)}
        self._factory = InstructionInfoFactory()

    def copy(self) -> "Templates":
        """Return templates of their own, to which more can be added."""
        return Templates(list(self.keys), list(self.rows), list(self.forms))

    def of_forms(self, wanted: NDArray[np.bool_]) -> "Templates":
        """Return these templates without those of other forms; all forms keep their numbers.

        What is left out is described again when it is met.

        :param wanted: by form ``[forms]``.
        """
        kept = [i for i, row in enumerate(self.rows) if row["form"] >= 0 and wanted[row["form"]]]
        return Templates(
            [self.keys[i] for i in kept], [self.rows[i] for i in kept], list(self.forms)
        )

    def add(self, key: int, example: bytes) -> NDArray[np.void]:
        """Describe the instruction that ``example`` begins with, and keep that under ``key``.

        :return: a :data:`TEMPLATE`, with form −1 if iced-x86 knows no such instruction.
        """
        # Padded, because a block that ends too early must not spoil the template for others.
        instruction = next(iter(Decoder(64, example[:15] + bytes(15))), None)
        row = np.zeros((), dtype=TEMPLATE)
        row["implicit_reads"] = row["implicit_writes"] = -1
        row["form"] = -1
        if instruction is not None and instruction.code != Code.INVALID:
            self._describe(instruction, row)
        self.keys.append(key)
        self.rows.append(row)
        return row

    def categories(self) -> NDArray[np.int64]:
        """Return the number of each form's category ``[forms]``."""
        numbers = np.zeros(len(self.forms), dtype=np.int64)
        for row in self.rows:
            if row["form"] >= 0:
                numbers[row["form"]] = row["category"]
        return numbers

    def mnemonics(self) -> NDArray[np.int64]:
        """Return the number of each form's mnemonic in iced-x86 ``[forms]``."""
        numbers = np.zeros(len(self.forms), dtype=np.int64)
        for row in self.rows:
            if row["form"] >= 0:
                numbers[row["form"]] = row["mnemonic"]
        return numbers

    def _form(self, instruction: Instruction) -> int:
        name = form_name(instruction)
        if name not in self._numbers:
            self._numbers[name] = len(self.forms)
            self.forms.append(name)
        return self._numbers[name]

    def _describe(self, instruction: Instruction, row: NDArray[np.void]) -> None:
        """Fill ``row``."""
        mnemonic = _MNEMONICS[instruction.mnemonic]
        stand_in, explicit = _with_other_registers(instruction)
        info = self._factory.info(stand_in)
        for k in range(instruction.op_count):
            place, cls, access = operand(instruction, k, ACCESS[info.op_access(k)])
            row["operands"][k] = place, cls, access
            if place == Place.IN_MEMORY:
                row["memory_access"] = access
        row["implicit_memory"] = implicit_memory(instruction, mnemonic)
        if row["implicit_memory"]:
            accesses = [ACCESS[memory.access] for memory in info.used_memory()]
            row["memory_access"] = functools.reduce(operator.or_, accesses, 0)
        reads, writes = self._implicit_registers(stand_in, explicit)
        if mnemonic in _STACK_OPERATIONS:  # the stack engine follows rsp at no cost
            reads = [register for register in reads if register != NativeRegister.RSP]
            writes = [register for register in writes if register != NativeRegister.RSP]
        if mnemonic in MERGES:
            row["operands"]["access"][0] &= ~Access.READS
        row["form"] = self._form(instruction)
        row["immediate_bytes"] = sum(
            immediate_bytes(KIND_NAMES[kind], instruction)
            for kind in instruction.op_code().op_kinds()
        )
        row["traits"] = traits_of(instruction, mnemonic, row)
        row["emulation"] = emulation_of(instruction, mnemonic, bool(writes), row)
        row["width"] = width_of(instruction) if row["operands"]["place"][0] else 8
        on_stack = row["implicit_memory"] in (
            ImplicitMemory.PUSHES_STACK,
            ImplicitMemory.POPS_STACK,
        )
        size = MemorySizeExt.size(instruction.memory_size)
        row["memory_size"] = size or (8 if on_stack else 0)
        row["flags_read"] = flags(instruction.rflags_read)
        row["flags_written"] = flags(instruction.rflags_modified)
        row["category"] = CATEGORIES.index(category_of(instruction, mnemonic))
        row["stack_step"] = instruction.fpu_stack_increment_info().increment
        row["implicit_reads"][: len(reads)] = reads[:_MOST_IMPLICIT]
        row["implicit_writes"][: len(writes)] = writes[:_MOST_IMPLICIT]
        row["tuple_size"] = tuple_size(instruction)
        row["mnemonic"] = instruction.mnemonic

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
            partial = used.register < Register.EAX and access & Access.WRITES  # it keeps the rest
            if (access & Access.READS or partial) and number not in reads:
                reads.append(number)
            if access & Access.WRITES and number not in writes:
                writes.append(number)
        if stand_in.fpu_stack_increment_info().increment < 0 and NativeRegister.STACK not in writes:
            writes.append(int(NativeRegister.STACK))
        return reads, writes


def form_name(instruction: Instruction) -> str:
    """Return the name of the form that an instruction is of."""
    words = [_CODE_NAMES[instruction.code]]
    kinds = {instruction.op_kind(k) for k in range(instruction.op_count)}
    words += ["mem"] if OpKind.MEMORY in kinds else []
    words += ["lock"] if instruction.has_lock_prefix else []
    if instruction.has_rep_prefix or instruction.has_repne_prefix:
        words += ["rep"] if instruction.is_string_instruction else []
    return " ".join(words)


def opcode_of(form: str) -> str:
    """Return the opcode that a form belongs to: its forms with and without memory are one."""
    return " ".join(word for word in form.split() if word != "mem")


def _with_other_registers(instruction: Instruction) -> tuple[Instruction, set[Any]]:
    """Return the instruction with other registers for its operands, and the full ones of these.

    No two are equal, because iced-x86 knows idioms that read nothing, and none is one that
    instructions use without naming it.
    """
    other = instruction.copy()
    explicit: set[Any] = set()
    for k in range(instruction.op_count):
        place, cls, _ = operand(instruction, k, 0)
        if Place.REG <= place <= Place.IS4 and cls in STAND_IN:
            explicit.add(STAND_IN[cls] + k)
            other.set_op_register(k, STAND_IN[cls] + k)
        elif place == Place.FIXED and cls < NativeRegister.VECTOR:
            explicit.add(instruction.op_register(k))
    if instruction.memory_base not in (Register.NONE, Register.RIP, Register.EIP):
        explicit.add(Register.R10)
        other.memory_base = Register.R10
    if instruction.memory_index != Register.NONE and not instruction.is_vsib:
        explicit.add(Register.R9)
        other.memory_index = Register.R9
    return other, {RegisterExt.full_register(register) for register in explicit}


_MOST_IMPLICIT: Final = TEMPLATE["implicit_reads"].shape[0]
_STACK_OPERATIONS = ("push", "pop", "pushfq", "popfq")
