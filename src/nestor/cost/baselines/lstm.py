"""A hierarchical LSTM over the text of a block, in the way of Ithemal.

Source of the method: Mendis, Renda, Amarasinghe, Carbin, "Ithemal: Accurate, Portable and Fast
Basic Block Throughput Estimation using Deep Neural Networks", ICML 2019. The words of an
instruction (its code, what it reads, what it writes; constants are one word) go through a first
LSTM, whose last states go through a second one over the block. Ours differs in size (the CPU
budget), in the answer (logarithm of the cycles of one instruction, times their number, which
spares it from counting) and in the loss (see ``training``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from nestor.cost.baselines import vocabulary
from nestor.cost.baselines.vocabulary import Vocabulary
from nestor.cost.isa.decoding import Instruction

Index = NDArray[np.int64]

KIND: Final = "lstm"
_MARKS: Final = ("<reads>", "<writes>", "<memory>", "<constant>", "<end>")
LONGEST: Final = 24
"""Words of one instruction that are read."""


@dataclass(frozen=True)
class Sizes:
    """How large the network is."""

    embedding: int = 48
    hidden: int = 96


@dataclass(frozen=True)
class Encoded:
    """Blocks as word numbers; different instructions are kept once."""

    words: NDArray[np.int32]
    """Words of the different instructions, 0-padded ``[u, LONGEST]``."""
    lengths: Index
    """Their numbers of words ``[u]``."""
    instructions: Index
    """Rows of ``words``, block after block."""
    starts: Index
    """Where each block begins in ``instructions``, and the end ``[n + 1]``."""

    @property
    def costs(self) -> Index:
        """Instructions of each block: what a batch is filled by ``[n]``."""
        return np.diff(self.starts)

    def batch(self, rows: Index) -> tuple[Tensor, ...]:
        """Return words, lengths, block lines and block lengths of the blocks ``rows``."""
        counts = np.diff(self.starts)[rows]
        lines = np.zeros((len(rows), int(counts.max())), dtype=np.int64)
        inside = np.arange(lines.shape[1]) < counts[:, None]
        flat = np.concatenate(
            [self.instructions[self.starts[row] : self.starts[row + 1]] for row in rows]
        )
        different, where = np.unique(flat, return_inverse=True)
        lines[inside] = where
        lengths = self.lengths[different]
        words = self.words[different, : int(lengths.max())].astype(np.int64)
        parts = (words, lengths, lines, counts)
        return tuple(torch.from_numpy(np.ascontiguousarray(part)) for part in parts)


def words_of(training: Sequence[Sequence[Instruction]]) -> Vocabulary:
    """Return the vocabulary of training blocks."""
    return vocabulary.build(training, _MARKS)


def encode(blocks: Sequence[Sequence[Instruction]], words: Vocabulary) -> Encoded:
    """Return ``blocks``, none of them empty, as the network reads them."""
    rows: dict[tuple[int, ...], int] = {}
    row_of: dict[bytes, int] = {}
    lines, starts = [], [0]
    for block in blocks:
        for instruction in block:
            row = row_of.get(instruction.bytes)
            if row is None:
                row = rows.setdefault(_numbers(instruction, words), len(rows))
                row_of[instruction.bytes] = row
            lines.append(row)
        starts.append(len(lines))
    table = np.zeros((len(rows), LONGEST), dtype=np.int32)
    for numbers, row in rows.items():
        table[row, : len(numbers)] = numbers
    lengths = np.array([len(numbers) for numbers in rows], dtype=np.int64)
    return Encoded(
        table, lengths, np.array(lines, dtype=np.int64), np.array(starts, dtype=np.int64)
    )


def _numbers(instruction: Instruction, words: Vocabulary) -> tuple[int, ...]:
    address = vocabulary.addressing(instruction.memory)
    said = ["<reads>", *(r for r in instruction.reads if r not in address)]
    for memory in instruction.memory:
        if memory.access != "write":
            said += ["<memory>", *(r for r in (memory.base, memory.index) if r)]
    if instruction.immediate is not None:
        said.append("<constant>")
    said += ["<writes>", *instruction.writes]
    for memory in instruction.memory:
        if memory.access != "read":
            said += ["<memory>", *(r for r in (memory.base, memory.index) if r)]
    numbers = [words.operation(instruction), *(words.number(word) for word in said)]
    return (*numbers[: LONGEST - 1], words.number("<end>"))


class Network(nn.Module):
    """Words → instructions → block → logarithm of the cycles."""

    def __init__(self, words: int, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, sizes.embedding)
        self.instruction = nn.LSTM(sizes.embedding, sizes.hidden, batch_first=True)
        self.block = nn.LSTM(sizes.hidden, sizes.hidden, batch_first=True)
        self.head = nn.Linear(sizes.hidden, 1)

    def forward(self, words: Tensor, lengths: Tensor, lines: Tensor, counts: Tensor) -> Tensor:
        """Return the logarithm of the cycles ``[blocks]``."""
        states = _last(self.instruction, self.embedding(words), lengths)
        # index_select, for the gradient of an index costs many times more
        chosen = states.index_select(0, lines.flatten()).view(*lines.shape, -1)
        block = _last(self.block, chosen, counts)
        answer: Tensor = self.head(block).squeeze(1) + counts.to(block.dtype).log()
        return answer


def _last(lstm: nn.LSTM, inputs: Tensor, lengths: Tensor) -> Tensor:
    """Return the state after the last step of each sequence ``[sequences, hidden]``."""
    # the lengths are wanted on the processor, wherever the rest is
    packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
    _, (state, _) = lstm(packed)
    last: Tensor = state[0]
    return last
