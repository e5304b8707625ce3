"""What mispredictions are worth that are predicted from a profile, without any simulated predictor.

    python -m benchmarks.program_predicted FOLDER [--penalties FILE] [--untouched]
        [--trees TREES.safetensors] [--result benchmarks/results/program_model.json]

A compiler with a profile knows how often a branch is taken, the counts of edges, and the code. How
often such a branch is mispredicted is learned from the branches of other projects
(``nestor.program_cost.mispredictions``). FOLDER is that of ``python -m benchmarks.program_model``;
every program is predicted without its project throughout, with simulated, predicted and no
mispredictions. Runs that are too short to be timed teach their branches all the same. Programs that
are never fitted teach nothing and are judged with --untouched alone: at the end. --trees writes the
trees that all others make, for the package.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks import record
from benchmarks.program_judge import WHOLE, Row, errors_of, rows_of, summary, write
from benchmarks.program_model import EVENTS
from benchmarks.program_runs import ProgramRun, load
from benchmarks.regalloc_sweep import say
from nestor.cost.registry import open_model_for
from nestor.events import table as tables
from nestor.policy.bundle import save
from nestor.policy.trees import TreesPolicy
from nestor.program_cost import penalties as machines
from nestor.program_cost.mispredictions.features import Branches, branches_of
from nestor.program_cost.mispredictions.model import fit, mispredictions, predicted
from nestor.program_cost.penalties import Penalties
from nestor.program_cost.quantities import QUANTITIES

F64 = npt.NDArray[np.float64]
Cycles = Mapping[str, Mapping[str, float]]
"""By run and quantity."""


@dataclass(frozen=True)
class Counted:
    """The branches of a run."""

    run: ProgramRun
    branches: Branches
    mispredictions: F64
    """As simulated, of each branch."""


FORMS: Final = (("blocks", "blocks + mispredictions"), (WHOLE, WHOLE))
WAYS: Final = ("none", "predicted", "simulated")


def counted(work: Path) -> list[Counted]:
    """Return the branches of each run that was counted."""
    found = []
    for run in load():
        if (work / run.name / EVENTS).exists():
            table = tables.read(work / run.name / EVENTS)
            branches = branches_of(table)
            found.append(Counted(run, branches, mispredictions(branches, table)))
    return found


def trees_of(runs: Sequence[Counted], without: str = "") -> TreesPolicy:
    """Return the trees that all runs make, but those of a project and those never fitted."""
    return fit(
        [
            (one.branches, one.mispredictions)
            for one in runs
            if one.run.project != without and not one.run.untouched
        ]
    )


def judged_rows(
    work: Path, penalties: Penalties, machine: str | None, *, untouched: bool
) -> list[Row]:
    """Return the runs that are judged.

    :param machine: whose blocks are priced; None: that of the penalties.
    :param untouched: those that are never fitted, too.
    """
    model = open_model_for("shipped", machine, penalties.machine)
    rows = rows_of(work, model, penalties)[0]
    return [row for row in rows if untouched or not row.run.untouched]


def predictions(runs: Sequence[Counted], rows: Sequence[Row]) -> dict[str, float]:
    """Return the mispredictions of each run by trees that never saw its project.

    :param rows: those that are judged: other runs that are never fitted are not predicted.
    """
    names, numbers = {row.run.name for row in rows}, {}
    own = [one for one in runs if not one.run.untouched or one.run.name in names]
    for project in sorted({one.run.project for one in own}):
        trees = trees_of(own, project)
        for one in own:
            if one.run.project == project:
                number = float(predicted(one.branches, trees).sum())
                numbers[one.run.name] = number
                simulated = one.mispredictions.sum()
                say(f"{one.run.name:32} predicted {number:14,.0f} simulated {simulated:14,.0f}")
    return numbers


def with_cycles(rows: Sequence[Row], own: Cycles) -> list[Row]:
    """Return the runs with other cycles in the place of those that were simulated."""
    return [
        replace(
            row,
            totals=np.array(
                [
                    own.get(row.run.name, {}).get(name, cycles)
                    for name, cycles in zip(QUANTITIES, row.totals.tolist(), strict=True)
                ]
            ),
        )
        for row in rows
    ]


def means_of(rows: Sequence[Row], errors: Mapping[str, float]) -> list[float | None]:
    """Return mean and median error of fitted runs, and of untouched ones if there are any."""
    found: list[float | None] = []
    for untouched in (False, True):
        names = [row.run.name for row in rows if row.run.untouched == untouched]
        found += summary(errors, names)[:2] if names else (None, None)
    return found


def gain(lines: Sequence[Sequence[Any]]) -> float:
    """Return how much of what simulated events gain predicted ones do, in per cent.

    :param lines: the last three are of WAYS, with the mean error in the third column.
    """
    none, of_predicted, of_simulated = (line[2] for line in lines[-3:])
    return float(100 * (none - of_predicted) / (none - of_simulated))


def judge(rows: Sequence[Row], own: Mapping[str, float], penalty: float) -> record.Table:
    """Return the table: errors without, with predicted and with simulated mispredictions."""
    cycles: dict[str, Cycles] = {
        "none": {name: {"mispredict": 0.0} for name in own},
        "predicted": {name: {"mispredict": count * penalty} for name, count in own.items()},
        "simulated": {},
    }
    lines: list[list[Any]] = []
    for title, form in FORMS:
        for way in WAYS:
            means = means_of(rows, errors_of(with_cycles(rows, cycles[way]), form)[0])
            lines.append([title, way, *means, None])
            say(f"{title:12} {way:10} {means}")
        lines[-2][6] = gain(lines)
        say(f"{title:12} predicted gain {lines[-2][6]:.0f} % of what simulated gain")
    return record.table(
        [
            ("estimate by", "{}"),
            ("mispredictions", "{}"),
            ("mean", "{:.1f} %"),
            ("median", "{:.1f} %"),
            ("untouched, mean", "{:.1f} %"),
            ("untouched, median", "{:.1f} %"),
            ("of the gain of simulated ones", "{:.0f} %"),
        ],
        lines,
    )


def main() -> None:
    """Read the command line and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("work", type=Path)
    parser.add_argument("--penalties")
    parser.add_argument("--machine")
    parser.add_argument("--untouched", action="store_true")
    parser.add_argument("--trees", type=Path)
    parser.add_argument("--result", type=Path)
    words = parser.parse_args()
    penalties = machines.named(words.penalties)
    runs = counted(words.work)
    if words.trees is not None:
        save(trees_of(runs), words.trees)
    rows = judged_rows(words.work, penalties, words.machine, untouched=words.untouched)
    own = predictions(runs, rows)
    write(words.result, words.work, {"predicted": judge(rows, own, penalties.mispredict)})


if __name__ == "__main__":
    main()
