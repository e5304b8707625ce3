"""The code that a trace refers to: machine blocks, cut where control comes back into them.

An *entry* is the beginning of a block, or the instruction behind a call in it; its code runs to the
next call or jump, which is part of it. Entries of a block are numbered from 0.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import iced_x86
from iced_x86 import FlowControl, Mnemonic

from nestor.cost.elf.mapped import MappedFunction
from nestor.cost.isa.decoding import DecodeError, raw
from nestor.cost.trace.messages import EntryId

_STAYS: Final = frozenset({FlowControl.NEXT, FlowControl.INTERRUPT, FlowControl.EXCEPTION})
"""Instructions behind which no entry begins: LLVM has them neither as calls nor as terminators."""


def codes(functions: Iterable[MappedFunction], indices: Mapping[str, int]) -> dict[EntryId, bytes]:
    """Return the code of every entry of functions that a trace may refer to.

    Where several functions have one name, the first counts, as it does for a linker.

    :param indices: of functions, by name.
    """
    found: dict[EntryId, bytes] = {}
    for function in functions:
        own = [indices[name] for name in function.names if name in indices]
        for block in function.blocks if own else ():
            for number, code in enumerate(cut(block.code)):
                for index in own:
                    found.setdefault(EntryId(index, block.identity, number), code)
    return found


def cut(code: bytes) -> Iterator[bytes]:
    """Yield the code of each entry of a block; undecodable bytes are the end of the last one."""
    start = end = 0
    try:
        for instruction in raw(code):
            end += instruction.len
            if _leaves(instruction):
                yield code[start:end]
                start = end
    except DecodeError:
        pass
    if start < len(code):
        yield code[start:]


def straight(codes: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the runs of instructions without what may leave a block, in order.

    :raises DecodeError: at bytes that are no code.
    """
    run = b""
    for code in codes:
        start = 0
        for instruction in raw(code):
            end = start + instruction.len
            if instruction.flow_control == FlowControl.NEXT:
                run += code[start:end]
            elif run:
                yield run
                run = b""
            start = end
    if run:
        yield run


def _leaves(instruction: iced_x86.Instruction) -> bool:
    system_call = instruction.mnemonic == Mnemonic.SYSCALL
    return instruction.flow_control not in _STAYS and not system_call
