"""Say what bounds a block: the front end, which ports, which chain, memory, and what the trees add.

The bounds are those of the simulated core, so they are explanations of the model first, and of the
machine as far as the model is right.
"""

from dataclasses import dataclass

import numpy as np
from iced_x86 import Decoder, Formatter, FormatterSyntax

from nestor.cost.features import FEATURES
from nestor.cost.hybrid import HybridModel
from nestor.cost.machine import PORT_GROUPS, VARIANTS
from nestor.cost.model import ModelError

NEAR = 0.1
"""A bound counts as limiting if it is within this share of the simulated cycles."""


@dataclass(frozen=True)
class ExplainedInstruction:
    """One instruction and what the core takes it to cost."""

    text: str
    form: str
    slots: int
    latency: int
    """Cycles from operands to result, without a load's own."""
    ports: str
    """For example ``1×ALU (3 of 6)``; empty if it needs none."""
    on_chain: bool
    """Whether shortening it would speed up the dependences alone."""


@dataclass(frozen=True)
class Explanation:
    """What bounds one block, in cycles of one pass."""

    cycles: float
    low: float
    high: float
    simulated: float
    """What the core says alone; ``cycles`` is what the trees made of it."""
    bounds: tuple[tuple[str, float], ...]
    """Least cycles by resource, the tightest first: front end, chain, groups of ports."""
    limits: tuple[str, ...]
    """The names of the bounds that the simulation runs into; several if they are equal."""
    memory: tuple[tuple[str, float], ...]
    """Events per pass, those that occur: forwarded loads, split lines, …"""
    instructions: tuple[ExplainedInstruction, ...]

    @property
    def learned(self) -> float:
        """What the trees add to the simulation, in cycles."""
        return self.cycles - self.simulated


def explain(model: HybridModel, block: bytes) -> Explanation:
    """Return why ``model`` predicts what it predicts for ``block``.

    :raises ModelError: if the block cannot be decoded.
    """
    prediction = model.predict([block])
    if not len(block) or np.isnan(prediction.cycles[0]):
        raise ModelError("The block is no whole number of x86-64 instructions; check its bytes.")
    simulator = model.simulator
    simulator.keep([block])
    values = dict(zip(FEATURES, simulator.features(np.array([0]))[0].tolist(), strict=True))
    simulated = float(simulator.rates()[0])
    bounds = _bounds(values, model.part.core.settings.dispatch_width)
    limits = tuple(name for name, cycles in bounds if cycles >= (1 - NEAR) * simulated)
    return Explanation(
        cycles=float(prediction.cycles[0]),
        low=float(prediction.low[0]),
        high=float(prediction.high[0]),
        simulated=simulated,
        bounds=bounds,
        limits=limits or ("several together",),
        memory=tuple((name, values[name]) for name in _MEMORY if values[name] > 0),
        instructions=_instructions(model, block, values["chain"]),
    )


_MEMORY = ("forwarded", "renamed", "partly forwarded", "split lines", "split pages")


def _bounds(values: dict[str, float], width: int) -> tuple[tuple[str, float], ...]:
    found = {
        "front end": values["slots"] / width,
        "dependency chain": float(np.exp(values["chain"])) if values["chain"] > -2.9 else 0.0,
        "ALU ports": max(values["busiest ALU"], values["ALU"] / 6),
        "load ports": values["load ports"] / 4,
        "store ports": values["store ports"],
        "FP ports": max(values["busiest FP"], values["FP"] / 4),
        "FP store ports": values["FP store"],
        "divider": values["divider"],
    }
    return tuple(sorted(found.items(), key=lambda pair: -pair[1]))


def _instructions(
    model: HybridModel, block: bytes, chain: float
) -> tuple[ExplainedInstruction, ...]:
    simulator = model.simulator
    formatter = Formatter(FormatterSyntax.INTEL)
    assert simulator.core is not None
    rows = simulator.core.forms
    numbers = simulator.forms(0)
    out = []
    for number, instruction in zip(numbers.tolist(), Decoder(64, block), strict=True):
        row = rows[number]
        faster = row.copy()
        faster[1] = max(0, int(row[1]) - 1)
        simulator.set_form(number, faster)
        shorter = float(simulator.features(np.array([0]))[0, 1])
        simulator.set_form(number, row)
        out.append(
            ExplainedInstruction(
                text=formatter.format(instruction),
                form=simulator.templates.forms[number // VARIANTS],
                slots=int(row[0]),
                latency=int(row[1]),
                ports=" + ".join(filter(None, (_ports(row[2], row[3]), _ports(row[4], row[5])))),
                on_chain=shorter < chain - 1e-4,
            )
        )
    return tuple(out)


def _ports(mask: int, count: int) -> str:
    """Return, for example, ``2×ALU`` or ``1×ALU (3 of 6)``."""
    if not count or not mask:
        return ""
    for name, group in PORT_GROUPS.items():
        if mask & group and not mask & ~group:
            mine, all_ = int(mask).bit_count(), group.bit_count()
            return f"{count}×{name}" + (f" ({mine} of {all_})" if mine < all_ else "")
    return f"{count}×mixed"
