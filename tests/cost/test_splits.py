"""Splits keep apart what they promise to keep apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestor.cost.blocks.splits import random_split, sequence_disjoint_split, split
from nestor.cost.blocks.table import Table, TableError, unlabelled
from nestor.cost.isa.decoding import sequence
from nestor.cost.settings import SPLITS, SplitName

# Three opcode sequences, each with many registers: add r, r; add r, r twice; mov r, imm32.
FEW = [bytes([0x01, 0xC0 + i]) for i in range(20)]
FEW += [bytes([0x01, 0xC0 + i, 0x01, 0xC8]) for i in range(20)]
FEW += [bytes([0xB8, i, 0, 0, 0]) for i in range(20)]


def table(blocks: list[bytes]) -> Table:
    return unlabelled(blocks)


@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(SPLITS))
def test_every_row_is_on_exactly_one_side(seed: int, name: SplitName) -> None:
    parts = split(table(FEW), name, seed, 0.4)
    both = np.concatenate([parts.train, parts.test])
    assert sorted(both.tolist()) == list(range(len(FEW)))
    assert 0 < len(parts.test) <= 0.4 * len(FEW)


@given(seed=st.integers(0, 2**32 - 1))
def test_no_opcode_sequence_is_on_both_sides(seed: int) -> None:
    parts = sequence_disjoint_split(table(FEW), seed, 0.4)
    train = {sequence(FEW[i]) for i in parts.train}
    assert train.isdisjoint(sequence(FEW[i]) for i in parts.test)


def test_a_random_split_shares_sequences_but_no_block() -> None:
    twice = table(FEW + FEW)  # as with two machines
    parts = random_split(twice, 0, 0.3)
    train = {twice.blocks[i] for i in parts.train}
    test = {twice.blocks[i] for i in parts.test}
    assert train.isdisjoint(test)
    assert {sequence(b) for b in train} & {sequence(b) for b in test}


def test_the_seed_decides() -> None:
    first, again, other = (random_split(table(FEW), seed).test.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_a_block_that_is_no_code_is_a_sequence_of_its_own() -> None:
    parts = sequence_disjoint_split(table([*FEW, b"\x06", b"\x07"]), 0, 0.4)
    assert len(parts.train) + len(parts.test) == len(FEW) + 2


@pytest.mark.parametrize("blocks", [[], [b"\x90"], [b"\x90"] * 9])
def test_what_cannot_be_split_is_refused(blocks: list[bytes]) -> None:
    for name in SPLITS:
        with pytest.raises(TableError, match="take a larger table"):
            split(table(blocks), name, 0)
