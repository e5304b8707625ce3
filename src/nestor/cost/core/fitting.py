"""Fit the parameters of a simulated core to labels, by coordinate descent.

Latencies, ports and slots are small whole numbers and the simulation is not a smooth function of
them, so each form's are improved in turn by trying others on the blocks that contain it. The first
round moves all variants of a form together, later ones each alone; a form too rare to show anything
keeps the values of its category.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.core.machine_fitting import (
    draw_sample,
    fit_machine,
    fit_machine_from_scratch,
)
from nestor.cost.core.parameters import (
    ALU,
    DIVIDER,
    FLOAT,
    FLOAT_DIVIDER,
    FLOAT_STORE,
    PORT_CHOICES,
    CoreParameters,
    FormParameters,
    ports,
)
from nestor.cost.core.simulator import F64, I64, Simulator
from nestor.cost.core.slow_forms import with_slow_forms
from nestor.cost.isa.template_layout import VARIANTS
from nestor.progress import Progress, silent

_BEYOND_CHANCE: Final = 2.0
"""Standard errors of the sum of gains, block by block."""


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
    uses: dict[int, list[int]] = {}
    for block in rows:
        for number in set(simulator.forms(int(block)).tolist()):
            uses.setdefault(number, []).append(int(block))
    forms = np.array(core.forms)
    simulator.set_core(core)
    for round_ in range(settings.passes):
        groups: dict[int, list[int]] = {}
        for number in uses:
            groups.setdefault(number // (VARIANTS // 2) if round_ == 0 else number, []).append(
                number
            )
        order = sorted(groups, key=lambda g: (-sum(len(uses[n]) for n in groups[g]), g))
        for done, group in enumerate(order):
            blocks = np.unique(np.concatenate([uses[n] for n in groups[group]]))
            blocks = _various(simulator, random.permutation(blocks), settings)
            if len(blocks) < settings.fewest:
                continue
            _improve(simulator, forms, groups[group], blocks, labels[blocks], settings.tolerance)
            if done % 16 == 0:
                progress(f"Fitting the core, round {round_ + 1}", done, len(order))
        progress(f"Fitting the core, round {round_ + 1}", len(order), len(order))
        if settings.machine:
            core = fit_machine(simulator, CoreParameters(core.settings, np.array(forms)), sample)
            forms = np.array(core.forms)
    if settings.passes:
        _refine(simulator, forms, uses, labels, settings, seed, progress)
    return CoreParameters(core.settings, forms)


def _refine(
    simulator: Simulator,
    forms: NDArray[np.int32],
    uses: Mapping[int, Sequence[int]],
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
            _improve(simulator, forms, [number], blocks, labels[blocks], settings.tolerance, True)
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
    significant: bool = False,
) -> None:
    """Try other parameters for the form's variants ``numbers`` and keep the best in ``forms``.

    :param significant: ask for a gain beyond chance in place of one in proportion to the blocks.
    """
    current = np.zeros(len(blocks))
    errors = np.zeros(len(blocks))
    best = simulator.loss(blocks, labels, None, current)
    first = best
    for _ in range(2):
        start = best
        for alternatives in _ALTERNATIVES:
            best_row = FormParameters(*forms[numbers[0]].tolist())
            for row in alternatives(best_row):
                values = np.array(row, dtype=np.int32)
                for number in numbers:
                    simulator.set_form(number, values)
                loss = simulator.loss(blocks, labels, current, errors)
                least = 0.004 * len(blocks)
                if significant:
                    least = _BEYOND_CHANCE * float(np.linalg.norm(current - errors))
                if loss < best - tolerance - least:
                    best, best_row = loss, row
                    current[:] = errors
            forms[numbers] = np.array(best_row, dtype=np.int32)
            for number in numbers:
                simulator.set_form(number, forms[number])
        if best > start - 0.02 * first:
            return


def _around(value: int, small: range, least: int) -> list[int]:
    """Return other values near and far: a few small ones, steps, and factors."""
    near = {value + d for d in (-2, -1, 1, 2)} | {value * f // 10 for f in (5, 8, 9, 11, 13, 20)}
    return sorted(v for v in near | set(small) if v >= least and v != value)


def _latencies(row: FormParameters) -> Iterator[FormParameters]:
    for value in _around(row.latency, range(5), 0):
        yield row._replace(latency=value)


def _slots(row: FormParameters) -> Iterator[FormParameters]:
    for value in _around(row.slots, range(1, 3), 1):
        yield row._replace(slots=value)


def _first_ports(row: FormParameters) -> Iterator[FormParameters]:
    for mask in _other_ports(row.ports):
        yield row._replace(ports=mask, executions=max(row.executions, 1))
    for count in _around(row.executions, range(3), 0):
        yield row._replace(ports=(row.ports or ALU) if count else 0, executions=count)


def _busy(row: FormParameters) -> Iterator[FormParameters]:
    if row.executions:
        for value in _around(row.busy, range(1, 4), 1):
            yield row._replace(busy=min(value, 500))


def _second_ports(row: FormParameters) -> Iterator[FormParameters]:
    if row.executions:
        for mask in _SECOND:
            if mask != row.second_ports:
                yield row._replace(
                    second_ports=mask, second_executions=max(row.second_executions, 1)
                )
    if row.second_executions:
        for count in _around(row.second_executions, range(3), 0):
            mask = row.second_ports if count else 0
            yield row._replace(second_ports=mask, second_executions=count)


def _load_extra(row: FormParameters) -> Iterator[FormParameters]:
    for value in range(row.load_extra - 2, row.load_extra + 3):
        if -3 <= value <= 12 and value != row.load_extra:
            yield row._replace(load_extra=value)


def _other_ports(mask: int) -> list[int]:
    """Return other sets of ports on the same side of the core, or of both if there is none yet."""
    if mask & (FLOAT | FLOAT_STORE | FLOAT_DIVIDER):
        sides = FLOAT | FLOAT_STORE | FLOAT_DIVIDER
    elif mask:
        sides = ALU | DIVIDER
    else:
        sides = ALU | FLOAT | FLOAT_STORE
    return [choice for choice in PORT_CHOICES if choice != mask and not choice & ~sides]


_SECOND = (
    ports(0),
    ports(0, 1, 2),
    ALU,
    ports(16),
    FLOAT_STORE,
    ports(12, 13),
    ports(13, 14),
    FLOAT,
)

_ALTERNATIVES = (_latencies, _slots, _first_ports, _busy, _second_ports, _load_extra)
"""Other values of one parameter of a form each, in the order in which they are tried."""
