"""The sweep as a table of blocks."""

from collections.abc import Collection

import numpy as np

from nestor.cost.blocks.table import Table
from nestor.cost.isa.decoding import DecodeError, raw
from nestor.cost.isa.templates import form_name, opcode_of
from nestor.cost.sweep.patterns import sweep


def sweep_table(left_out: Collection[str] = ()) -> tuple[Table, int]:
    """Return the blocks of a sweep without labels, each once, and how many opcodes they are of.

    ``source`` is the pattern and ``function`` the opcode.

    :param left_out: opcodes to leave out.
    """
    rows = {row.block: row for row in sweep(left_out)}
    unknown = np.full(len(rows), np.nan)
    found = Table(
        tuple(rows),
        unknown,
        unknown.copy(),
        source=tuple(f"sweep: {row.pattern}" for row in rows.values()),
        function=tuple(row.opcode for row in rows.values()),
    )
    return found, len({row.opcode for row in rows.values()})


def opcodes_in(rows: Table) -> frozenset[str]:
    """Return the opcodes of all blocks that can be decoded."""
    found: set[str] = set()
    for block in rows.blocks:
        try:
            found |= {opcode_of(form_name(instruction)) for instruction in raw(block)}
        except DecodeError:
            continue
    return frozenset(found)
