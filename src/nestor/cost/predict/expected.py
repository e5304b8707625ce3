"""What one call of a function is expected to cost, by the frequencies that its object carries.

Two costs are summed over the blocks of a function, each times its frequency: the *cycles* that a
cost model predicts, and the *static cost*, instructions plus memory reads plus memory writes of the
final code. Both are pure functions of the object's bytes, so they serve as rewards. They know no
cache misses and no mispredicted branches: a model of such events would be a third function of
:class:`~nestor.cost.elf.mapped.MappedFunction`, which also holds the probabilities of branches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nestor.cost.contract import CostModel
from nestor.cost.elf import mapped
from nestor.cost.elf.mapped import MappedBlock, MappedFunction
from nestor.cost.isa.decoding import DecodeError, decode
from nestor.cost.isa.recurrence import jumps_to_itself
from nestor.cost.predict.single_pass import pass_cycles
from nestor.cost.sources.splitting import split


@dataclass(frozen=True)
class StaticCost:
    """Counts for one call of a function; each instruction counts as often as it runs."""

    instructions: float
    reads: float
    """Instructions that read memory, calls and returns by their stack slot included."""
    writes: float
    """Instructions that write memory."""
    updates: float
    """Instructions that do both: two accesses here, and one in the counts of callgrind."""
    undecodable: int
    """Blocks that are expected to run and hold bytes that are no code: they count nothing."""

    @property
    def total(self) -> float:
        """The static cost."""
        return self.instructions + self.reads + self.writes


@dataclass(frozen=True)
class ExpectedCycles:
    """Predicted cycles of one call; blocks without an answer are left out."""

    cycles: float
    """Sum of frequency × cycles of a block. A block that does not jump back to its own beginning
    waits for no register of its own last pass (:mod:`nestor.cost.isa.recurrence`)."""
    repeated: float
    """The same as if every block repeated by itself, which is what a cost model answers for."""
    unanswered: int
    """Blocks that are expected to run, and that the model has no answer for."""


@dataclass(frozen=True)
class ExpectedCost:
    """What one call of a function costs."""

    function: MappedFunction
    static: StaticCost
    cycles: ExpectedCycles


def cycles_by_function(content: bytes, model: CostModel) -> dict[str, float]:
    """Return the expected cycles of one call, by function.

    :param content: an object compiled with :data:`~nestor.cost.elf.mapped.FLAGS`.
    :raises ObjectFileError: if it cannot be read, or has no frequencies.
    """
    functions = mapped.functions(content, frequencies=True)
    sums = expected_cycles(functions, model)
    return {f.name: found.cycles for f, found in zip(functions, sums, strict=True)}


def static_by_function(content: bytes) -> dict[str, StaticCost]:
    """Return the static cost of one call, by function.

    :param content: an object compiled with :data:`~nestor.cost.elf.mapped.FLAGS`.
    :raises ObjectFileError: if it cannot be read, or has no frequencies.
    """
    return {f.name: static_cost(f) for f in mapped.functions(content, frequencies=True)}


def expected_costs(functions: Sequence[MappedFunction], model: CostModel) -> list[ExpectedCost]:
    """Return both costs of functions that have frequencies, in their order."""
    return [
        ExpectedCost(function, static_cost(function), cycles)
        for function, cycles in zip(functions, expected_cycles(functions, model), strict=True)
    ]


def static_cost(function: MappedFunction) -> StaticCost:
    """Return the counts of one call of ``function``."""
    counts, frequencies, undecodable = [], [], 0
    for block in function.blocks:
        if block.frequency:
            try:
                counts.append(_counts(block.code + block.filling))
                frequencies.append(block.frequency)
            except DecodeError:
                undecodable += 1
    sums = np.array(frequencies) @ np.array(counts, dtype=np.float64).reshape(-1, 4)
    instructions, reads, writes, updates = sums.tolist()
    return StaticCost(instructions, reads, writes, updates, undecodable)


def expected_cycles(functions: Sequence[MappedFunction], model: CostModel) -> list[ExpectedCycles]:
    """Return the predicted cycles of one call of each function."""
    blocks = [
        (number, block, _Pieces.of(block))
        for number, function in enumerate(functions)
        for block in function.blocks
        if block.frequency
    ]
    distinct = list(dict.fromkeys(code for _, _, pieces in blocks for code in pieces.codes))
    place = {code: row for row, code in enumerate(distinct)}
    predicted = pass_cycles(model, distinct)
    found = [ExpectedCycles(0.0, 0.0, 0)] * len(functions)
    for number, block, pieces in blocks:
        rows = [place[code] for code in pieces.codes]
        repeated = predicted.repeated[rows]
        single = repeated if pieces.loops else predicted.single[rows]
        before, frequency = found[number], block.frequency or 0.0
        found[number] = ExpectedCycles(
            before.cycles + frequency * float(np.nansum(single)),
            before.repeated + frequency * float(np.nansum(repeated)),
            before.unanswered + bool(np.isnan(repeated).any()),
        )
    return found


@dataclass(frozen=True)
class _Pieces:
    """What a model predicts of a block: its runs of code between its calls and jumps."""

    codes: tuple[bytes, ...]
    loops: bool
    """The block repeats by itself."""

    @staticmethod
    def of(block: MappedBlock) -> "_Pieces":
        codes = tuple(split(block.code + block.filling).blocks)
        try:
            return _Pieces(codes, len(codes) == 1 and jumps_to_itself(block.code))
        except DecodeError:
            return _Pieces(codes, loops=False)


def _counts(code: bytes) -> tuple[int, int, int, int]:
    """Return instructions, those that read memory, those that write it, and those that do both.

    :raises DecodeError: if the bytes are no code.
    """
    instructions = reads = writes = updates = 0
    for instruction in decode(code):
        accesses = {memory.access for memory in instruction.memory}
        reading = not accesses.isdisjoint(("read", "read-write"))
        writing = not accesses.isdisjoint(("write", "read-write"))
        instructions += 1
        reads += reading
        writes += writing
        updates += reading and writing
    return instructions, reads, writes, updates
