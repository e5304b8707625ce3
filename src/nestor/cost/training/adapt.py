"""A model of a new machine from a few labels: the mean of several fits from models of others."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.blocks.table import Table
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.mean import MeanModel, OwnModel
from nestor.cost.settings import FITS
from nestor.cost.training.settings import ADAPTING
from nestor.cost.training.train import train
from nestor.progress import Progress, silent

STARTS: Final = 2
"""Machines that fits start from: those that are most like the new one."""


def adapt(
    table: Table,
    index: NDArray[np.int64],
    starts: Sequence[HybridModel],
    *,
    fits: int = FITS,
    seed: int = 0,
    jobs: int = 2,
    borrowed: Table | None = None,
    progress: Progress = silent,
) -> OwnModel:
    """Return a model trained on the rows ``index`` of ``table``, a few thousand of one machine.

    The same tables, index, starts, fits and seed give the same model, whatever the jobs.

    :param starts: models of other machines, from whose cores fits start in turn.
    :param fits: fits of the model; after each of the starts has had one, they get other seeds.
    :param jobs: fits at the same time.
    :param borrowed: as for :func:`~nestor.cost.training.train.train`.
    :raises ModelError: if there are too few stable labels.
    """
    settings = replace(ADAPTING, threads=1)
    stopped = threading.Event()

    def fit(number: int) -> HybridModel:
        def report(stage: str, done: int, total: int) -> None:
            if stopped.is_set():
                raise _StoppedError
            if number == 0:  # The others do the same at the same time.
                progress(stage, done, total)

        rounds, start = divmod(number, len(starts))
        return train(table, index, settings, seed + rounds, report, borrowed, starts[start])

    models: list[HybridModel] = []
    progress("Fitting models", 0, fits)
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            for model in pool.map(fit, range(fits)):
                models.append(model)
                progress("Fitting models", len(models), fits)
        except BaseException:  # an interrupt too, which ends all fits and not this thread alone
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return models[0] if fits == 1 else MeanModel(models)


class _StoppedError(Exception):
    """Ends a fit whose result nobody waits for."""
