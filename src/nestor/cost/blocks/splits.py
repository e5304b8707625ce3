"""Which rows train a cost model and which judge it.

Real code repeats itself: of two blocks that differ in a register or a constant one may train and
the other test, and a model that remembers looks as good as one that understands. So every
result is reported for two splits: *random*, and *sequence-disjoint*, where no test block shares its
sequence of instruction codes (iced-x86's ``Code``: mnemonic, operand kinds and widths) with a
training block.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nestor.cost.blocks.table import Table, TableError
from nestor.cost.isa.decoding import DecodeError, sequence
from nestor.cost.settings import SplitName

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Row numbers in rising order; no row is in both."""

    train: Index
    test: Index


def split(table: Table, name: SplitName, seed: int, test: float = 0.2) -> Split:
    """Return the split called ``name``."""
    splits = {"random": random_split, "sequence-disjoint": sequence_disjoint_split}
    return splits[name](table, seed, test)


def random_split(table: Table, seed: int, test: float = 0.2) -> Split:
    """Draw ``test`` of all blocks; the rows of one block (on several machines) stay together.

    :raises TableError: if one side would be empty.
    """
    return _by_group(_numbered(table.blocks), seed, test)


def sequence_disjoint_split(table: Table, seed: int, test: float = 0.2) -> Split:
    """Draw opcode sequences until they hold ``test`` of all rows.

    :raises TableError: if one side would be empty.
    """
    return _by_group(sequence_groups(table), seed, test)


def sequence_groups(table: Table) -> Index:
    """Return a number for each row's opcode sequence ``[n]``; an undecodable block has its own.

    The statistics draw these groups: the errors of rows that share a sequence go together.
    """
    return _numbered([_key(block) for block in table.blocks])


def _key(block: bytes) -> object:
    try:
        return sequence(block)
    except DecodeError:
        return block


def _numbered(keys: tuple[bytes, ...] | list[object]) -> Index:
    """Return for each key the number of its first appearance among different keys."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _by_group(groups: Index, seed: int, test: float) -> Split:
    sizes = np.bincount(groups)
    order = np.random.default_rng(seed).permutation(len(sizes))
    # The groups whose rows, added up in the drawn order, stay within the share wanted.
    drawn = order[np.cumsum(sizes[order]) <= round(test * len(groups))]
    held_out = np.isin(groups, drawn)
    if held_out.all() or not held_out.any():
        raise TableError(
            f"{len(groups)} rows cannot be split into training and test; take a larger table."
        )
    return Split(np.flatnonzero(~held_out), np.flatnonzero(held_out))
