"""Words of instructions as numbers, for the networks."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from nestor.cost.isa.decoding import Instruction, Memory

UNKNOWN: Final = 0
LEAST_COUNT: Final = 5
"""An instruction code seen less often in training goes by its mnemonic: one word to learn for
rare encodings, and one that unseen encodings fall back to."""


@dataclass(frozen=True)
class Vocabulary:
    """The words that a network knows; number 0 stands for every other."""

    words: tuple[str, ...]
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = {word: number for number, word in enumerate(self.words, 1)}
        object.__setattr__(self, "_numbers", numbers)

    def __len__(self) -> int:
        return len(self.words) + 1

    def number(self, word: str) -> int:
        """Return the number of a word."""
        return self._numbers.get(word, UNKNOWN)

    def operation(self, instruction: Instruction) -> int:
        """Return the number of the instruction's code, or else of its mnemonic."""
        return self._numbers.get(instruction.code) or self.number(instruction.mnemonic)


def build(blocks: Iterable[Sequence[Instruction]], marks: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of the training blocks: marks, registers, mnemonics and codes."""
    codes: Counter[str] = Counter()
    others: set[str] = set()
    for block in blocks:
        for instruction in block:
            codes[instruction.code] += 1
            others.update(instruction.reads, instruction.writes)
            others.add(instruction.mnemonic)
    common = sorted(code for code, count in codes.items() if count >= LEAST_COUNT)
    return Vocabulary((*marks, *sorted(others - {""}), *common))


def addressing(memory: Sequence[Memory]) -> frozenset[str]:
    """Return the registers that serve only to form addresses."""
    return frozenset(r for m in memory for r in (m.base, m.index) if r)
