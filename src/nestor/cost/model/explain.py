"""Say what bounds a block: front end, ports, the longest chain, memory, and what the trees add.

The bounds are those of the simulated core, so they are explanations of the model first, and of the
machine as far as the model is right.
"""

from dataclasses import dataclass

import numpy as np
from iced_x86 import Decoder, Formatter, FormatterSyntax

from nestor.cost.contract import ModelError
from nestor.cost.core.parameters import PORT_GROUPS, FormParameters
from nestor.cost.isa.template_layout import VARIANTS
from nestor.cost.model.features import CHAIN, FEATURES
from nestor.cost.model.hybrid import HybridModel

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
    """What the simulated core alone says; ``cycles`` has the trees' correction in it."""
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
        raise ModelError("The block does not decode as x86-64 instructions; check its bytes.")
    session = model.session
    session.keep([block])
    values = dict(zip(FEATURES, session.features(np.array([0]))[0].tolist(), strict=True))
    simulated = float(session.rates()[0])
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
    session = model.session
    formatter = Formatter(FormatterSyntax.INTEL)
    assert session.core is not None
    rows = session.core.forms
    out = []
    for number, instruction in zip(session.forms(0).tolist(), Decoder(64, block), strict=True):
        costs = FormParameters(*rows[number].tolist())
        faster = costs._replace(latency=max(0, costs.latency - 1))
        session.set_form(number, np.array(faster, dtype=np.int32))
        shorter = float(session.features(np.array([0]))[0, CHAIN])
        session.set_form(number, rows[number])
        ports = (
            _ports(costs.ports, costs.executions),
            _ports(costs.second_ports, costs.second_executions),
        )
        out.append(
            ExplainedInstruction(
                text=formatter.format(instruction),
                form=session.templates.forms[number // VARIANTS],
                slots=costs.slots,
                latency=costs.latency,
                ports=" + ".join(filter(None, ports)),
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
            usable, present = mask.bit_count(), group.bit_count()
            return f"{count}×{name}" + (f" ({usable} of {present})" if usable < present else "")
    return f"{count}×mixed"
