"""Train any kind of cost model on the same rows."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nestor.cost.baselines import bound, mca, rescaled
from nestor.cost.baselines.mca import McaModel
from nestor.cost.blocks.methods import require_one_method
from nestor.cost.blocks.table import Table, TableError
from nestor.cost.contract import CostModel
from nestor.cost.settings import Kind, TrainerSettings
from nestor.cost.training import train as own
from nestor.progress import Progress, silent

Index = NDArray[np.int64]


def training_rows(table: Table, rows: Index) -> Index:
    """Return the rows that train: those with a stable label, or all labelled if there is no spread.

    :raises TableError: if there is none.
    """
    has_spread = bool(np.isfinite(table.spread[rows]).any())
    usable = rows[(table.stable if has_spread else table.labelled)[rows]]
    if len(usable) == 0:
        raise TableError(
            "No row has a stable number of cycles to train on; 'nestor blocks measure' adds it."
        )
    return usable


def train(
    kind: Kind,
    table: Table,
    rows: Index,
    settings: TrainerSettings | None = None,
    seed: int = 0,
    checkpoint: Path | None = None,
    progress: Progress = silent,
    borrowed: Table | None = None,
) -> CostModel:
    """Return a model of ``kind`` trained on ``rows`` of ``table`` (see :func:`training_rows`).

    :param checkpoint: where a network keeps what a killed run needs to go on.
    :param borrowed: for our own kind: rows of another machine, whose costs stand in for opcodes
        that ``rows`` lack.
    :raises NestorError: if the rows are too few or were measured by two methods, or LLVM is needed
        and missing.
    """
    require_one_method(table.select(rows))
    settings = settings or TrainerSettings()
    if kind == "own":
        return own.train(table, rows, seed=seed, progress=progress, borrowed=borrowed)
    part = table.select(rows)
    if kind == "llvm-mca":
        estimate = mca.estimate(part.blocks, settings.cpu, progress)
        return McaModel(rescaled.fit(estimate, part.cycles), settings.cpu)
    if kind == "bound":
        return bound.fit(part.blocks, part.cycles, progress)
    from nestor.cost.baselines import training as networks  # PyTorch takes seconds to import

    budget = networks.NetworkSettings(minutes=settings.minutes)
    return networks.train(kind, table, rows, budget, seed, checkpoint, progress)
