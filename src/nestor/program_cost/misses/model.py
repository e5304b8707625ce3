"""How often blocks miss caches that nobody has simulated.

Boosted trees, one set for each level, say which part of the lines that a block accesses is missed;
how many it accesses, code and executions say. Sizes are relative to the cache, so that trees that
learned from one cache serve for others. They learn from runs that were simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
_LEAST: Final = 1e-9


def capacities(caches: Caches) -> dict[str, float]:
    """Return the bytes of each level."""
    sizes = (caches.l1_kib, caches.l2_kib, caches.llc_kib)
    return {level: 1024.0 * kib for level, kib in zip(LEVELS, sizes, strict=True)}


def fit(
    runs: Sequence[tuple[Accesses, Mapping[str, F64]]], caches: Caches, seed: int = 0
) -> dict[str, TreesPolicy]:
    """Return trees for each level.

    A block weighs as the root of the lines that it accesses by instruction, so that neither the
    few hottest nor the many cold ones decide alone.

    :param runs: blocks with their misses of each level ``[n]``, see :func:`misses`.
    :param caches: those in which they missed.
    """
    lines = np.concatenate([np.maximum(accesses.lines, _LEAST) for accesses, _ in runs])
    work = np.concatenate([np.full(len(one.rows), one.instructions) for one, _ in runs])
    weight = np.sqrt(1000 * lines / work)
    found = {}
    for level, capacity in capacities(caches).items():
        x = np.concatenate([accesses.beside(capacity) for accesses, _ in runs])
        missed = np.concatenate([own[level] for _, own in runs])
        booster = boost(x, np.minimum(missed / lines, 1), weight, seed, BOOSTING)
        found[level] = from_lightgbm(booster, FEATURES, "decision", problem=PROBLEM)
    return found


def predicted(
    accesses: Accesses, trees: Mapping[str, TreesPolicy], caches: Caches
) -> dict[str, F64]:
    """Return the misses of each block and level ``[n]``: none has more than the one before it."""
    found: dict[str, F64] = {}
    most = accesses.lines
    for level, capacity in capacities(caches).items():
        if len(accesses.rows):
            parts = np.clip(trees[level].fast_logits(accesses.beside(capacity)), 0, 1)
            most = np.minimum(parts * accesses.lines, most)
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
    blocks = table.blocks
    for name, column in columns.items():
        blocks = blocks.set_column(blocks.column_names.index(name), name, pa.array(column))
    return replace(table, blocks=blocks)


def packaged() -> dict[str, TreesPolicy]:
    """Return the trees that come with Nestor, by level."""
    found = {}
    for level in LEVELS:
        trees = load(PACKAGED / f"{level}.safetensors")
        assert isinstance(trees, TreesPolicy)
        found[level] = trees
    return found
