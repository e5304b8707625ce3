"""Make a trace of a real run, from the addresses of the instructions that it executed.

The addresses are read as valgrind's tool ``lackey`` prints them (``--trace-mem=yes``), a line
``I  ADDRESS,SIZE`` for each instruction. Code without a map, such as that of libraries, leaves no
mark in the trace.
"""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from nestor.cost.elf import mapped
from nestor.cost.elf.binary import LARGEST_OBJECT
from nestor.cost.trace.entries import cut
from nestor.cost.trace.messages import (
    EntryId,
    TraceError,
    function_index_record,
    identifier_record,
    segment_record,
)
from nestor.cost.trace.riegeli import write_records
from nestor.files import read_regular

TRACE, INDEX = "bb_trace.pb", "function_index.pb"
"""Names of the two files of a trace."""
_INSTRUCTION: Final = b"I  "
"""How lackey's line of an instruction begins."""
_EXECUTABLE: Final = 2
"""ELF's type of a program that is loaded at its own addresses."""


class Recorder:
    """Turns executed addresses of one program into segments of a trace."""

    def __init__(self, program: Path):
        """Read the map of ``program``.

        :raises NestorError: if it has none, or is not loaded at its own addresses.
        """
        content = read_regular(program, "a program", limit=LARGEST_OBJECT)
        if content[16:18] != struct.pack("<H", _EXECUTABLE):
            raise TraceError(f"'{program}' is no program at fixed addresses; link it with -no-pie.")
        self.blocks = 0
        """Entries that ran, of all segments so far."""
        self.functions: dict[str, int] = {}
        """Indices of the functions of the program, by name."""
        self._entries: dict[bytes, bytes] = {}
        for function in mapped.read(program):
            if not function.name:
                continue
            index = self.functions.setdefault(function.name, len(self.functions))
            for block in function.blocks:
                address = block.address
                for number, code in enumerate(cut(block.code)):
                    entry = identifier_record(EntryId(index, block.identity, number))
                    self._entries.setdefault(b"%08x" % address, entry)
                    address += len(code)

    def segments(self, lines: Iterable[bytes], most_blocks: int) -> Iterator[bytes]:
        """Yield the records of a run's segments.

        :param lines: what lackey printed.
        :param most_blocks: entries after which a segment ends.
        """
        entries, prefix, start = self._entries, _INSTRUCTION, len(_INSTRUCTION)
        ran: list[bytes] = []
        for line in lines:
            if line.startswith(prefix):
                entry = entries.get(line[start:].partition(b",")[0])
                if entry is not None:
                    ran.append(entry)
                    if len(ran) >= most_blocks:
                        self.blocks += len(ran)
                        yield segment_record(ran)
                        ran = []
        if ran:
            self.blocks += len(ran)
            yield segment_record(ran)


def record(lines: Iterable[bytes], program: Path, folder: Path, most_blocks: int) -> int:
    """Write the trace of a run into a folder; return how many entries of blocks ran.

    :param lines: what lackey printed of the run of ``program``.
    :raises NestorError: if the program has no map, or none of its blocks ran.
    :raises OSError: if the folder cannot be written.
    """
    recorder = Recorder(program)
    folder.mkdir(parents=True, exist_ok=True)
    write_records(folder / TRACE, recorder.segments(lines, most_blocks))
    if not recorder.blocks:
        (folder / TRACE).unlink()
        raise TraceError(
            f"No block of '{program}' ran; pipe in what 'valgrind --tool=lackey --trace-mem=yes"
            f" {program}' prints."
        )
    write_records(folder / INDEX, [function_index_record(recorder.functions)])
    return recorder.blocks
