"""Judge the model of whole programs by the runs that ``benchmarks.program_model`` measured.

    python -m benchmarks.program_judge FOLDER [--penalties FILE] [--model shipped] [--machine NAME]
        [--untouched] [--packaged] [--weights WEIGHTS.json]
        [--result benchmarks/results/program_model.json]

Each program is predicted by a fit without its project: by instructions, by J, by blocks alone, with
mispredictions, by instructions with all events, and by the whole model. The programs that the list
calls untouched are predicted by the fit to all others: with --untouched, which is for the end, when
nothing is changed any more. With --packaged the whole model is judged by the weights that come with
Nestor, too, which were fitted to another machine's runs. A form stands beside the whole model with
the difference of its mean error, program by program, and a bootstrap interval over programs.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks import machine, record
from benchmarks.program_model import EVENTS
from benchmarks.program_recall import recalled
from benchmarks.program_runs import ProgramRun, load
from benchmarks.regalloc_sweep import say
from nestor.compiler.toolchain import find
from nestor.cost.contract import CostModel
from nestor.cost.registry import open_model_for
from nestor.events import table as tables
from nestor.program_cost import penalties as machines
from nestor.program_cost import weights
from nestor.program_cost.quantities import COMPUTED, QUANTITIES, quantities
from nestor.program_cost.weights import MeasuredRun

F64 = npt.NDArray[np.float64]

WHOLE: Final = "whole model"
PACKAGED: Final = "whole model, the weights of Nestor"
FORMS: Final = {
    "instructions": (),
    "J": (),
    "blocks": COMPUTED,
    "blocks + mispredictions": (*COMPUTED, "mispredict"),
    "instructions + events": QUANTITIES[2:],
    WHOLE: QUANTITIES,
}
"""Which quantities each form of estimate reads; some have a count besides."""
COUNTED: Final = {"instructions": 0.3, "J": 0.2, "instructions + events": 0.3}
"""Forms with a count in the place of what blocks compute, at a usual number of cycles each."""
MOST_KERNEL: Final = 0.1
SHORTEST: Final = 0.05
_DRAWS: Final = 10_000


@dataclass(frozen=True)
class Row:
    """A run: what is known of it, and what was measured."""

    run: ProgramRun
    totals: F64
    """Of ``QUANTITIES``."""
    instructions: int
    executed: int
    """J."""
    cycles: float
    sessions: tuple[float, ...]
    kernel: float
    unanswered: float

    def of_form(self, form: str) -> MeasuredRun:
        """Return the run as a form of estimate sees it."""
        own = np.where(np.isin(QUANTITIES, FORMS[form]), self.totals, 0.0)
        if form in COUNTED:
            own[0] = COUNTED[form] * (self.executed if form == "J" else self.instructions)
        return MeasuredRun(self.run.name, self.run.project, own, self.cycles, self.instructions)


def rows_of(
    work: Path, model: CostModel, penalties: machines.Penalties
) -> tuple[list[Row], dict[str, str]]:
    """Return the runs that can be used, and why the others cannot."""
    found, left_out = [], {}
    reasons = (recalled(work) or {}).get("left_out", {})
    for run in load():
        row = row_of(run, work, model, penalties)
        if isinstance(row, Row):
            found.append(row)
        else:
            left_out[run.program] = reasons.get(run.program, row)
    return found, left_out


def fitted_rows(work: Path, model: CostModel, penalties: machines.Penalties) -> list[Row]:
    """Return the runs that can be used and fitted."""
    return [row for row in rows_of(work, model, penalties)[0] if not row.run.untouched]


def write(path: Path | None, work: Path, made: Mapping[str, record.Table], **values: Any) -> None:
    """Write tables and values of the model of programs to a file of results, if one is named.

    :param work: whose cycles they are of.
    """
    if path is not None:
        about = "Cycles of whole programs, predicted."
        before = recalled(work)
        if before is not None:
            values["measured"] = before["measured"]
        measured_by = before["machine"] if before else machine.describe(find())
        record.write(path, about, made, measured_by, **values)


def row_of(
    run: ProgramRun, work: Path, model: CostModel, penalties: machines.Penalties
) -> Row | str:
    """Return what is known of a run, or why it cannot be used."""
    place = work / run.name
    if not (place / EVENTS).exists():
        return "it was not built or not counted"
    sessions = [json.loads(file.read_text()) for file in sorted(place.glob("cycles*.json"))]
    if not sessions:
        return "it was not measured"
    kernel = float(np.mean([one["system_share"] for one in sessions]))
    cycles = [float(one["minimum"]) for one in sessions]
    reason = _reason(sessions, kernel, min(cycles))
    if reason:
        return reason
    table = tables.read(place / EVENTS)
    summed = quantities(table, model, penalties)
    accesses = sum(table.total(event) or 0 for event in ("reads", "writes"))
    return Row(
        run, summed.totals(), table.instructions, table.instructions + accesses,
        min(cycles), tuple(cycles), kernel, summed.unanswered,
    )  # fmt: skip


def _reason(sessions: Sequence[Mapping[str, Any]], kernel: float, cycles: float) -> str:
    if any(one["status"] != 0 for one in sessions):
        return "its run fails"
    if kernel > MOST_KERNEL:
        return f"the kernel has {100 * kernel:.0f} % of its time"
    if cycles < SHORTEST * 3e9:
        return "its run is too short"
    return ""


def errors_of(rows: Sequence[Row], form: str) -> tuple[dict[str, float], weights.Weights]:
    """Return the relative error of each run by a form, and the weights of the fit.

    A fitted run has that of the fit without its project, an untouched one that of the whole fit.
    """
    fitted = weights.fit(
        [row.of_form(form) for row in rows if not row.run.untouched], "shipped", ""
    )
    errors = dict(fitted.runs)
    for row in rows:
        if row.run.untouched:
            one = row.of_form(form)
            errors[one.name] = float(one.totals @ fitted.array()) / one.cycles - 1
    return errors, fitted


def summary(errors: Mapping[str, float], names: Sequence[str]) -> tuple[float, float, float, str]:
    """Return mean, median and largest absolute error in per cent, and whose that is."""
    values = np.array([100 * abs(errors[name]) for name in names])
    worst = int(values.argmax())
    return float(values.mean()), float(np.median(values)), float(values[worst]), names[worst]


def interval(own: F64, other: F64) -> tuple[float, float, float]:
    """Return by how much more ``own`` is off than ``other``, and its 95 % interval."""
    random = np.random.default_rng(0)
    draws = random.integers(0, len(own), (_DRAWS, len(own)))
    means = (own - other)[draws].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float((own - other).mean()), float(low), float(high)


def errors_of_packaged(rows: Sequence[Row]) -> tuple[dict[str, float], weights.Weights]:
    """Return the relative error of each run by the weights that come with Nestor, and these."""
    own = weights.packaged()
    errors = {row.run.name: float(row.totals @ own.array()) / row.cycles - 1 for row in rows}
    return errors, own


def judge(
    rows: Sequence[Row], *, packaged: bool = False
) -> tuple[dict[str, record.Table], weights.Weights]:
    """Return the tables of results and the weights of the whole model."""
    names = {
        False: [row.run.name for row in rows if not row.run.untouched],
        True: [row.run.name for row in rows if row.run.untouched],
    }
    errors = {form: errors_of(rows, form) for form in FORMS}
    if packaged:
        errors[PACKAGED] = errors_of_packaged(rows)
    lines = []
    for form in errors:
        own, whole = errors[form][0], errors[WHOLE][0]
        mean, median, largest, worst = summary(own, names[False])
        cells: list[Any] = [form, mean, median, largest, worst]
        first, second = (
            np.array([100 * abs(of[name]) for name in names[False]]) for of in (own, whole)
        )
        cells += [None, None] if form == WHOLE else _difference(first, second)
        cells += summary(own, names[True])[:2] if names[True] else [None, None]
        lines.append(cells)
        say(f"{form:24} mean {mean:5.1f} median {median:5.1f} worst {largest:4.0f} ({worst})"
            f" untouched {cells[7]}")  # fmt: skip
    forms = record.table(
        [
            ("estimate by", "{}"),
            ("mean", "{:.1f} %"),
            ("median", "{:.1f} %"),
            ("largest", "{:.0f} %"),
            ("of", "{}"),
            ("more than the whole model", "{:+.1f}"),
            ("95 %", "{:+.1f} … {:+.1f}"),
            ("untouched, mean", "{:.1f} %"),
            ("untouched, median", "{:.1f} %"),
        ],
        lines,
    )
    fitted = errors[WHOLE][1]
    return {"forms": forms, "programs": _programs(rows, errors, fitted)}, fitted


def _difference(own: F64, whole: F64) -> list[Any]:
    mean, low, high = interval(own, whole)
    return [mean, [low, high]]


def _programs(
    rows: Sequence[Row],
    errors: Mapping[str, tuple[Mapping[str, float], weights.Weights]],
    fitted: weights.Weights,
) -> record.Table:
    lines = []
    for row in sorted(rows, key=lambda row: (row.run.untouched, row.run.name)):
        parts = row.totals * fitted.array()
        order = np.argsort(-parts)
        share = ", ".join(f"{QUANTITIES[k]} {100 * parts[k] / parts.sum():.0f}" for k in order[:3])
        lines.append(
            [
                row.run.name + (" (untouched)" if row.run.untouched else ""),
                row.cycles / 1e6,
                row.instructions / row.cycles,
                100 * row.kernel,
                100 * (max(row.sessions) / min(row.sessions) - 1),
                *(100 * errors[form][0][row.run.name] for form in ("J", "blocks", WHOLE)),
                share,
            ]
        )
    return record.table(
        [
            ("program", "{}"),
            ("million cycles", "{:,.0f}"),
            ("instructions a cycle", "{:.2f}"),
            ("kernel", "{:.1f} %"),
            ("between sessions", "{:.1f} %"),
            ("J", "{:+.1f} %"),
            ("blocks", "{:+.1f} %"),
            ("whole model", "{:+.1f} %"),
            ("largest parts, %", "{}"),
        ],
        lines,
    )


def _apart(rows: Sequence[Row]) -> float:
    """Return by how many per cent programs differ between sessions, in the median."""
    return 100 * float(np.median([max(row.sessions) / min(row.sessions) - 1 for row in rows]))


def main() -> None:
    """Read the command line and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("work", type=Path)
    parser.add_argument("--penalties")
    parser.add_argument("--model", default="shipped")
    parser.add_argument("--machine")
    parser.add_argument("--untouched", action="store_true")
    parser.add_argument("--packaged", action="store_true")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--result", type=Path)
    words = parser.parse_args()
    penalties = machines.named(words.penalties)
    rows, left_out = rows_of(
        words.work, open_model_for(words.model, words.machine, penalties.machine), penalties
    )
    rows = [row for row in rows if words.untouched or not row.run.untouched]
    for name, reason in left_out.items():
        say(f"{name} is left out: {reason}")
    made, fitted = judge(rows, packaged=words.packaged)
    before = recalled(words.work)
    nulls = [json.loads(file.read_text())["null"] for file in sorted(words.work.glob("null*.json"))]
    if words.weights is not None:
        # Two programs of one project are no builds of one program, whose ratio could be judged.
        kept = replace(
            fitted,
            model=words.model,
            machine=penalties.machine,
            ratio_error=weights.RATIO_ERROR,
        )
        weights.save(kept, words.weights)
    write(
        words.result, words.work, made,
        null=before["null"] if before else 100 * max(abs(null) for null in nulls),
        apart=_apart(rows), left_out=left_out,
        weights=dict(fitted.values),
        counts={
            "fitted": sum(not row.run.untouched for row in rows),
            "untouched": sum(row.run.untouched for row in rows),
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
