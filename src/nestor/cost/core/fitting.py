"""Fit the parameters of a simulated core to labels, by coordinate descent.

Latencies, ports and slots are small whole numbers and the simulation is not a smooth function of
them, so each form's are improved in turn by trying others on the blocks that contain it. The first
round moves all variants of a form together, later ones each alone; a form too rare to show anything
keeps the values of its category. Where a fit starts from another machine's values and labels are
few, :mod:`nestor.cost.core.transfer` says what of them stays.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.core.alternatives import ALTERNATIVES
from nestor.cost.core.machine_fitting import (
    draw_sample,
    fit_machine,
    fit_machine_from_scratch,
)
from nestor.cost.core.parameters import CoreParameters, FormParameters
from nestor.cost.core.simulator import F64, I64, Simulator
from nestor.cost.core.slow_forms import with_slow_forms
from nestor.cost.core.transfer import (
    Uses,
    families,
    fill_variants,
    forget_stack_faults,
    take_shared,
    usual_costs,
)
from nestor.cost.isa.template_layout import STACK_VARIANTS, VARIANTS
from nestor.progress import Progress, silent

_BEYOND_CHANCE: Final = 2.0
_OF_FEW: Final = 1.2
"""Standard errors of the sum of gains, block by block: of what is frequent, and of few labels,
where more than one block must say it."""


@dataclass(frozen=True)
class FittingSettings:
    """How hard to look for better parameters."""

    passes: int = 2
    """Rounds over all forms."""
    blocks: int = 160
    """Blocks to judge one form by, at most."""
    alike: int = 2
    """Of these with the same sequence of forms, at most, so that no frequent one decides."""
    fewest: int = 4
    """Blocks that a form must occur in, to be fitted at all."""
    tolerance: float = 0.03
    """Summed log error that a change must save, so that rare forms do not follow noise."""
    machine: bool = True
    """Whether the settings of the machine are fitted too, and a start for each category."""
    refined: int = 80
    """Parameter sets with the largest summed errors that are fitted again, by more blocks."""
    refining_blocks: int = 1500
    """Blocks to judge one of these by, at most."""
    transferred: bool = False
    """Whether the fit starts from another machine's costs, with few labels (``transfer``)."""


def fit(
    simulator: Simulator,
    core: CoreParameters,
    rows: I64,
    cycles: F64,
    settings: FittingSettings | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> CoreParameters:
    """Return ``core`` with the parameters of its forms fitted to the kept blocks ``rows``.

    :param cycles: labels of all kept blocks.
    """
    settings = settings or FittingSettings()
    random = np.random.default_rng(seed)
    labels = np.log(cycles)
    core = _fit_start(simulator, core, rows, cycles, settings, seed)
    sample = draw_sample(simulator, rows, cycles, seed)
    uses = simulator.uses(rows)
    forms = np.array(core.forms)
    categories = simulator.templates.categories()
    transferred = settings.transferred and settings.passes > 0
    evidence = _OF_FEW if transferred else 0.0
    simulator.set_core(core)
    if transferred:
        forget_stack_faults(simulator, forms, uses, settings.fewest)
        _fit_families(simulator, forms, uses, labels, settings, random)
    for round_ in range(settings.passes):
        groups: dict[int, list[int]] = {}
        for number in uses:
            groups.setdefault(number // STACK_VARIANTS if round_ == 0 else number, []).append(
                number
            )
        order = sorted(groups, key=lambda g: (-sum(len(uses[n]) for n in groups[g]), g))
        for done, group in enumerate(order):
            blocks = np.unique(np.concatenate([uses[n] for n in groups[group]]))
            blocks = _various(simulator, random.permutation(blocks), settings)
            numbers, logs = groups[group], labels[blocks]
            if transferred:
                usual = usual_costs(forms, categories, numbers[0])
                take_shared(simulator, forms, numbers, blocks, logs, [usual])
            if len(blocks) < settings.fewest:
                continue
            _improve(simulator, forms, numbers, blocks, logs, settings.tolerance, evidence)
            if done % 16 == 0:
                progress(f"Fitting the core, round {round_ + 1}", done, len(order))
        if transferred and round_ == 0:
            fill_variants(simulator, forms, uses)
        progress(f"Fitting the core, round {round_ + 1}", len(order), len(order))
        if settings.machine:
            core = fit_machine(simulator, CoreParameters(core.settings, np.array(forms)), sample)
            forms = np.array(core.forms)
    if settings.passes:
        _refine(simulator, forms, uses, labels, settings, seed, progress)
    return CoreParameters(core.settings, forms)


def _fit_families(
    simulator: Simulator,
    forms: NDArray[np.int32],
    uses: Uses,
    labels: F64,
    settings: FittingSettings,
    random: np.random.Generator,
) -> None:
    """Let forms of one mnemonic cost the same where labels allow it, and fit them together."""
    categories = simulator.templates.categories()
    more = replace(settings, blocks=3 * settings.blocks)
    for numbers in families(uses, simulator):
        blocks = np.unique(np.concatenate([uses[n] for n in numbers]))
        blocks = _various(simulator, random.permutation(blocks), more)
        if len(blocks) < settings.fewest:
            continue
        rows = [*forms[numbers], usual_costs(forms, categories, numbers[0])]
        shared = list({row.tobytes(): row for row in rows}.values())
        take_shared(simulator, forms, numbers, blocks, labels[blocks], shared)
        if len(np.unique(forms[numbers], axis=0)) == 1:
            _improve(simulator, forms, numbers, blocks, labels[blocks], settings.tolerance)


def _refine(
    simulator: Simulator,
    forms: NDArray[np.int32],
    uses: Uses,
    labels: F64,
    settings: FittingSettings,
    seed: int,
    progress: Progress,
) -> None:
    """Fit the parameter sets again that the most error hangs on.

    What a frequent one costs is worth little in each block, since most of them wait for something
    else, and the few blocks of a round cannot tell it from noise; with more of them it shows.
    """
    rows = np.unique(np.concatenate([*uses.values(), np.zeros(0, np.int64)]).astype(np.int64))
    errors = np.zeros(len(rows))
    simulator.loss(rows, labels[rows], None, errors)
    error_of = dict(zip(rows.tolist(), errors.tolist(), strict=True))
    summed = {number: sum(error_of[block] for block in blocks) for number, blocks in uses.items()}
    random = np.random.default_rng(seed)
    more = replace(settings, blocks=settings.refining_blocks)
    order = sorted(summed, key=lambda number: (-summed[number], number))[: settings.refined]
    for done, number in enumerate(order):
        blocks = _various(simulator, random.permutation(np.array(uses[number])), more)
        if len(blocks) > settings.blocks:
            _improve(
                simulator, forms, [number], blocks, labels[blocks], settings.tolerance,
                _BEYOND_CHANCE, in_proportion=False,
            )  # fmt: skip
        progress("Fitting what is frequent", done, len(order))


def _fit_start(
    simulator: Simulator,
    core: CoreParameters,
    rows: I64,
    cycles: F64,
    settings: FittingSettings,
    seed: int,
) -> CoreParameters:
    """Return ``core`` with settings, and a start for the forms of each category, from labels."""
    if not settings.passes:
        return core
    if not settings.machine:
        return with_slow_forms(simulator, core, rows, cycles)
    sample = draw_sample(simulator, rows, cycles, seed)
    core = fit_machine_from_scratch(simulator, core, sample)
    categories = simulator.templates.categories()
    of_block = [set(simulator.forms(int(block)) // VARIANTS) for block in sample.blocks]
    forms = np.array(core.forms)
    for category in np.unique(categories):
        members = np.flatnonzero(categories == category)
        mine = {int(form) for form in members}
        used = np.array([bool(mine & found) for found in of_block])
        if used.sum() < 3 * settings.fewest:
            continue
        place = np.flatnonzero(used)[: 3 * settings.blocks]
        starts, counts = np.unique(forms[members * VARIANTS], axis=0, return_counts=True)
        usual = starts[counts.argmax()]
        alike = (forms.reshape(-1, VARIANTS, forms.shape[1]) == usual).all(axis=(1, 2))
        numbers = [int(f) * VARIANTS + v for f in members if alike[f] for v in range(VARIANTS)]
        if not numbers:  # all were fitted before, on another machine
            continue
        _improve(
            simulator, forms, numbers, sample.blocks[place], sample.labels[place],
            settings.tolerance,
        )  # fmt: skip
    core = fit_machine(simulator, CoreParameters(core.settings, forms), sample)
    # Only now: what the machine explains makes no form slow.
    return with_slow_forms(simulator, core, rows, cycles)


def _various(simulator: Simulator, blocks: I64, settings: FittingSettings) -> I64:
    """Return some of ``blocks``, no sequence of forms too often."""
    taken: dict[bytes, int] = {}
    kept = []
    for block in blocks:
        sequence = simulator.forms(int(block)).tobytes()
        taken[sequence] = taken.get(sequence, 0) + 1
        if taken[sequence] <= settings.alike:
            kept.append(block)
            if len(kept) == settings.blocks:
                break
    return np.array(kept, dtype=np.int64)


def _improve(
    simulator: Simulator,
    forms: NDArray[np.int32],
    numbers: list[int],
    blocks: I64,
    labels: F64,
    tolerance: float,
    evidence: float = 0.0,
    in_proportion: bool = True,
) -> None:
    """Try other parameters for the form's variants ``numbers`` and keep the best in ``forms``.

    :param evidence: standard errors that a gain must exceed.
    :param in_proportion: ask for a gain in proportion to the blocks too.
    """
    current = np.zeros(len(blocks))
    errors = np.zeros(len(blocks))
    best = simulator.loss(blocks, labels, None, current)
    first = best
    for _ in range(2):
        start = best
        for alternatives in ALTERNATIVES:
            best_row = FormParameters(*forms[numbers[0]].tolist())
            for row in alternatives(best_row):
                values = np.array(row, dtype=np.int32)
                for number in numbers:
                    simulator.set_form(number, values)
                loss = simulator.loss(blocks, labels, current, errors)
                least = 0.004 * len(blocks) if in_proportion else 0.0
                if evidence:
                    least = max(least, evidence * float(np.linalg.norm(current - errors)))
                if loss < best - tolerance - least:
                    best, best_row = loss, row
                    current[:] = errors
            forms[numbers] = np.array(best_row, dtype=np.int32)
            for number in numbers:
                simulator.set_form(number, forms[number])
        if best > start - 0.02 * first:
            return
