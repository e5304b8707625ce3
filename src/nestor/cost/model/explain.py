"""Say how our model comes to its answer: what the simulated core says, and what the trees add.

What limits the simulated core (front end, ports, the longest chain) explains the model first, and
the machine as far as the model is right. It is no bound on the answer: the trees add what labels of
like code differ by, and labels may lie below (short chains overlap while they are measured).
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
"""A resource limits the simulation if it is busy for all but this share of its cycles."""


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
    """How an answer comes about, in cycles of one pass: ``cycles = simulated + learned``."""

    cycles: float
    low: float
    high: float
    simulated: float
    """What the simulated core alone says; ``cycles`` has the trees' correction in it."""
    simulated_resources: tuple[tuple[str, float], ...]
    """Cycles for which each resource keeps the simulated core busy, the longest first: front end,
    chain, groups of ports; none is above ``simulated``."""
    limits: tuple[str, ...]
    """The names of the resources that limit the simulation; several if they are about equal."""
    memory: tuple[tuple[str, float], ...]
    """Events per pass, those that occur: forwarded loads, split lines, …"""
    instructions: tuple[ExplainedInstruction, ...]
    untrained: tuple[str, ...]
    """Opcodes that the model never saw in training."""

    @property
    def learned(self) -> float:
        """What the trees add to the simulation, in cycles."""
        return self.cycles - self.simulated


def explain(model: HybridModel, block: bytes) -> Explanation:
    """Return why ``model`` predicts what it predicts for ``block``.

    :raises ModelError: if the block cannot be decoded, or has no throughput to predict.
    """
    prediction = model.predict([block])
    if prediction.refused:
        raise ModelError(f"There is no answer to explain: {prediction.refused[0]}.")
    if not len(block) or np.isnan(prediction.cycles[0]):
        raise ModelError("The block does not decode as x86-64 instructions; check its bytes.")
    session = model.session
    session.keep([block])
    values = dict(zip(FEATURES, session.features(np.array([0]))[0].tolist(), strict=True))
    simulated = float(session.rates()[0])
    resources = _resources(values, model.part.core.settings.dispatch_width, simulated)
    limits = tuple(name for name, cycles in resources if cycles >= (1 - NEAR) * simulated)
    return Explanation(
        cycles=float(prediction.cycles[0]),
        low=float(prediction.low[0]),
        high=float(prediction.high[0]),
        simulated=simulated,
        simulated_resources=resources,
        limits=limits or ("several together",),
        memory=tuple((name, values[name]) for name in _MEMORY if values[name] > 0),
        instructions=_instructions(model, block, values["chain"]),
        untrained=prediction.untrained.get(0, ()),
    )


_MEMORY = ("forwarded", "renamed", "partly forwarded", "split lines", "split pages")


def _resources(
    values: dict[str, float], width: int, simulated: float
) -> tuple[tuple[str, float], ...]:
    """Return the busy cycles of each resource, in the steady state at most those simulated."""
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
    busy = {name: min(cycles, simulated) for name, cycles in found.items()}
    return tuple(sorted(busy.items(), key=lambda pair: -pair[1]))


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
