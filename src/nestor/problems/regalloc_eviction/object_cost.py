"""The cost of an object: each instruction, and each access to memory, counts one.

For the environment alone, whose compiles are without the plugin and thereby without its log of
costs. Decoding takes milliseconds, and the same object always has the same cost. It does not say
how often a block runs: a spill in a loop counts as one beside the loop.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import iced_x86
import lief
from iced_x86 import Mnemonic, OpAccess

from nestor.compiler.objects import ObjectError

_BITNESS: Final = 64
_READS: Final = frozenset(
    {OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE}
)
_WRITES: Final = frozenset(
    {OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE}
)


@dataclass(frozen=True)
class FunctionCost:
    """What one function is left with; padding (``nop``) does not count."""

    instructions: int
    reads: int
    """Accesses that read memory, those of ``pop`` and ``ret`` included."""
    writes: int
    """Accesses that write memory, those of ``push`` and ``call`` included."""
    text: int
    """Bytes of code."""

    @property
    def cost(self) -> int:
        """Instructions and accesses to memory."""
        return self.instructions + self.reads + self.writes


@dataclass(frozen=True)
class StaticCost:
    """The cost of an object: what a compile for this problem comes to."""

    functions: Mapping[str, FunctionCost]
    """By the symbol's name."""

    def total(self, column: str) -> int:
        """Return the sum of one attribute of :class:`FunctionCost` over all functions."""
        return sum(getattr(function, column) for function in self.functions.values())


def static_cost(code: Mapping[str, bytes]) -> StaticCost:
    """Return the cost of an object from the code of its functions (:func:`function_code`)."""
    return StaticCost({name: _cost(bytes_of) for name, bytes_of in code.items()})


def function_code(path: Path) -> dict[str, bytes]:
    """Return the code of each function of an object by its symbol's name.

    :raises ObjectError: if the file is no complete ELF object for x86-64.
    """
    lief.logging.disable()
    binary = lief.ELF.parse(str(path)) if path.exists() else None
    if binary is None or binary.header.machine_type != lief.ELF.ARCH.X86_64:
        raise ObjectError(f"'{path}' is no complete ELF object for x86-64.")
    sections = list(binary.sections)
    code: dict[str, bytes] = {}
    seen: set[tuple[int, int]] = set()
    for symbol, index in _functions(binary, len(sections)):
        place = (index, symbol.value)
        if place in seen:  # an alias, such as that of a complete constructor
            continue
        seen.add(place)
        content = bytes(sections[index].content[symbol.value : symbol.value + symbol.size])
        if len(content) != symbol.size:
            raise ObjectError(f"'{path}' ends within the function {symbol.name}.")
        code[str(symbol.name)] = content
    return code


def _functions(binary: Any, sections: int) -> Iterator[tuple[Any, int]]:
    for symbol in binary.symtab_symbols:
        defined = 0 < symbol.shndx < sections and symbol.size
        if defined and symbol.type == lief.ELF.Symbol.TYPE.FUNC:
            yield symbol, symbol.shndx


def _cost(code: bytes) -> FunctionCost:
    instructions = reads = writes = 0
    information = _information()
    for decoded in iced_x86.Decoder(_BITNESS, code):
        if decoded.mnemonic == Mnemonic.NOP:
            continue
        instructions += 1
        for used in information.info(decoded).used_memory():
            reads += used.access in _READS
            writes += used.access in _WRITES
    return FunctionCost(instructions, reads, writes, len(code))


@functools.cache
def _information() -> iced_x86.InstructionInfoFactory:
    return iced_x86.InstructionInfoFactory()
