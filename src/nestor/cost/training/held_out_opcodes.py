"""How far off answers are for blocks with an opcode that training lacks.

Such an opcode has the costs of another machine. Here opcodes are held out of training in folds,
whole mnemonics at a time: the held-out forms get the costs of the other machine, neither trees nor
memory know them, and the blocks that have them are predicted. Between the quantiles of these errors
lie the intervals of blocks with opcodes that the model does not know (Mondrian conformal
prediction: Vovk et al., "Algorithmic Learning in a Random World", 2005). Each opcode counts alike,
however many blocks have it, since it is the next opcode that is unknown.
"""

import itertools
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.conformal import weighted_interval_factors
from nestor.cost.core.parameters import CoreParameters
from nestor.cost.core.simulator import F32, F64, I64
from nestor.cost.isa.template_layout import VARIANTS
from nestor.cost.model.features import SIMULATED
from nestor.cost.model.opcode_intervals import SHARES, Factors, OpcodeIntervals
from nestor.cost.model.session import LearnedSession
from nestor.cost.training.folds import clipped
from nestor.cost.training.trees import TreeSettings, grow, predicted

FOLDS: Final = 5
FREQUENT: Final = 0.01
"""Opcodes in more than this share of the rows are not held out: no model is without them."""
FEWEST: Final = 20
"""Opcodes that a group of blocks needs to be calibrated by itself."""


@dataclass(frozen=True)
class HoldOut:
    """What is needed to hold opcodes of one machine's rows out."""

    session: LearnedSession
    kept: I64
    """Numbers of the kept blocks ``[n]``."""
    features: F32 = field(repr=False)
    """Of the rows, with what is remembered out of fold ``[n, features]``."""
    target: F64 = field(repr=False)
    """What the trees learn ``[n]``."""
    logs: F64 = field(repr=False)
    """Of the labels ``[n]``."""
    core: CoreParameters = field(repr=False)
    mnemonics: I64
    """Of each form ``[forms]``."""
    on_core: bool
    """Whether the trees' answer is added to the simulation."""


def calibrate(
    rows: HoldOut, costs: NDArray[np.int32], usable: NDArray[np.bool_], threads: int, seed: int
) -> OpcodeIntervals:
    """Return the intervals of blocks with unknown opcodes.

    :param costs: those of another machine ``[forms × VARIANTS, 8]``.
    :param usable: the forms that have such costs ``[forms]``.
    """
    of_block = [rows.session.forms(int(block)) // VARIANTS for block in rows.kept]
    named = [rows.mnemonics[forms[usable[forms]]] for forms in of_block]
    uses = np.zeros(int(rows.mnemonics.max(initial=0)) + 1, dtype=np.int64)
    for mnemonics in named:
        uses[np.unique(mnemonics)] += 1
    rare = np.flatnonzero((uses > 0) & (uses <= max(1, FREQUENT * len(named))))
    fold_of = np.full(len(uses), -1)
    fold_of[rare] = np.random.default_rng(seed).permutation(len(rare)) % FOLDS
    errors, shares, weights = [], [], []
    for fold in range(FOLDS):
        held = fold_of == fold
        of_row = [m[held[m]] for m in named]
        judged = np.array([len(m) > 0 for m in of_row])
        if judged.all() or not judged.any():
            continue
        errors.append(_errors(rows, costs, usable & held[rows.mnemonics], judged, threads, seed))
        found = [(m, forms) for m, forms in zip(of_row, of_block, strict=True) if len(m)]
        counts = np.bincount(np.concatenate([np.unique(m) for m, _ in found]), minlength=len(uses))
        weights.append(np.array([(1 / counts[np.unique(m)]).sum() for m, _ in found]))
        shares.append(np.array([len(m) / len(forms) for m, forms in found]))
    rows.session.set_core(rows.core)
    if not errors:
        return OpcodeIntervals()
    return _groups(np.concatenate(errors), np.concatenate(shares), np.concatenate(weights))


def _errors(
    rows: HoldOut,
    costs: NDArray[np.int32],
    held: NDArray[np.bool_],
    judged: NDArray[np.bool_],
    threads: int,
    seed: int,
) -> F64:
    """Return ln measured − ln predicted of the rows ``judged``, learned from the others."""
    forms = np.array(rows.core.forms)
    places = np.repeat(held, VARIANTS)
    forms[places] = costs[places]
    session = rows.session
    session.set_core(CoreParameters(rows.core.settings, forms))
    session.remember(rows.kept[~judged], clipped(rows.target[~judged]))
    features = session.features(rows.kept[judged])
    settings = TreeSettings(100, 63, 0.2, threads=threads)
    booster = grow(rows.features[~judged], rows.target[~judged], settings, seed)
    residuals = predicted(booster, features, threads)
    return rows.logs[judged] - residuals - (features[:, SIMULATED] if rows.on_core else 0.0)


def _groups(errors: F64, shares: F64, weights: F64) -> OpcodeIntervals:
    if weights.sum() < FEWEST:
        return OpcodeIntervals()
    groups: list[Factors] = []
    for low, high in itertools.pairwise(SHARES):
        inside = (shares > low) & (shares <= high)
        if weights[inside].sum() < FEWEST:
            inside = np.ones(len(errors), dtype=np.bool_)
        groups.append(weighted_interval_factors(errors[inside], weights[inside]))
    return OpcodeIntervals(tuple(groups))
