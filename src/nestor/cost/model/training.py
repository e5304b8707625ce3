"""Train our own cost model: fit the simulated core, then learn what it cannot explain.

Each machine of the table gets a core and a memory of its own; the trees are shared, with the
machine as one of their features, so that a machine with few labels profits from one with many.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.blocks.table import Table
from nestor.cost.conformal import calibration_factor
from nestor.cost.contract import COVERAGE, ModelError
from nestor.cost.core.fitting import FittingSettings, fit
from nestor.cost.core.parameters import CoreParameters, MachineSettings, starting_forms
from nestor.cost.core.simulator import F32, F64, I64, widened
from nestor.cost.isa.decoding import DecodeError, sequence
from nestor.cost.isa.templates import Templates, opcode_of
from nestor.cost.model.features import FEATURES, MEMORY, OF_THE_CORE, SIMULATED
from nestor.cost.model.fine import crowds_of, grow_fine
from nestor.cost.model.folds import FOLDS, Folds, clipped, draw_folds, out_of_fold_memory
from nestor.cost.model.forest import NO_TREES, edges_of, forest_of
from nestor.cost.model.held_out_opcodes import HoldOut, calibrate
from nestor.cost.model.hybrid import HybridModel, MachinePart, Parts
from nestor.cost.model.levels import levels_of
from nestor.cost.model.opcode_intervals import OpcodeIntervals
from nestor.cost.model.other_machine import (
    OtherMachine,
    fit_other_machine,
    opcodes_of,
    with_costs_of,
)
from nestor.cost.model.session import LearnedSession
from nestor.cost.model.trained_forms import TrainedForms
from nestor.cost.model.trees import TreeSettings, binned, grow
from nestor.progress import Progress, silent

FEWEST: Final = 200
"""Stable labelled blocks of a machine that training needs."""


@dataclass(frozen=True)
class TrainingSettings:
    """How our own model is trained."""

    passes: int = 2
    """Rounds of coordinate descent over the parameters of the core; 0 leaves it unfitted."""
    machine: bool = True
    """Whether the settings of the machine are fitted too (``core/machine_fitting.py``)."""
    trees: int = 800
    """Trees of the residual."""
    leaves: int = 127
    """Leaves of one tree."""
    learning_rate: float = 0.03
    smallest_leaf: int = 12
    """Rows in a leaf at least."""
    in_per_cent: bool = False
    """Whether errors count by their share of the label, so that twice is worse than half; where
    much is uncertain, as with few labels, this keeps answers low."""
    threads: int = 2
    core: bool = True
    """Whether the trees see the simulation (an ablation)."""
    memory: bool = True
    """Whether the trees see what training remembers of like code (an ablation)."""
    share_new: float = 0.4
    """Share of rows that stand for sequences never seen."""
    simulation: MachineSettings = field(default_factory=MachineSettings)


ADAPTING: Final = TrainingSettings(
    trees=600, leaves=31, learning_rate=0.03, smallest_leaf=5, in_per_cent=True
)
"""For a few thousand labels of a machine, with another's model to start from."""


@dataclass(frozen=True)
class _Rows:
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


def train(
    table: Table,
    index: NDArray[np.int64] | Sequence[int],
    settings: TrainingSettings | None = None,
    seed: int = 0,
    progress: Progress = silent,
    borrowed: Table | None = None,
    source: HybridModel | None = None,
) -> HybridModel:
    """Return a model trained on the rows ``index`` of ``table`` (unstable ones are left out).

    The same tables, index, settings and seed give the same model.

    :param borrowed: blocks with labels of another machine: opcodes that a machine of ``table`` has
        no rows of take their costs from there.
    :param source: a model of another machine, from whose core the fit starts: a few thousand labels
        then suffice (:data:`ADAPTING`).
    :raises ModelError: if a machine has too few stable labels.
    """
    settings = settings or TrainingSettings()
    chosen = _stable(table.select(np.asarray(index, dtype=np.int64)))
    names = np.array(chosen.machine if chosen.machine is not None else ("",) * len(chosen))
    machines = list(dict.fromkeys(names.tolist()))
    templates = Templates() if source is None else source.parts.templates.copy()
    start = None if source is None else source.part.core
    parts = [
        _rows_of(name, number, chosen.select(np.flatnonzero(names == name)), templates, settings,
                 seed, progress, start)
        for number, name in enumerate(machines)
    ]  # fmt: skip
    other = (
        None
        if borrowed is None
        else fit_other_machine(_stable(borrowed), templates, max(settings.passes, 1))
    )
    if not parts:
        raise ModelError("There is nothing to train on: the table has no stable labels.")
    features = np.concatenate([part.features for part in parts])
    target = np.concatenate([part.target for part in parts])
    folds = Folds(
        np.concatenate([part.folds.random for part in parts]),
        np.concatenate([part.folds.by_sequence for part in parts]),
        np.concatenate([part.folds.new for part in parts]),
    )
    _hide_ablated(features, settings)
    trees = TreeSettings(
        settings.trees,
        settings.leaves,
        settings.learning_rate,
        smallest_leaf=settings.smallest_leaf,
        threads=settings.threads,
    )
    weights = np.exp(-np.clip(target, -2, 2)) if settings.in_per_cent else None
    machine_of = np.repeat(np.arange(len(parts)), [len(part.target) for part in parts])
    errors = _errors_on_new_rows(features, target, weights, folds, trees, seed, progress)
    spread_trees = TreeSettings(120, 31, 0.05, 8, 40, settings.threads)
    half = np.random.default_rng(seed).random(len(target)) < 0.6
    like = binned(features)
    spread = grow(
        features[half], np.log(errors[half] + 0.003), spread_trees, seed, COVERAGE, like=like
    )
    widths = np.exp(np.asarray(spread.predict(features[~half])))
    residual = grow(
        features, target, trees, seed, progress=progress, stage="Growing trees", like=like,
        weights=weights,
    )  # fmt: skip
    crowds = crowds_of([(part.logs, part.levels) for part in parts])
    fine, ordered = grow_fine(features, crowds, half, settings.threads, seed, like)
    dumps = [booster.dump_model() for booster in (residual, spread, fine) if booster]
    edges, starts = edges_of(dumps, len(FEATURES))
    machine_parts = []
    for number, part in enumerate(parts):
        progress("Holding opcodes out", number, len(parts))
        borrowed_opcodes = frozenset() if other is None else other.opcodes - part.opcodes
        opcodes = TrainedForms(part.opcodes, borrowed_opcodes)
        intervals = OpcodeIntervals()
        if other is not None:
            intervals = _intervals_of_new(part, templates, other, settings, seed)
        of_machine = machine_of[~half] == number
        factor = calibration_factor(errors[~half][of_machine], widths[of_machine])
        part.session.remember(part.kept, clipped(part.target))
        memory = part.session.residual_memory()
        machine_parts.append(
            MachinePart(
                part.name,
                with_costs_of(widened(part.core, templates), templates, opcodes, other),
                memory,
                part.levels,
                factor,
                opcodes,
                intervals,
                ordered[number],
                part.method,
            )
        )
    return HybridModel(
        Parts(
            # What only the other machine has is described when it is met.
            templates.of_forms(_trained(templates, parts)),
            tuple(machine_parts),
            edges,
            starts,
            forest_of(dumps[0], edges, starts),
            forest_of(dumps[1], edges, starts),
            settings.core,
            NO_TREES if fine is None else forest_of(dumps[2], edges, starts),
            _provenance(chosen, settings, seed, borrowed),
        )
    )


def _rows_of(
    name: str,
    number: int,
    table: Table,
    templates: Templates,
    settings: TrainingSettings,
    seed: int,
    progress: Progress,
    start: CoreParameters | None,
) -> _Rows:
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
    return _Rows(
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


def _intervals_of_new(
    part: _Rows, templates: Templates, other: OtherMachine, settings: TrainingSettings, seed: int
) -> OpcodeIntervals:
    """Return the intervals of blocks with opcodes that have the costs of another machine."""
    rows = HoldOut(
        part.session,
        part.kept,
        part.features,
        part.target,
        part.logs,
        widened(part.core, templates),
        templates.mnemonics(),
        settings.core,
    )
    there = np.array([opcode_of(form) in other.opcodes for form in templates.forms])
    return calibrate(rows, other.forms_for(templates), there, settings.threads, seed)


def _stable(table: Table) -> Table:
    return table.select(np.flatnonzero(table.stable & (table.cycles > 0)))


def _number(block: bytes, numbers: dict[tuple[int, ...], int]) -> int:
    """Return the number of a block's opcode sequence, a new one for a new sequence."""
    try:
        codes = sequence(block)
    except DecodeError:
        codes = tuple(block)
    return numbers.setdefault(codes, len(numbers))


def _hide_ablated(features: F32, settings: TrainingSettings) -> None:
    """Set the features to 0 that an ablation leaves out."""
    if not settings.memory:
        features[:, MEMORY] = 0
    if not settings.core:
        features[:, [FEATURES.index(name) for name in OF_THE_CORE]] = 0


def _errors_on_new_rows(
    features: F32,
    target: F64,
    weights: F64 | None,
    folds: Folds,
    trees: TreeSettings,
    seed: int,
    progress: Progress,
) -> F64:
    """Return each row's absolute error under a model that did not learn from it."""
    errors = np.zeros(len(target))
    fewer = TreeSettings(min(max(trees.trees // 4, 20), 100), 63, 0.12, threads=trees.threads)
    for fold in range(FOLDS):
        usable, judged = folds.usable(fold), folds.held_out(fold)
        stage = f"Trees for the interval, fold {fold + 1}"
        booster = grow(
            features[usable], target[usable], fewer, seed, progress=progress, stage=stage,
            weights=None if weights is None else weights[usable],
        )  # fmt: skip
        errors[judged] = np.abs(np.asarray(booster.predict(features[judged])) - target[judged])
    return errors


def _trained(templates: Templates, parts: Sequence[_Rows]) -> NDArray[np.bool_]:
    """Return which forms are of opcodes that a machine's rows have ``[forms]``."""
    opcodes = frozenset[str]().union(*(part.opcodes for part in parts))
    return np.array([opcode_of(form) in opcodes for form in templates.forms], dtype=np.bool_)


def _provenance(
    table: Table, settings: TrainingSettings, seed: int, borrowed: Table | None
) -> dict[str, str]:
    shown = {key: value for key, value in asdict(settings).items() if key != "simulation"}
    found = {
        "rows": str(len(table)),
        "data sha256": _digest(table),
        "seed": str(seed),
        "settings": ", ".join(f"{key}={value}" for key, value in shown.items()),
    }
    if borrowed is not None:
        used = _stable(borrowed)
        found |= {"borrowed rows": str(len(used)), "borrowed sha256": _digest(used)}
    return found


def _digest(table: Table) -> str:
    digest = hashlib.sha256()
    for block, cycles in zip(table.blocks, table.cycles.tolist(), strict=True):
        digest.update(len(block).to_bytes(4, "little") + block + np.float64(cycles).tobytes())
    return digest.hexdigest()
