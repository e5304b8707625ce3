"""Train any kind of cost model on the same rows."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nestor.cost import training
from nestor.cost.baselines import bound, llvm_mca, rescaled
from nestor.cost.baselines.llvm_mca import McaModel
from nestor.cost.hybrid import HybridModel
from nestor.cost.model import CostModel, ModelError
from nestor.cost.models import BaselineKind, save_baseline
from nestor.cost.table import Table, TableError
from nestor.progress import Progress, silent

Index = NDArray[np.int64]
Kind = Literal["own", BaselineKind]


@dataclass(frozen=True)
class TrainerSettings:
    """What the kinds of model need to know."""

    minutes: float = 12.0
    """CPU time for lstm and granite, on one thread."""
    cpu: str = "znver5"
    """What llvm-mca models, as LLVM names it."""


def training_rows(table: Table, rows: Index) -> Index:
    """Return the rows that train: those with a stable label, or all labelled if no spread is known.

    :raises TableError: if there is none.
    """
    known = bool(np.isfinite(table.spread[rows]).any())
    usable = rows[(table.stable if known else table.labelled)[rows]]
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
) -> CostModel:
    """Return a model of ``kind`` trained on ``rows`` of ``table`` (see :func:`training_rows`).

    :param checkpoint: where a network keeps what a killed run needs to go on.
    :raises NestorError: if the rows are too few, or LLVM is needed and missing.
    """
    settings = settings or TrainerSettings()
    if kind == "own":
        return training.train(table, rows, seed=seed, progress=progress)
    part = table.select(rows)
    if kind == "llvm-mca":
        estimate = llvm_mca.estimate(part.blocks, settings.cpu, progress)
        return McaModel(rescaled.fit(estimate, part.cycles), settings.cpu)
    if kind == "bound":
        return bound.fit(part.blocks, part.cycles, progress)
    from nestor.cost.baselines import training as networks  # PyTorch takes seconds to import

    budget = networks.NetworkSettings(minutes=settings.minutes)
    return networks.train(kind, table, rows, budget, seed, checkpoint, progress)


def prepare(path: Path) -> None:
    """Make the folder of a model's file: before the training, not after it.

    :raises ModelError: if no file can be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(None, "its folder is read-only")
    except OSError as error:
        raise ModelError(
            f"'{path}' cannot be written ({error.strerror}); choose another place."
        ) from None


def save(model: CostModel, path: Path) -> None:
    """Write the file of a model that :func:`train` made.

    :raises ModelError: if it cannot be written.
    """
    if isinstance(model, HybridModel):
        training.save(model, path)
    else:
        save_baseline(model, path)
