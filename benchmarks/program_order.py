"""Judge ratios of two builds of one program: their order, and by how much they differ.

    python -m benchmarks.program_order FOLDER --fitted FOLDER [--penalties FILE]
        [--weights WEIGHTS.json] [--result benchmarks/results/program_model.json]

FOLDER has the builds that ``python -m benchmarks.program_model … --builds`` collected and measured;
--fitted has the programs that weights are fitted to, for each program without its own project.
Pairs of builds count for the order if they differ by more than the noise: three times the median
difference of a build between the two sessions, and no less than 2 %.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import record
from benchmarks.program_builds import BUILDS
from benchmarks.program_judge import FORMS, WHOLE, Row, fitted_rows, row_of, write
from benchmarks.program_runs import load
from benchmarks.regalloc_sweep import say
from nestor.cost.contract import CostModel
from nestor.cost.registry import open_model_for
from nestor.program_cost import penalties as machines
from nestor.program_cost import weights
from nestor.program_cost.quantities import QUANTITIES

SMALLEST: Final = 0.02
AS_COMPARED: Final = "whole model, as `--against` has it"
"""The whole model with what blocks compute in proportion to instructions."""


def builds_of(
    work: Path, model: CostModel, penalties: machines.Penalties
) -> dict[str, dict[str, Row]]:
    """Return the builds of each program that were measured, by program and name."""
    found: dict[str, dict[str, Row]] = {}
    for run in load():
        for name in BUILDS:
            row = row_of(replace(run, build=name), work, model, penalties)
            if isinstance(row, Row):
                found.setdefault(run.program, {})[name] = row
    return found


def noise_of(programs: Mapping[str, Mapping[str, Row]]) -> float:
    """Return the least relative difference of two builds that counts."""
    apart = [
        max(row.sessions) / min(row.sessions) - 1
        for builds in programs.values()
        for row in builds.values()
        if len(row.sessions) > 1
    ]
    return max(SMALLEST, 3 * float(np.median(apart)) if apart else 0.0)


def judge(
    programs: Mapping[str, Mapping[str, Row]], fitted: Sequence[Row], noise: float
) -> record.Table:
    """Return the table of the forms of estimate."""
    lines = []
    for form in (*FORMS, AS_COMPARED):
        found = []
        for builds in programs.values():
            project = next(iter(builds.values())).run.project
            others = [row for row in fitted if row.run.project != project]
            for (a, b), ratio in _ratios(builds, others, form).items():
                found.append((ratio, builds[a].cycles / builds[b].cycles))
        errors = [100 * abs(ratio / measured - 1) for ratio, measured in found]
        counted = [pair for pair in found if abs(pair[1] - 1) > noise]
        said = [pair for pair in counted if 100 * abs(pair[0] - 1) > np.mean(errors)]
        lines.append(
            [
                form, [_right(counted), len(counted)], [_right(said), len(said)],
                float(np.mean(errors)), float(np.median(errors)),
            ]
        )  # fmt: skip
        say(f"{form:34} {lines[-1][1:3]} in order, ratio off by {lines[-1][3]:.2f} %")
    return record.table(
        [
            ("estimate by", "{}"),
            ("pairs in order", "{} of {}"),
            ("of those that it says differ by more than its error", "{} of {}"),
            ("error of the ratio, mean", "{:.2f} %"),
            ("median", "{:.2f} %"),
        ],
        lines,
    )


def _right(pairs: Sequence[tuple[float, float]]) -> int:
    return sum(bool((ratio - 1) * (measured - 1) > 0) for ratio, measured in pairs)


def _ratios(
    builds: Mapping[str, Row], fitted: Sequence[Row], form: str
) -> dict[tuple[str, str], float]:
    """Return the predicted ratio of each pair of builds."""
    own = WHOLE if form == AS_COMPARED else form
    values = weights.fit([row.of_form(own) for row in fitted], "shipped", "").array()
    parts = {name: row.of_form(own).totals * values for name, row in builds.items()}
    if form != AS_COMPARED:
        return {(a, b): parts[a].sum() / parts[b].sum() for a, b in combinations(builds, 2)}
    named = {
        name: dict(zip(QUANTITIES, part.tolist(), strict=True)) for name, part in parts.items()
    }
    return {
        (a, b): weights.ratio_of(
            named[a], named[b], builds[a].instructions / builds[b].instructions
        )
        for a, b in combinations(builds, 2)
    }


def each(programs: Mapping[str, Mapping[str, Row]]) -> record.Table:
    """Return a table of the builds: measured cycles beside those of the first build."""
    lines = [
        [program, *(_change(builds, name) for name in BUILDS)]
        for program, builds in programs.items()
    ]
    return record.table([("program", "{}"), *((name, "{:+.1f} %") for name in BUILDS)], lines)


def _change(builds: Mapping[str, Row], name: str) -> float | None:
    base = next(iter(builds.values()))
    return 100 * (builds[name].cycles / base.cycles - 1) if name in builds else None


def main() -> None:
    """Read the command line and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("work", type=Path)
    parser.add_argument("--fitted", type=Path, required=True)
    parser.add_argument("--penalties")
    parser.add_argument("--model", default="shipped")
    parser.add_argument("--machine")
    parser.add_argument("--weights", type=Path, help="a file that gets the error of ratios")
    parser.add_argument("--result", type=Path)
    words = parser.parse_args()
    penalties = machines.named(words.penalties)
    model = open_model_for(words.model, words.machine, penalties.machine)
    fitted = fitted_rows(words.fitted, model, penalties)
    programs = builds_of(words.work, model, penalties)
    noise = noise_of(programs)
    made = {"order": judge(programs, fitted, noise), "builds": each(programs)}
    if words.weights is not None:
        error = made["order"]["rows"][-1][3] / 100
        weights.save(replace(weights.load(words.weights), ratio_error=error), words.weights)
    nulls = [json.loads(f.read_text())["null"] for f in sorted(words.work.glob("null*.json"))]
    write(
        words.result, words.work, made,
        builds={"noise": noise, "nulls": nulls, "programs": len(programs)},
    )  # fmt: skip


if __name__ == "__main__":
    main()
