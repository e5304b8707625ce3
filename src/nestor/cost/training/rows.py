"""What the training rows of one machine say: a fitted core, and the features of each row."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nestor.cost.blocks.table import Table
from nestor.cost.contract import ModelError
from nestor.cost.core.fitting import FittingSettings, fit
from nestor.cost.core.parameters import CoreParameters, starting_forms
from nestor.cost.core.simulator import F32, F64, I64, widened
from nestor.cost.isa.decoding import DecodeError, sequence
from nestor.cost.isa.templates import Templates
from nestor.cost.model.features import MEMORY, SIMULATED
from nestor.cost.model.levels import levels_of
from nestor.cost.model.session import LearnedSession
from nestor.cost.training.folds import Folds, draw_folds, out_of_fold_memory
from nestor.cost.training.other_machine import opcodes_of
from nestor.cost.training.settings import TrainingSettings
from nestor.progress import Progress

FEWEST: Final = 200
"""Stable labelled blocks of a machine that training needs."""


@dataclass(frozen=True)
class Rows:
    """The training rows of one machine."""

    name: str
    session: LearnedSession
    core: CoreParameters
    kept: I64
    features: F32
    target: F64
    folds: Folds
    levels: F32
    logs: F64
    """Of the labels."""
    opcodes: frozenset[str]
    """Opcodes that the rows have."""
    method: str
    """How the labels were measured."""


def rows_of(
    name: str,
    number: int,
    table: Table,
    templates: Templates,
    settings: TrainingSettings,
    seed: int,
    progress: Progress,
    start: CoreParameters | None,
) -> Rows:
    """Fit the core of one machine and compute the features of its rows."""
    if len(table) < FEWEST:
        raise ModelError(
            f"The machine '{name}' has {len(table)} stable labels; at least {FEWEST} are needed."
        )
    session = LearnedSession(templates)
    decodable = session.keep(table.blocks)
    kept = np.flatnonzero(decodable)
    core = CoreParameters(settings.simulation, starting_forms(templates.categories()))
    if start is not None:
        core = widened(CoreParameters(settings.simulation, start.forms), templates)
    fitting = FittingSettings(
        passes=settings.passes, machine=settings.machine, transferred=start is not None
    )
    core = fit(session, core, kept, table.cycles, fitting, seed, progress)
    session.set_core(core)
    session.calibrate(number, 1.0)
    features = session.features(kept)
    logs = np.log(table.cycles[kept])
    base = features[:, SIMULATED] if settings.core else np.zeros(len(kept), dtype=np.float32)
    target: F64 = (logs - base).astype(np.float64)
    numbers: dict[tuple[int, ...], int] = {}
    sequences = np.array([_number(table.blocks[row], numbers) for row in kept], dtype=np.int64)
    folds = draw_folds(sequences, settings.share_new, seed)
    residuals = target.astype(np.float32)
    features[:, MEMORY] = out_of_fold_memory(session, kept, residuals, folds)
    return Rows(
        name,
        session,
        core,
        kept,
        features,
        target,
        folds,
        levels_of(logs),
        logs,
        opcodes_of(session, kept),
        ", ".join(sorted({word for word in table.backend or () if word})),
    )


def stable(table: Table) -> Table:
    """Return the rows that train: those with a stable label."""
    return table.select(np.flatnonzero(table.stable & (table.cycles > 0)))


def _number(block: bytes, numbers: dict[tuple[int, ...], int]) -> int:
    """Return the number of a block's opcode sequence, a new one for a new sequence."""
    try:
        codes = sequence(block)
    except DecodeError:
        codes = tuple(block)
    return numbers.setdefault(codes, len(numbers))
