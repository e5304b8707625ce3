"""What keeps a policy back: how much of the gain carries over from other projects?

    python -m benchmarks.transfer CORPUS RUN [--language c] [--json FILE]

RUN is the folder of a distillation. The gain of each trial of the language's projects is predicted
by models that have seen other code only: other projects, of which a part is left out to see what
more of them would bring; and the same project, but never the same callee, which no policy made
beforehand can have. *Followed* is what the trials predicted to save more than ``LEAST`` bytes add
up to, mean and median over projects, and *there is* what all that saved bytes add up to. A site
that was tried again counts once. Trials are moves made one at a time, some of them alternatives,
so this says which model knows more, not what a program would save (``benchmarks.across`` builds).
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import record
from benchmarks.ablation import FEATURES, trials_of
from benchmarks.machine import describe
from benchmarks.pool import PROBLEM
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.learn.distil import gain_model
from nestor.learn.distil.gain_model import GainSettings, Rows
from nestor.learn.distil.gain_trees import Trees

LEAST = 6.0
FOLDS = 4
Mask = npt.NDArray[np.bool_]
Split = tuple[Mask, Mask]
"""Rows to fit, and rows to predict."""

_USES = ("callee_uses", "callee_call_uses", "callee_disappears")
"""Features of the callee that change while its callers are decided."""


def other_projects(data: Rows, own: Mask, part: float, seed: int) -> Iterator[Split]:
    """Yield splits by project; of the projects of ``own`` rows only a ``part`` is fitted."""
    rng = np.random.default_rng(seed)
    projects = rng.permutation(np.unique(data.project[own]))
    for fold in range(FOLDS):
        held_out = projects[fold::FOLDS]
        rest = rng.permutation(np.setdiff1d(projects, held_out))
        left_out = rest[int(np.ceil(part * len(rest))) :]
        yield (
            ~np.isin(data.project, np.concatenate([held_out, left_out])),
            np.isin(data.project, held_out),
        )


def other_callees(data: Rows, own: Mask, seed: int) -> Iterator[Split]:
    """Yield splits by callee, told apart by project and features."""
    names = [
        index
        for index, name in enumerate(FEATURES)
        if name.startswith("callee_") and name not in _USES
    ]
    key = np.column_stack([data.project, data.x[:, names]])
    callee = np.unique(key, axis=0, return_inverse=True)[1].reshape(-1)
    fold = np.random.default_rng(seed).integers(0, FOLDS, callee.max() + 1)[callee]
    for number in range(FOLDS):
        yield fold != number, own & (fold == number)


def by_project(data: Rows, own: Mask, which: Mask) -> npt.NDArray[np.float64]:
    """Return what those rows of ``own`` that are ``which`` add up to in each project, per cent."""
    sums = np.bincount(data.project, data.part * (own & which))
    return 100.0 * np.asarray(sums[np.unique(data.project[own])], np.float64)


def once(data: Rows) -> Rows:
    """Return ``data`` with the gain of equal rows divided among them."""
    key = np.column_stack([data.project, data.x])
    _, same, count = np.unique(key, axis=0, return_inverse=True, return_counts=True)
    return replace(data, part=data.part / count[same.reshape(-1)])


def score(data: Rows, own: Mask, splits: Iterator[Split], seed: int) -> tuple[float, float, float]:
    """Return correlation, and percent followed: mean and median over projects."""
    predicted = np.zeros(len(data.y))
    for use, ask in splits:
        model = Trees().fit(data.x[use], data.y[use], data.weight[use], seed, coarse=False)
        predicted[ask] = model.predict(data.x[ask])
    right = float(np.corrcoef(data.y[own], predicted[own])[0, 1])
    saved = by_project(data, own, predicted > LEAST)
    return right, float(saved.mean()), float(np.median(saved))


def main() -> int:
    """Print a row per way of splitting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--language", choices=("c", "c++"), default="c")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    trials = trials_of(options.run)
    language = {p.name: p.language for p in store.load(options.corpus).programs}
    both = gain_model.rows(trials, FEATURES, PROBLEM, GainSettings(), 0)
    with_summary = np.arange(len(both.y)) < len(trials)  # each trial once
    data = once(replace(both, part=2 * both.part).where(with_summary))
    own = np.array([language[name] == options.language for name in trials.programs])[trials.program]
    rows: list[list[Any]] = []
    for part in (0.25, 0.5, 0.75, 1.0, None):
        found = [
            score(
                data,
                own,
                other_callees(data, own, seed)
                if part is None
                else other_projects(data, own, part, seed),
                seed,
            )
            for seed in options.seeds
        ]
        correlation, mean, median = np.mean(found, axis=0).tolist()
        name = "same project, other callees"
        if part is not None:
            name = f"other projects, {100 * part:.0f} % of those in {options.language}"
        rows.append([name, correlation, mean, median])
        print(
            f"{name:36} correlation {correlation:.3f}  followed {mean:+.2f} %"
            f" (median {median:+.2f} %)",
            flush=True,
        )
    there = by_project(data, own, data.part > 0)
    print(f"there is {there.mean():+.2f} % (median {np.median(there):+.2f} %)")
    if options.json:
        columns = [("fitted to", "{}"), ("correlation", "{:.3f}"), ("followed, mean", "{:+.2f} %"),
                   ("median", "{:+.2f} %")]  # fmt: skip
        tables = {"splits": record.table(columns, rows)}
        about = f"How much of the gain of trials in {options.language} follows from other code."
        machine = describe(find())
        record.write(options.json, about, tables, machine, there_is_pct=float(there.mean()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
