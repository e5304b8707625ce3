"""How often blocks miss caches that nobody has simulated.

Boosted trees, one set for each level, say which part of the lines that a block accesses is missed;
how many it accesses, code and executions say. Sizes are relative to the cache, so that trees that
learned from one cache serve for others. They learn from runs that were simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.events.simulated.caches import Caches
from nestor.events.table import EventTable
from nestor.policy.boosting import Boosting, boost
from nestor.policy.bundle import load
from nestor.policy.trees import TreesPolicy, from_lightgbm
from nestor.program_cost.misses.features import FEATURES, Accesses, accesses_of_run

F64 = npt.NDArray[np.float64]

LEVELS: Final = ("l1_misses", "l2_misses", "llc_misses")
"""What is predicted. Misses of code and of the TLB are not: the model of whole programs loses
nothing without them (docs/studies/programs.md)."""
_UNPREDICTED: Final = ("code_misses", "tlb_misses")
BOOSTING: Final = Boosting(rounds=100, leaves=6, learning_rate=0.05, least_rows=300, l2=5.0)
PROBLEM: Final = "misses"
PACKAGED: Final = Path(str(resources.files("nestor"))) / "program_cost" / "data" / "misses"
"""The folder of the trees that come with Nestor."""
_FOLDS: Final = 3
_LEAST: Final = 1e-9


def capacities(caches: Caches) -> dict[str, float]:
    """Return the bytes of each level."""
    sizes = (caches.l1_kib, caches.l2_kib, caches.llc_kib)
    return {level: 1024.0 * kib for level, kib in zip(LEVELS, sizes, strict=True)}


@dataclass(frozen=True)
class Simulated:
    """A run to learn from."""

    project: str
    """Runs of one project are left out together."""
    accesses: Accesses
    misses: Mapping[str, F64]
    """Of each block and level ``[n]``, see :func:`misses`."""


def fit(runs: Sequence[Simulated], caches: Caches, seed: int = 0) -> dict[str, TreesPolicy]:
    """Return trees for each level.

    Blocks of one program are alike, and of others they are not: trees say too much of programs that
    they have not seen. So they are scaled by what fits the sums of programs that were left out.

    :param runs: of two projects or more.
    :param caches: those in which the runs missed.
    """
    return {
        level: _scaled(_trees(runs, level, capacity, seed), _scale(runs, level, capacity, seed))
        for level, capacity in capacities(caches).items()
    }


def _trees(runs: Sequence[Simulated], level: str, capacity: float, seed: int) -> TreesPolicy:
    """Return the trees of a level.

    A block weighs as the root of the lines that it accesses by instruction, so that neither the
    few hottest nor the many cold ones decide alone.
    """
    lines = np.concatenate([np.maximum(run.accesses.lines, _LEAST) for run in runs])
    work = np.concatenate(
        [np.full(len(run.accesses.rows), run.accesses.instructions) for run in runs]
    )
    x = np.concatenate([run.accesses.beside(capacity) for run in runs])
    y = np.minimum(np.concatenate([run.misses[level] for run in runs]) / lines, 1)
    booster = boost(x, y, np.sqrt(1000 * lines / work), seed, BOOSTING)
    return from_lightgbm(booster, FEATURES, "decision", problem=PROBLEM)


def _scale(runs: Sequence[Simulated], level: str, capacity: float, seed: int) -> float:
    """Return what the sums of programs left out have to be multiplied by, by least squares."""
    projects = sorted({run.project for run in runs})
    pairs = []
    for fold in range(_FOLDS):
        left_out = projects[fold::_FOLDS]
        kept = [run for run in runs if run.project not in left_out]
        if kept and left_out:
            trees = _trees(kept, level, capacity, seed)
            for run in runs:
                if run.project in left_out:
                    said = _parts(run.accesses, trees, capacity) @ run.accesses.lines
                    sums = float(said), float(run.misses[level].sum())
                    pairs.append([each / run.accesses.instructions for each in sums])
    own, counted = np.array(pairs, np.float64).reshape(-1, 2).T
    return float(own @ counted) / max(float(own @ own), _LEAST**2)


def _scaled(trees: TreesPolicy, scale: float) -> TreesPolicy:
    return replace(trees, value=trees.value * scale)


def _parts(accesses: Accesses, trees: TreesPolicy, capacity: float) -> F64:
    """Return which part of the lines that a block accesses is missed ``[n]``."""
    if not len(accesses.rows):
        return np.zeros(0)
    parts: F64 = np.clip(trees.fast_logits(accesses.beside(capacity)), 0, 1)
    return parts


def predicted(
    accesses: Accesses, trees: Mapping[str, TreesPolicy], caches: Caches
) -> dict[str, F64]:
    """Return the misses of each block and level ``[n]``: none has more than the one before it."""
    found: dict[str, F64] = {}
    most = accesses.lines
    for level, capacity in capacities(caches).items():
        most = np.minimum(_parts(accesses, trees[level], capacity) * accesses.lines, most)
        found[level] = most
    return found


def misses(accesses: Accesses, table: EventTable) -> dict[str, F64]:
    """Return the misses of each block and level that the source counted ``[n]``."""
    return {level: np.nan_to_num(table.numbers(level))[accesses.rows] for level in LEVELS}


def with_predicted(
    table: EventTable, trees: Mapping[str, TreesPolicy], caches: Caches
) -> EventTable:
    """Return a table with predicted misses in the place of counted ones.

    Those of code and of the TLB are not predicted and count nothing.
    """
    accesses = accesses_of_run(table)
    columns = {name: np.zeros(len(table), np.int64) for name in (*LEVELS, *_UNPREDICTED)}
    for level, own in predicted(accesses, trees, caches).items():
        columns[level][accesses.rows] = np.round(own)
    return table.with_columns(columns)


def packaged() -> dict[str, TreesPolicy]:
    """Return the trees that come with Nestor, by level."""
    found = {}
    for level in LEVELS:
        trees = load(PACKAGED / f"{level}.safetensors")
        assert isinstance(trees, TreesPolicy)
        found[level] = trees
    return found
