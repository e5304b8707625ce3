"""What misses are worth that are predicted from a profile, without any simulated cache.

    python -m benchmarks.program_misses FOLDER [--penalties FILE] [--untouched]
        [--trees FOLDER] [--result benchmarks/results/program_model.json]

Which part of the lines that a block accesses is missed is learned from the blocks of other projects
(``nestor.program_cost.misses``), as it is for mispredictions in ``benchmarks.program_predicted``:
every program is predicted without its project throughout, those that are never fitted teach nothing
and are judged with --untouched alone. Misses are simulated, predicted or left out, beside simulated
and predicted mispredictions. --trees writes the trees that all others make, for the package.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import record
from benchmarks.program_judge import WHOLE, Row, errors_of, errors_of_packaged, write
from benchmarks.program_model import CACHES, EVENTS
from benchmarks.program_predicted import (
    WAYS,
    Cycles,
    counted,
    gain,
    judged_rows,
    means_of,
    predictions,
    with_cycles,
)
from benchmarks.program_runs import load
from benchmarks.regalloc_sweep import say
from nestor.events import table as tables
from nestor.events.table import EventTable
from nestor.policy.bundle import save
from nestor.policy.trees import TreesPolicy
from nestor.program_cost import penalties as machines
from nestor.program_cost.misses.features import accesses_of_run
from nestor.program_cost.misses.model import Simulated, fit, misses, with_predicted
from nestor.program_cost.penalties import Penalties
from nestor.program_cost.quantities import chased_blocks, event_quantities

MISSES: Final = ("l1", "l2", "llc", "chased", "code", "tlb")
"""Quantities that misses make."""


def simulated(work: Path) -> list[Simulated]:
    """Return what can be learned from the runs that were counted, but those never fitted."""
    found = []
    for run in load():
        path = work / run.name / EVENTS
        if path.exists() and not run.untouched:
            table = tables.read(path)
            accesses = accesses_of_run(table)
            found.append(Simulated(run.project, accesses, misses(accesses, table)))
    return found


def cycles_of(
    rows: Sequence[Row], runs: Sequence[Simulated], work: Path, penalties: Penalties
) -> Mapping[str, Cycles]:
    """Return the cycles that misses cost, by way."""
    found: dict[str, dict[str, Mapping[str, float]]] = {way: {} for way in WAYS}
    of_all = fit(runs, CACHES)
    for project in sorted({row.run.project for row in rows}):
        own = [row for row in rows if row.run.project == project]
        others = [run for run in runs if run.project != project]
        trees = of_all if own[0].run.untouched else fit(others, CACHES)
        for row in own:
            table = tables.read(work / row.run.name / EVENTS)
            by_way = _quantities(table, trees, penalties)
            for way, cycles in by_way.items():
                found[way][row.run.name] = cycles
            of_predicted, of_simulated = (
                1000 * sum(by_way[way].values()) / row.instructions for way in WAYS[1:]
            )
            say(f"{row.run.name:32} predicted {of_predicted:6.1f} simulated {of_simulated:6.1f}"
                " cycles in 1,000 instructions if nothing is hidden")  # fmt: skip
    return found


def _quantities(
    table: EventTable, trees: Mapping[str, TreesPolicy], penalties: Penalties
) -> dict[str, dict[str, float]]:
    """Return the cycles of each quantity that misses make, by way."""
    chased = chased_blocks(table)
    found = {"none": dict.fromkeys(MISSES, 0.0)}
    ways = {"predicted": with_predicted(table, trees, CACHES), "simulated": table}
    for way, own in ways.items():
        cycles = event_quantities(own, penalties, chased)
        found[way] = {name: float(cycles[name].sum()) for name in MISSES}
    return found


def judge(
    rows: Sequence[Row], missed_cycles: Mapping[str, Cycles], mispredicted: Mapping[str, float]
) -> record.Table:
    """Return the table: errors without, with predicted and with simulated misses.

    :param mispredicted: cycles of predicted mispredictions by run.
    """
    lines: list[list[Any]] = []
    for mispredictions in ("simulated", "predicted"):
        for way in WAYS:
            own = missed_cycles[way]
            if mispredictions == "predicted":
                own = {
                    name: {**cycles, "mispredict": mispredicted[name]}
                    for name, cycles in own.items()
                }
            changed = with_cycles(rows, own)
            means = means_of(rows, errors_of(changed, WHOLE)[0])
            packaged = means_of(rows, errors_of_packaged(changed)[0])
            lines.append([mispredictions, way, *means, packaged[2], None])
            say(f"{mispredictions:10} {way:10} {lines[-1][2:7]}")
        lines[-2][7] = gain(lines)
    return record.table(
        [
            ("mispredictions", "{}"),
            ("misses", "{}"),
            ("mean", "{:.1f} %"),
            ("median", "{:.1f} %"),
            ("untouched, mean", "{:.1f} %"),
            ("untouched, median", "{:.1f} %"),
            ("untouched, by the weights of Nestor", "{:.1f} %"),
            ("of the gain of simulated ones", "{:.0f} %"),
        ],
        lines,
    )


def main() -> None:
    """Read the command line and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("work", type=Path)
    parser.add_argument("--penalties")
    parser.add_argument("--untouched", action="store_true")
    parser.add_argument("--trees", type=Path)
    parser.add_argument("--result", type=Path)
    words = parser.parse_args()
    penalties = machines.named(words.penalties)
    runs = simulated(words.work)
    if words.trees is not None:
        for level, trees in fit(runs, CACHES).items():
            save(trees, words.trees / f"{level}.safetensors")
    rows = judged_rows(words.work, penalties, None, untouched=words.untouched)
    numbers = predictions(counted(words.work), rows)
    mispredicted = {name: penalties.mispredict * number for name, number in numbers.items()}
    made = judge(rows, cycles_of(rows, runs, words.work, penalties), mispredicted)
    write(words.result, words.work, {"predicted_misses": made})


if __name__ == "__main__":
    main()
