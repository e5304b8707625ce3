"""What mispredictions are worth that are predicted from a profile, without any simulated predictor.

    python -m benchmarks.program_predicted FOLDER [--penalties FILE]
        [--result benchmarks/results/program_model.json]

A compiler knows how often a branch is taken, and its code. How often such a branch is mispredicted
is read off the branches of other projects: those as biased, in the same direction, whose block
loads something or not. FOLDER is that of ``python -m benchmarks.program_model``; programs are
predicted without their project throughout, with simulated, predicted and no mispredictions.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks import record
from benchmarks.program_judge import WHOLE, Row, fitted_rows, write
from benchmarks.program_model import EVENTS
from benchmarks.regalloc_sweep import say
from nestor.cost.isa.decoding import DecodeError, decode
from nestor.cost.registry import open_model
from nestor.events import table as tables
from nestor.events.table import EventTable
from nestor.program_cost import penalties as machines
from nestor.program_cost import weights
from nestor.program_cost.quantities import QUANTITIES

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

BIASES: Final = (0.0, 0.001, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.501)
"""Bounds of the share of executions that go the rarer way."""
_KINDS: Final = 4 * (len(BIASES) - 1)
_MISPREDICT: Final = QUANTITIES.index("mispredict")


def kinds(table: EventTable) -> tuple[I64, F64]:
    """Return the kind of each conditional branch of a run, and its executions; -1 for others."""
    executions, taken = table.numbers("executions"), np.nan_to_num(table.numbers("taken"))
    share = np.divide(taken, executions, out=np.zeros_like(taken), where=executions > 0)
    rarer = np.clip(np.minimum(share, 1 - share), 0, 0.5)
    biased = np.searchsorted(BIASES, rarer, side="right") - 1
    found = np.full(len(table), -1, np.int64)
    for row, (code, leaves) in enumerate(
        zip(table.words("code"), table.words("exit"), strict=True)
    ):
        if leaves == "conditional":
            found[row] = 4 * biased[row] + 2 * _backward(code) + _loads(code)
    return found, executions


def _backward(code: bytes) -> bool:
    """Tell whether the branch at the end goes back; its last byte is that of the displacement."""
    return bool(code) and code[-1] >= 0x80


def _loads(code: bytes) -> bool:
    try:
        return any(m.access != "write" for one in decode(code) for m in one.memory)
    except DecodeError:
        return False


def rates_of(runs: Sequence[tuple[I64, F64, F64]]) -> F64:
    """Return how often branches of each kind are mispredicted; every program counts alike."""
    executed, missed = np.full(_KINDS, 1e-9), np.zeros(_KINDS)
    for found, executions, mispredicts in runs:
        kept = found >= 0
        whole = executions[kept].sum()
        executed += np.bincount(found[kept], executions[kept], _KINDS) / whole
        missed += np.bincount(found[kept], mispredicts[kept], _KINDS) / whole
    rates: F64 = missed / executed
    return rates


def predicted(rows: Sequence[Row], work: Path) -> dict[str, float]:
    """Return the mispredictions of each run as the branches of other projects have them."""
    runs: dict[str, tuple[I64, F64, F64]] = {}
    for row in rows:
        table = tables.read(work / row.run.name / EVENTS)
        found, executions = kinds(table)
        runs[row.run.name] = (found, executions, np.nan_to_num(table.numbers("mispredicts")))
    project = {row.run.name: row.run.project for row in rows}
    numbers = {}
    for name, (found, executions, _) in runs.items():
        rates = rates_of([own for other, own in runs.items() if project[other] != project[name]])
        kept = found >= 0
        numbers[name] = float((executions[kept] * rates[found[kept]]).sum())
    return numbers


def judge(rows: Sequence[Row], own: Mapping[str, float], penalty: float) -> record.Table:
    """Return the table: mean and median errors without, with predicted and with simulated."""
    lines = []
    for title, form in (("blocks", "blocks + mispredictions"), (WHOLE, WHOLE)):
        for way in ("none", "predicted", "simulated"):
            measured = []
            for row in rows:
                run = row.of_form(form)
                if way != "simulated":
                    count = own[row.run.name] if way == "predicted" else 0.0
                    run.totals[_MISPREDICT] = count * penalty
                measured.append(run)
            errors = 100 * np.abs(list(weights.fit(measured, "", "").runs.values()))
            lines.append([title, way, float(errors.mean()), float(np.median(errors))])
            say(f"{title:12} {way:10} mean {errors.mean():.1f} % median {np.median(errors):.1f} %")
    columns = [("estimate by", "{}"), ("mispredictions", "{}"), ("mean", "{:.1f} %")]
    return record.table([*columns, ("median", "{:.1f} %")], lines)


def main() -> None:
    """Read the command line and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("work", type=Path)
    parser.add_argument("--penalties")
    parser.add_argument("--result", type=Path)
    words = parser.parse_args()
    penalties = machines.named(words.penalties)
    rows = fitted_rows(words.work, open_model("shipped"), penalties)
    made = {"predicted": judge(rows, predicted(rows, words.work), penalties.mispredict)}
    write(words.result, made)


if __name__ == "__main__":
    main()
