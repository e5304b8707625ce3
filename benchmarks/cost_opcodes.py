"""Intervals of our cost model on opcodes that were held out of its training.

    python -m benchmarks.cost_opcodes [--folds 5] [--trees 300] [--passes 2]

*Held out of zen5*: every mnemonic that at most one row in a hundred has is held out in one of the
folds, with all rows that have it; a model is trained on the other rows, from the start, and judged
by the rows held out. Once without other measurements, once with the costs that the sweep on Zen 4
says (``--borrow zen4-sweep``).

*New on Zen 4*: a model is trained on the data set zen4 alone and judged by the blocks of zen4-sweep
with opcodes that zen4 lacks: single instructions and chains of everything that the decoder knows.

Coverage is the share of labels inside the 90 % interval; by opcode each opcode counts alike. The
columns "as before" are the intervals without what is learned from opcodes held out.
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
from nestor.cost.model import training
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.training import TrainingSettings
from nestor.cost.model.untrained import FREQUENT, SHARES, UntrainedIntervals
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
_UNWIDENED: Final = UntrainedIntervals(((1.0, 1.0),) * (len(SHARES) - 1))
_NAMES: Final = {v: n.lower() for n, v in vars(Mnemonic).items() if isinstance(v, int)}


@dataclass
class Judged:
    """Blocks with held-out opcodes, one row for each opcode and block."""

    opcodes: list[str] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)
    before: list[bool] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)
    withheld: int = 0

    def add(self, rows: Table, held: Sequence[frozenset[str]], model: HybridModel) -> None:
        """Judge ``model`` by ``rows``; ``held`` says which held-out opcodes each has."""
        now, then = model.predict(rows.blocks), _unwidened(model).predict(rows.blocks)
        inside, before = _inside(now, rows), _inside(then, rows)
        for row, opcodes in enumerate(held):
            if not np.isfinite(now.cycles[row]):
                self.withheld += 1
                continue
            for opcode in opcodes:
                self.opcodes.append(opcode)
                self.inside.append(bool(inside[row]))
                self.before.append(bool(before[row]))
                self.error.append(float(100 * abs(now.cycles[row] / rows.cycles[row] - 1)))
                self.ratio.append(float(now.high[row] / now.low[row]))

    def row(self, name: str) -> list[Any]:
        """Return the row of the table."""
        by_opcode = {opcode: [] for opcode in self.opcodes}  # type: dict[str, list[int]]
        for number, opcode in enumerate(self.opcodes):
            by_opcode[opcode].append(number)

        def mean_of_opcodes(values: Sequence[bool]) -> float:
            marks = np.array(values)
            return float(100 * np.mean([marks[rows].mean() for rows in by_opcode.values()]))

        return [
            name,
            len(by_opcode),
            len(self.opcodes),
            self.withheld,
            mean_of_opcodes(self.inside),
            100 * float(np.mean(self.inside)),
            mean_of_opcodes(self.before),
            100 * float(np.mean(self.before)),
            float(np.median(self.error)),
            float(np.median(self.ratio)),
        ]


def _inside(predicted: Prediction, rows: Table) -> NDArray[np.bool_]:
    return (predicted.low <= rows.cycles) & (rows.cycles <= predicted.high)


def _unwidened(model: HybridModel) -> HybridModel:
    machines = tuple(
        replace(part, untrained=_UNWIDENED, borrowed=_UNWIDENED) for part in model.parts.machines
    )
    return HybridModel(replace(model.parts, machines=machines))


def _mnemonics(block: bytes) -> frozenset[str]:
    return frozenset(_NAMES[instruction.mnemonic] for instruction in raw(block))


def held_out_of_zen5(
    folds: int, settings: TrainingSettings, borrowed: Table | None, note: Progress
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
        model = training.train(rows, use, settings, 0, note, borrowed)
        index = np.flatnonzero(has)
        judged.add(rows.select(index), [of_row[i] & out for i in index], model)
        print(f"fold {fold + 1}: {len(out)} mnemonics, {has.sum():,} rows", file=sys.stderr)
    return judged


def new_on_zen4(settings: TrainingSettings, note: Progress) -> Judged:
    """Train on zen4 alone and judge by what the sweep has and zen4 has not."""
    rows, sweep = _stable("zen4"), _stable("zen4-sweep")
    model = training.train(rows, np.arange(len(rows)), settings, 0, note)
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
        for borrowed in ("", "zen4-sweep"):
            judged = held_out_of_zen5(
                arguments.folds, settings, _stable(borrowed) if borrowed else None, note
            )
            how = f", costs of {borrowed}" if borrowed else ""
            rows.append(judged.row(f"opcodes held out of zen5{how}"))
            print(rows[-1], file=sys.stderr, flush=True)
    tables = {"coverage": record.table(COLUMNS, rows)}
    record.write(arguments.out, ABOUT, tables, describe(find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
