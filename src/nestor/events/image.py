"""The code of programs and libraries by its address, for sources that give addresses alone."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import iced_x86
import lief
from iced_x86 import FlowControl, Mnemonic

from nestor.errors import NestorError
from nestor.events.table import EXITS
from nestor.files import read_regular

_LARGEST: Final = 1 << 30
_COMPARES: Final = frozenset(
    {Mnemonic.CMPSB, Mnemonic.CMPSW, Mnemonic.CMPSD, Mnemonic.CMPSQ}
)  # of memory with memory; the vector instruction CMPSD never repeats
_KIND: Final = {name: number for number, name in enumerate(EXITS)}
_BY_FLOW: Final[Mapping[int, int]] = {
    FlowControl.CONDITIONAL_BRANCH: _KIND["conditional"],
    FlowControl.UNCONDITIONAL_BRANCH: _KIND["jump"],
    FlowControl.CALL: _KIND["call"],
    FlowControl.RETURN: _KIND["return"],
    FlowControl.INDIRECT_BRANCH: _KIND["indirect jump"],
    FlowControl.INDIRECT_CALL: _KIND["indirect call"],
}


@dataclass(frozen=True)
class Segment:
    """An executable piece of a file."""

    address: int
    """Where it is loaded, by the file."""
    offset: int
    """Where it is in the file."""
    code: bytes


class Image:
    """The code of one file."""

    def __init__(self, segments: Sequence[Segment], functions: Mapping[int, str]):
        self.segments = tuple(segments)
        self.function_start = sorted(functions)
        self.function_name = [functions[start] for start in self.function_start]

    @staticmethod
    def read(path: Path) -> "Image | None":
        """Return the code of an ELF file for x86-64; None if there is none."""
        try:
            content = read_regular(path, "code", limit=_LARGEST)
        except NestorError:
            return None
        return Image.parse(content)

    @staticmethod
    def parse(content: bytes) -> "Image | None":
        """Return the code in the bytes of an ELF file; None if they are no such file."""
        lief.logging.disable()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # LIEF's, of what it does not know
            binary = lief.ELF.parse(content) if content.startswith(b"\x7fELF") else None
            if binary is None or binary.header.machine_type != lief.ELF.ARCH.X86_64:
                return None
            segments = [
                Segment(s.virtual_address, s.file_offset, bytes(s.content))
                for s in binary.segments
                if s.type == lief.ELF.Segment.TYPE.LOAD and s.has(lief.ELF.Segment.FLAGS.X)
            ]
            functions: dict[int, str] = {}
            ends: set[int] = set()
            for symbol in binary.symbols:
                if symbol.type == lief.ELF.Symbol.TYPE.FUNC and symbol.shndx and symbol.size:
                    name = symbol.name
                    text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
                    functions.setdefault(symbol.value, text)
                    ends.add(symbol.value + symbol.size)
        # Code behind a function that no other begins with has no name: that of a library often.
        return Image(segments, dict.fromkeys(ends, "") | functions)

    def at(self, address: int) -> bytes:
        """Return the bytes of the instruction at an address; empty if no code is there."""
        for segment in self.segments:
            start = address - segment.address
            if 0 <= start < len(segment.code):
                decoder = iced_x86.Decoder(64, segment.code[start : start + 15])
                instruction = decoder.decode()
                if instruction.is_invalid:
                    return b""
                return segment.code[start : start + instruction.len]
        return b""

    def address_of(self, offset: int) -> int | None:
        """Return the address of a place in the file; None if no code is there."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + len(segment.code):
                return segment.address + offset - segment.offset
        return None


def kind_of(code: bytes) -> int:
    """Return how an instruction passes control on, as a position in ``EXITS``."""
    instruction = iced_x86.Decoder(64, code).decode()
    if instruction.mnemonic == Mnemonic.SYSCALL:
        return _KIND["system call"]
    if instruction.is_string_instruction and (
        instruction.has_rep_prefix or instruction.has_repne_prefix
    ):
        return _KIND["repeats"]
    return _BY_FLOW.get(instruction.flow_control, _KIND["falls through"])


def string_accesses(code: bytes) -> int:
    """Return how often one turn of a string instruction reads, or writes if it only writes."""
    return 2 if iced_x86.Decoder(64, code).decode().mnemonic in _COMPARES else 1


def string_bytes(code: bytes) -> int:
    """Return the bytes that one turn of a string instruction moves or looks at."""
    instruction = iced_x86.Decoder(64, code).decode()
    return int(iced_x86.MemorySizeExt.size(instruction.memory_size))
