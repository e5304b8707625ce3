"""The compiler's numbers of a program's blocks, from its basic-block address map.

By its number a block is found again in the compiler, whatever address it has. A map's block may
hold several of ours, since LLVM's blocks run through calls.
"""

import bisect
from pathlib import Path

import pyarrow as pa

from nestor.cost.elf import mapped
from nestor.errors import NestorError
from nestor.events.table import MAP_BLOCK, EventTable


def with_map_blocks(table: EventTable, program: Path) -> EventTable:
    """Return a table with the numbers of the blocks of ``program``, if it has a map."""
    try:
        functions = mapped.read(program)
    except NestorError:
        return table
    blocks = sorted(
        (block.address, block.address + len(block.code), block.identity)
        for function in functions
        for block in function.blocks
    )
    starts = [start for start, _, _ in blocks]

    def number(name: str, address: int) -> int | None:
        at = bisect.bisect_right(starts, address) - 1
        if Path(name).name != program.name or at < 0 or address >= blocks[at][1]:
            return None
        return blocks[at][2]

    places = zip(table.words("object"), table.words("address"), strict=True)
    column = pa.array([number(name, address) for name, address in places], pa.int64())
    return table.with_columns({MAP_BLOCK: column})
