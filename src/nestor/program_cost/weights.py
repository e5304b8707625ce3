"""How much of each quantity is not hidden by other work: fitted to measured runs, with a prior.

A run's cycles are predicted as Σ weight × quantity. Weights are fitted by least squares on relative
errors, none below 0, each drawn to its prior: an event that is rare in the runs would otherwise get
any weight. Prior weights are those with which a core of today hides each (docs/guide/programs.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from nestor.errors import NestorError
from nestor.program_cost.documents import load_document, save_document
from nestor.program_cost.quantities import COMPUTED, QUANTITIES

F64 = npt.NDArray[np.float64]

PRIOR: Final[Mapping[str, float]] = {
    "compute": 1.0,
    "recurrence": 1.0,
    "taken": 0.33,
    "mispredict": 0.8,
    "l1": 0.6,
    "l2": 0.26,
    "llc": 0.35,
    "chased": 1.0,
    "code": 0.6,
    "tlb": 0.12,
    "rep": 1.0,
}
STRENGTH: Final = 0.3
"""How strongly weights are drawn to the prior: 1 is as strongly as by one run that consists of
nothing but the quantity."""
RATIO_ERROR: Final = 0.03
"""Relative error of the ratio of two builds of one program, where no fit says it."""
_FORMAT: Final = 1
_LARGEST: Final = 1 << 20
_MOST: Final = 1e3


class WeightsError(NestorError):
    """Weights that cannot be read, fitted or written; the text says what to do."""


FIRST: Final = "Intel(R) Xeon(R) Processor"
"""The machine whose weights stand for those of a machine that Nestor has none of."""


@dataclass(frozen=True)
class Weights:
    """Weights, and how far predictions by them are off."""

    values: Mapping[str, float]
    """By name of ``QUANTITIES``."""
    model: str = ""
    """The model of blocks that they were fitted with; empty if they are the prior."""
    machine: str = ""
    """Where the runs were measured."""
    error: float | None = None
    """Mean relative error of programs that were left out of the fit; None without a fit."""
    ratio_error: float = RATIO_ERROR
    """Relative error of the ratio of two builds."""
    runs: Mapping[str, float] = field(default_factory=dict)
    """By run, its relative error when it was left out."""

    def array(self) -> F64:
        """Return the weights in the order of ``QUANTITIES``."""
        return np.array([self.values[name] for name in QUANTITIES])


@dataclass(frozen=True)
class MeasuredRun:
    """A run of which the cycles are measured."""

    name: str
    group: str
    """The program: runs of one program are left out together."""
    totals: F64
    """Of ``QUANTITIES``."""
    cycles: float
    instructions: int
    """That it executed."""


def prior() -> Weights:
    """Return the weights of no fit."""
    return Weights(PRIOR)


def fit(runs: Sequence[MeasuredRun], model: str, machine: str) -> Weights:
    """Return weights fitted to runs, with the errors of each program when it is left out.

    :raises WeightsError: if there are fewer than three programs, or a run has no cycles.
    """
    if len({run.group for run in runs}) < 3:
        raise WeightsError("Too few programs for a fit: name runs of three or more.")
    if any(not (math.isfinite(run.cycles) and run.cycles > 0) for run in runs):
        raise WeightsError("A run has no cycles; measure them by 'nestor costmodel cycles'.")
    left_out = {
        group: _solve([run for run in runs if run.group != group])
        for group in {run.group for run in runs}
    }
    parts = [run.totals * left_out[run.group] for run in runs]
    errors = [float(own.sum()) / run.cycles - 1 for run, own in zip(runs, parts, strict=True)]
    values = dict(zip(QUANTITIES, _solve(runs).tolist(), strict=True))
    return Weights(
        values,
        model,
        machine,
        float(np.mean(np.abs(errors))),
        _ratio_error(runs, parts),
        {run.name: error for run, error in zip(runs, errors, strict=True)},
    )


def ratio_of(own: Mapping[str, float], other: Mapping[str, float], instructions: float) -> float:
    """Return the ratio of cycles of two builds, by which ``compare`` judges them.

    :param own: cycles by quantity, as ``other``.
    :param instructions: the ratio of instructions.
    """
    computed = sum(other[name] for name in COMPUTED)
    events = [sum(one[name] for name in QUANTITIES if name not in COMPUTED) for one in (own, other)]
    return (computed * instructions + events[0]) / (computed + events[1])


def _solve(runs: Sequence[MeasuredRun]) -> F64:
    start = np.array([PRIOR[name] for name in QUANTITIES])
    rows = np.stack([run.totals / run.cycles for run in runs])
    drawn = STRENGTH * np.diag(1 / start)
    wanted = np.concatenate([np.ones(len(runs)), np.full(len(start), STRENGTH)])
    solution: F64 = nnls(np.vstack([rows, drawn]), wanted)[0]
    return solution


def _ratio_error(runs: Sequence[MeasuredRun], parts: Sequence[F64]) -> float:
    """Return the mean relative error of ratios of runs of one program.

    :param parts: cycles of each run by quantity, ``[q]``.
    """
    named = [dict(zip(QUANTITIES, own.tolist(), strict=True)) for own in parts]
    errors = [
        abs(ratio_of(own, other, b.instructions / a.instructions) / (b.cycles / a.cycles) - 1)
        for (a, other), (b, own) in combinations(zip(runs, named, strict=True), 2)
        if a.group == b.group
    ]
    return float(np.mean(errors)) if errors else RATIO_ERROR


def save(weights: Weights, path: Path) -> None:
    """Write weights.

    :raises WeightsError: if the file cannot be written; one that was there stays as it was.
    """
    save_document(asdict(weights), _FORMAT, path, WeightsError)


def load(path: Path) -> Weights:
    """Return the weights in a file.

    :raises WeightsError: if it is of another kind.
    """
    return load_document(
        path, "weights of events", _FORMAT, _LARGEST, _read, WeightsError,
        "nestor costmodel fit-program",
    )  # fmt: skip


def _read(found: Any) -> Weights:
    values = {name: float(found["values"][name]) for name in QUANTITIES}
    runs = {str(name): float(error) for name, error in found["runs"].items()}
    error = None if found["error"] is None else float(found["error"])
    ratio_error = float(found["ratio_error"])
    numbers = [*values.values(), ratio_error, *([] if error is None else [error])]
    if not all(math.isfinite(number) and 0 <= number < _MOST for number in numbers):
        raise ValueError("a number is out of range")
    return Weights(values, str(found["model"]), str(found["machine"]), error, ratio_error, runs)


def packaged(machine: str = "") -> Weights:
    """Return the weights that come with Nestor: those fitted on ``machine``, if there are any.

    Else those of the machine that was measured first.
    """
    folder = Path(str(resources.files("nestor"))) / "program_cost" / "data" / "weights"
    found = {one.machine: one for one in map(load, sorted(folder.glob("*.json")))}
    return found.get(machine, found[FIRST])
