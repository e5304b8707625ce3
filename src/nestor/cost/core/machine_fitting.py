"""Fit what a whole core has to labels: its widths, its memory, and what a category costs.

No setting is known beforehand: each is tried over the range that cores of x86-64 have, and kept if
the labels of a sample of blocks agree better. Forms start from what their category costs, which is
found on many blocks at once, so that rare forms have good values too.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nestor.cost.core.parameters import ALU, I32, CoreParameters, ports
from nestor.cost.core.simulator import F64, I64, Simulator

_BLOCKS: Final = 3000
_ALIKE: Final = 2
_SHARE: Final = 0.0003
"""Of the sample's loss: what a change must save."""

_FRONT: Final = ("dispatch_width", "entry_ops", "entry_bytes", "free_entries")
"""Settings that only together say how fast code enters."""
_WIDTHS: Final = (4, 5, 6, 8)
_ENOUGH: Final = 800
_FEWER: Final = 3
"""A part of the sample serves for each of the starts."""

_LOAD_PORTS: Final = (
    ports(6), ports(6, 7), ports(6, 8), ports(6, 7, 8), ports(6, 7, 8, 9), ports(8, 9),
    ports(7, 8, 9),
)  # fmt: skip
_BANK_READS: Final = (0, 1, 2)
_GROUPS: Final[dict[str, dict[str, tuple[int, ...]]]] = {
    # A bank that serves two loads looks like a core with two ports for them.
    "loads": {"load_ports": _LOAD_PORTS, "bank_reads": _BANK_READS},
    # Fast forwarding looks like renaming.
    "forwarding": {
        "renamed": (0, 1, 2, 3),
        "forward_latency": (0, 3, 4, 5, 6),
        "indexed_forward_latency": (0, 4, 5, 6),
    },
}
"""Settings of which one can stand in for another: only tried together the right one is found."""

_CHOICES: Final[dict[str, tuple[int, ...]]] = {
    "dispatch_width": (3, 4, 5, 6, 7, 8, 10),
    "retire_width": (4, 6, 8, 10, 12, 16),
    "load_latency": (3, 4, 5, 6),
    "vector_load_latency": (4, 5, 6, 7, 8),
    "renamed": (0, 1, 2, 3),
    "renamed_latency": (0, 1, 2),
    "forward_latency": (0, 1, 2, 3, 4, 5, 6, 7, 8),
    "indexed_forward_latency": (0, 1, 2, 3, 4, 5, 6, 7, 8),
    "vector_forward_latency": (0, 2, 4, 5, 6, 7, 8, 10, 12),
    "renames_vectors": (0, 1),
    "renames_extending": (0, 1),
    "fuses_copies": (0, 1),
    "load_ports": _LOAD_PORTS,
    "bank_reads": _BANK_READS,
    "store_ports": (ports(8), ports(8, 9), ports(10), ports(10, 11)),
    "commit_width": (1, 2, 3, 4),
    "line_commit": (0, 1),
    "store_queue": (24, 32, 48, 64, 80, 112, 128),
    "window": (128, 192, 224, 256, 320, 384, 448, 512),
    "partial_penalty": (6, 8, 10, 12, 14, 16, 20),
    "partial_constant_penalty": (0, 6, 8, 10, 12, 14, 16, 20),
    "split_latency": (0, 1, 2, 3, 5, 8),
    "page_penalty": (0, 2, 4, 8, 16, 24, 32),
}  # fmt: skip
"""The values that are tried, in the order of the settings."""


@dataclass(frozen=True)
class Sample:
    """Blocks that the whole core is judged by."""

    blocks: I64
    """Numbers of kept blocks ``[n]``."""
    labels: F64
    """Logarithms of their cycles ``[n]``."""


def draw_sample(
    simulator: Simulator, rows: I64, cycles: F64, seed: int, most: int = _BLOCKS
) -> Sample:
    """Return kept blocks out of ``rows``, no sequence of forms more than twice."""
    taken: dict[bytes, int] = {}
    chosen = []
    for block in np.random.default_rng(seed).permutation(rows).tolist():
        forms = simulator.forms(block).tobytes()
        taken[forms] = taken.get(forms, 0) + 1
        if taken[forms] <= _ALIKE:
            chosen.append(block)
            if len(chosen) == most:
                break
    blocks = np.array(chosen, dtype=np.int64)
    return Sample(blocks, np.log(cycles[blocks]))


def fit_machine(
    simulator: Simulator, core: CoreParameters, sample: Sample, sweeps: int = 20
) -> CoreParameters:
    """Return ``core`` with the settings that explain the labels of ``sample`` best.

    :param sweeps: rounds over all settings at most.
    """
    current, errors = np.zeros(len(sample.blocks)), np.zeros(len(sample.blocks))
    simulator.set_core(core)
    best = simulator.loss(sample.blocks, sample.labels, None, current)
    first = best
    for _ in range(sweeps):
        start = best
        for name in ("front end", *_GROUPS, *_CHOICES, "ALU"):
            for other in _others(core, name):
                simulator.set_core(other)
                loss = simulator.loss(sample.blocks, sample.labels, current, errors)
                if loss < best - _SHARE * first:
                    best, core = loss, other
                    current[:] = errors
        if best > start - 0.003 * first:
            break
    simulator.set_core(core)
    return core


def fit_machine_from_scratch(
    simulator: Simulator, core: CoreParameters, sample: Sample
) -> CoreParameters:
    """Return the best of the cores found from each width of the front end.

    The width moves what all else is worth, so that no single change improves a wrong one.
    """
    count = len(sample.blocks) // _FEWER
    sweeps = 20 if count >= _ENOUGH else 1  # few blocks do not deserve the time
    few = Sample(sample.blocks[:count], sample.labels[:count])
    errors = np.zeros(len(few.blocks))
    found = []
    for width in _WIDTHS:
        settings = replace(core.settings, dispatch_width=width, retire_width=2 * width, entry_ops=0)
        start = CoreParameters(settings, core.forms)
        fitted = fit_machine(simulator, start, few, sweeps)
        found.append((simulator.loss(few.blocks, few.labels, None, errors), width, fitted))
    return fit_machine(simulator, min(found, key=lambda one: one[:2])[2], sample)


def _others(core: CoreParameters, name: str) -> Iterator[CoreParameters]:
    """Return cores with another value of one setting, or another number of ALUs."""
    if name == "ALU":
        for count in (3, 4, 5, 6):
            forms = np.array(core.forms)
            widest = _widest(forms[:, 2])
            mask = ports(*range(count))
            if mask != widest:
                forms[forms[:, 2] == widest, 2] = mask
                yield CoreParameters(core.settings, forms)
        return
    if name == "front end":
        width = core.settings.dispatch_width
        for settings in itertools.product(
            range(max(width - 1, 1), width + 3), (4, 5, 6, 8, 9), (32, 64), (0, 1, 2)
        ):
            front = dict(zip(_FRONT, settings, strict=True))
            yield CoreParameters(replace(core.settings, **front), core.forms)
        yield CoreParameters(replace(core.settings, entry_ops=0), core.forms)
        return
    if name in _GROUPS:
        for values in itertools.product(*_GROUPS[name].values()):
            together = dict(zip(_GROUPS[name], values, strict=True))
            yield CoreParameters(replace(core.settings, **together), core.forms)
        return
    for value in _CHOICES[name]:
        if value != getattr(core.settings, name):
            yield CoreParameters(replace(core.settings, **{name: value}), core.forms)


def _widest(masks: I32) -> int:
    """Return the set of ALUs that the most forms may use."""
    among = masks[(masks > 0) & ((masks & ~ALU) == 0)]
    return int(np.bincount(among).argmax()) if len(among) else ALU
