"""Train our own cost model: fit the simulated core, then learn what it cannot explain.

Each machine of the table gets a core and a memory of its own; the trees are shared, with the
machine as one of their features, so that a machine with few labels profits from one with many.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from nestor.cost.blocks.table import Table
from nestor.cost.conformal import calibration_factor
from nestor.cost.contract import COVERAGE, ModelError
from nestor.cost.core.simulator import F32, F64, widened
from nestor.cost.isa.templates import Templates, opcode_of
from nestor.cost.model.features import FEATURES, MEMORY, OF_THE_CORE
from nestor.cost.model.forest import NO_TREES, edges_of, forest_of
from nestor.cost.model.hybrid import HybridModel, MachinePart, Parts
from nestor.cost.model.opcode_intervals import OpcodeIntervals
from nestor.cost.model.trained_forms import TrainedForms
from nestor.cost.training.fine import crowds_of, grow_fine
from nestor.cost.training.folds import FOLDS, Folds, clipped
from nestor.cost.training.held_out_opcodes import HoldOut, calibrate
from nestor.cost.training.other_machine import OtherMachine, fit_other_machine, with_costs_of
from nestor.cost.training.rows import Rows, rows_of, stable
from nestor.cost.training.settings import TrainingSettings
from nestor.cost.training.trees import TreeSettings, binned, grow, predicted
from nestor.progress import Progress, silent


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
    chosen = stable(table.select(np.asarray(index, dtype=np.int64)))
    names = np.array(chosen.machine if chosen.machine is not None else ("",) * len(chosen))
    machines = list(dict.fromkeys(names.tolist()))
    if not machines:
        raise ModelError("There is nothing to train on: the table has no stable labels.")
    templates = Templates() if source is None else source.parts.templates.copy()
    start = None if source is None else source.part.core
    parts = [
        rows_of(name, number, chosen.select(np.flatnonzero(names == name)), templates, settings,
                 seed, progress, start)
        for number, name in enumerate(machines)
    ]  # fmt: skip
    other = (
        None
        if borrowed is None
        else fit_other_machine(stable(borrowed), templates, max(settings.passes, 1))
    )
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
    like = binned(features, settings.threads)
    spread = grow(
        features[half], np.log(errors[half] + 0.003), spread_trees, seed, COVERAGE, like=like
    )
    widths = np.exp(predicted(spread, features[~half], settings.threads))
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


def _intervals_of_new(
    part: Rows, templates: Templates, other: OtherMachine, settings: TrainingSettings, seed: int
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
        errors[judged] = np.abs(
            predicted(booster, features[judged], trees.threads) - target[judged]
        )
    return errors


def _trained(templates: Templates, parts: Sequence[Rows]) -> NDArray[np.bool_]:
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
        used = stable(borrowed)
        found |= {"borrowed rows": str(len(used)), "borrowed sha256": _digest(used)}
    return found


def _digest(table: Table) -> str:
    digest = hashlib.sha256()
    for block, cycles in zip(table.blocks, table.cycles.tolist(), strict=True):
        digest.update(len(block).to_bytes(4, "little") + block + np.float64(cycles).tobytes())
    return digest.hexdigest()
