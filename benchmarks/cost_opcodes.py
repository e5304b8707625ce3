"""Intervals of our cost model on opcodes that were held out of its training.

    python -m benchmarks.cost_opcodes [--folds 5] [--trees 300] [--passes 2]

*Held out of zen5*: every mnemonic that at most one row in a hundred has is held out in one of the
folds, with all rows that have it; a model is trained on the other rows, from the start, with the
costs that the sweep on Zen 4 says of what is missing, and judged by the rows held out.

*New on Zen 4*: a model is trained on the data set zen4 alone and judged by the blocks of zen4-sweep
with opcodes that zen4 lacks: single instructions and chains of everything that the decoder knows.
Nothing measured stands in for them, so no answer is right and any answer is counted.

Coverage is the share of labels inside the 90 % interval; by opcode each opcode counts alike. The
columns "as before" are the intervals of the same models without regard to opcodes.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from iced_x86 import Mnemonic
from numpy.typing import NDArray

from benchmarks import record
from benchmarks.machine import describe
from nestor.cli.console import progress
from nestor.compiler.toolchain import find
from nestor.cost.blocks import table
from nestor.cost.blocks.table import Table
from nestor.cost.contract import Prediction
from nestor.cost.isa.decoding import raw
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.trained_forms import TrainedForms
from nestor.cost.sweep.examples import CODES
from nestor.cost.training import train as own
from nestor.cost.training.held_out_opcodes import FREQUENT
from nestor.cost.training.settings import TrainingSettings
from nestor.progress import Progress

RESULT: Final = Path("benchmarks/results/cost_opcodes.json")
ABOUT: Final = (
    "90 % intervals of our cost model on opcodes that were held out of its training: the share of"
    " stable labels inside, by opcode (each counts alike) and by block."
)
COLUMNS: Final = (
    ("judged by", "{}"),
    ("opcodes", "{:,}"),
    ("blocks", "{:,}"),
    ("no answer", "{:,}"),
    ("coverage by opcode", "{:.1f} %"),
    ("coverage by block", "{:.1f} %"),
    ("by opcode, as before", "{:.1f} %"),
    ("by block, as before", "{:.1f} %"),
    ("median error", "{:.1f} %"),
    ("median high / low", "{:.2f}"),
)
_ALL: Final = TrainedForms(
    frozenset(f"{code} {prefix}".strip() for code in CODES for prefix in ("", "lock", "rep")),
    frozenset(),
)
_NAMES: Final = {v: n.lower() for n, v in vars(Mnemonic).items() if isinstance(v, int)}


@dataclass
class Judged:
    """Blocks with held-out opcodes, one row for each opcode and block."""

    opcodes: list[str] = field(default_factory=list)
    answered: list[bool] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)
    before: list[bool] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    """In per cent; NaN without an answer."""
    ratio: list[float] = field(default_factory=list)
    """Of the upper end to the lower; NaN without an answer."""

    def add(self, rows: Table, held: Sequence[frozenset[str]], model: HybridModel) -> None:
        """Judge ``model`` by ``rows``; ``held`` says which held-out opcodes each has."""
        now, then = model.predict(rows.blocks), _regardless(model).predict(rows.blocks)
        inside, before = _inside(now, rows), _inside(then, rows)
        for row, opcodes in enumerate(held):
            for opcode in opcodes:
                self.opcodes.append(opcode)
                self.answered.append(bool(np.isfinite(now.cycles[row])))
                self.inside.append(bool(inside[row]))
                self.before.append(bool(before[row]))
                self.error.append(float(100 * abs(now.cycles[row] / rows.cycles[row] - 1)))
                self.ratio.append(float(now.high[row] / now.low[row]))

    def row(self, name: str) -> list[Any]:
        """Return the row of the table; None where nothing was answered."""
        answered = np.array(self.answered)
        some = bool(answered.any())
        every = np.ones(len(answered), dtype=np.bool_)
        return [
            name,
            len(set(self.opcodes)),
            len(self.opcodes),
            int((~answered).sum()),
            self._by_opcode(self.inside, answered) if some else None,
            100 * float(np.mean(np.array(self.inside)[answered])) if some else None,
            self._by_opcode(self.before, every),
            100 * float(np.mean(self.before)),
            float(np.nanmedian(self.error)) if some else None,
            float(np.nanmedian(self.ratio)) if some else None,
        ]

    def _by_opcode(self, marks: Sequence[bool], rows: NDArray[np.bool_]) -> float:
        """Return the mean over opcodes of the share of ``marks`` among ``rows``, in per cent."""
        shares: dict[str, list[bool]] = {}
        for number in np.flatnonzero(rows).tolist():
            shares.setdefault(self.opcodes[number], []).append(marks[number])
        return float(100 * np.mean([np.mean(values) for values in shares.values()]))


def _inside(predicted: Prediction, rows: Table) -> NDArray[np.bool_]:
    return (predicted.low <= rows.cycles) & (rows.cycles <= predicted.high)


def _regardless(model: HybridModel) -> HybridModel:
    """Return a model that takes every opcode as one of its training."""
    machines = tuple(replace(part, opcodes=_ALL) for part in model.parts.machines)
    return HybridModel(replace(model.parts, machines=machines))


def _mnemonics(block: bytes) -> frozenset[str]:
    return frozenset(_NAMES[instruction.mnemonic] for instruction in raw(block))


def held_out_of_zen5(
    folds: int, settings: TrainingSettings, borrowed: Table, note: Progress
) -> Judged:
    """Hold every rare mnemonic out of zen5 in one of ``folds``."""
    rows = _stable("zen5")
    of_row = [_mnemonics(block) for block in rows.blocks]
    counts: dict[str, int] = {}
    for names in of_row:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    rare = sorted(name for name, count in counts.items() if count <= FREQUENT * len(rows))
    order = np.random.default_rng(1).permutation(len(rare))
    judged = Judged()
    for fold in range(folds):
        out = frozenset(rare[i] for i in order[fold::folds])
        has = np.array([not names.isdisjoint(out) for names in of_row])
        use = np.flatnonzero(~has)
        # The sweep of the other machine stays: it is what a new opcode would be looked up in.
        model = own.train(rows, use, settings, 0, note, borrowed)
        index = np.flatnonzero(has)
        judged.add(rows.select(index), [of_row[i] & out for i in index], model)
        print(f"fold {fold + 1}: {len(out)} mnemonics, {has.sum():,} rows", file=sys.stderr)
    return judged


def new_on_zen4(settings: TrainingSettings, note: Progress) -> Judged:
    """Train on zen4 alone and judge by what the sweep has and zen4 has not."""
    rows, sweep = _stable("zen4"), _stable("zen4-sweep")
    model = own.train(rows, np.arange(len(rows)), settings, 0, note)
    held = [frozenset(model.part.opcodes.untrained(block)) for block in sweep.blocks]
    index = np.flatnonzero([bool(names) for names in held])
    judged = Judged()
    judged.add(sweep.select(index), [held[i] for i in index], model)
    return judged


def _stable(name: str) -> Table:
    rows = table.named(name)
    return rows.select(rows.stable)


def main() -> int:
    """Train, judge, print and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    settings = TrainingSettings(passes=arguments.passes, trees=arguments.trees, threads=1)
    rows = []
    with progress() as note:
        rows.append(new_on_zen4(settings, note).row("opcodes of zen4-sweep that zen4 lacks"))
        print(rows[-1], file=sys.stderr, flush=True)
        judged = held_out_of_zen5(arguments.folds, settings, _stable("zen4-sweep"), note)
        rows.append(judged.row("opcodes held out of zen5, with costs of zen4-sweep"))
        print(rows[-1], file=sys.stderr, flush=True)
    tables = {"coverage": record.table(COLUMNS, rows)}
    record.write(arguments.out, ABOUT, tables, describe(find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
