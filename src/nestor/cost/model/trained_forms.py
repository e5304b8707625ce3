"""Which opcodes a model was trained on, and what those are called that it was not.

An *opcode* is iced-x86's ``Code`` with the prefixes that make another operation of it (lock, rep).
Its forms with and without a memory operand count as one: the simulated core knows what a load adds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from iced_x86 import Code, Instruction, OpCodeInfo
from numpy.typing import NDArray

from nestor.cost.isa.decoding import raw
from nestor.cost.isa.refusals import instruction_refusal
from nestor.cost.isa.templates import form_name, opcode_of
from nestor.cost.model.session import FormStatus


@dataclass(frozen=True)
class TrainedForms:
    """What the training rows of one machine say of instructions."""

    trained: frozenset[str]
    """Opcodes that training rows have."""
    borrowed: frozenset[str]
    """Opcodes that only rows of another machine have, whose costs stand in."""

    def statuses(self, forms: Sequence[str]) -> NDArray[np.int8]:
        """Return a :class:`FormStatus` for each form, by its name ``[forms]``."""
        return np.array([self._status(form) for form in forms], dtype=np.int8)

    def _status(self, form: str) -> FormStatus:
        opcode = opcode_of(form)
        if _is_refused(opcode):
            return FormStatus.REFUSED
        if opcode in self.trained:
            return FormStatus.TRAINED
        return FormStatus.BORROWED if opcode in self.borrowed else FormStatus.UNTRAINED

    def untrained(self, block: bytes) -> tuple[str, ...]:
        """Return the opcodes of a block that training lacks, as manuals write them, each once.

        :raises DecodeError: if the block cannot be decoded.
        """
        return tuple(as_in_manuals(name) for name in _opcodes(block) if name not in self.trained)

    def unmeasured(self, block: bytes) -> tuple[str, ...]:
        """Return those of them that were not measured on another machine either.

        :raises DecodeError: if the block cannot be decoded.
        """
        measured = self.trained | self.borrowed
        return tuple(as_in_manuals(name) for name in _opcodes(block) if name not in measured)


def _opcodes(block: bytes) -> dict[str, None]:
    """Return the opcodes of a block, in their order."""
    return dict.fromkeys(opcode_of(form_name(instruction)) for instruction in raw(block))


def as_in_manuals(opcode: str) -> str:
    """Return an opcode as the manuals of the processors write it: ``PDEP r64a, r64b, r/m64``."""
    code, *prefixes = opcode.split()
    return " ".join([*prefixes, OpCodeInfo(getattr(Code, code)).instruction_string])


def _is_refused(opcode: str) -> bool:
    bare = Instruction()
    bare.code = getattr(Code, opcode.split()[0])
    return bool(instruction_refusal(bare))
