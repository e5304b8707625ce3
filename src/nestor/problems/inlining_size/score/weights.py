"""What the bytes of one module's functions weigh in the linked programs, under any policy.

:mod:`nestor.build.linking` weighs the functions of one link exactly. A learner that compiles
single modules cannot afford a link for each, so it takes the weights of the stock link for all of
its compiles. A function that the stock object does not hold (stock inlined all of its calls) is
weighed like the module's others of its kind, or a policy would have it for nothing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nestor.build.linking import Link, shares
from nestor.compiler.objects import Function, Measure
from nestor.corpus.model import Program


@dataclass(frozen=True)
class Weights:
    """How much of each byte of one module its programs hold, on average over the programs."""

    functions: Mapping[str, float]
    """Of the stock object's functions, by name."""
    constants: float
    """Of its read-only data; 1 for a module that every program pulls in."""
    new_weak: float
    """Of a COMDAT function that the stock object lacks; another one weighs ``constants``."""

    def of(self, function: Function) -> float:
        """Return the weight of one function of any object of the module."""
        new = self.new_weak if function.weak else self.constants
        return self.functions.get(function.name, new)

    def parts(self, outcome: Measure) -> dict[str, float]:
        """Return the weighed bytes of every function of an object of the module, by name."""
        return {function.name: self.of(function) * function.size for function in outcome.functions}

    def total(self, outcome: Measure) -> float:
        """Return the bytes that are the module's in a linked program."""
        constants = self.constants * outcome.sections[".rodata"]
        return float(sum(self.parts(outcome).values()) + constants)

    def to_json(self) -> dict[str, Any]:
        """Return the weights as plain data."""
        return asdict(self)


def weigh(
    programs: Sequence[tuple[Program, Link]], sizes: Mapping[str, Measure]
) -> dict[str, Weights]:
    """Return the weights of every module.

    :param programs: with their stock links, made with ``want_kept``; failed ones are left out.
    :param sizes: the measures of the stock objects by module.
    """
    found: dict[str, list[Weights]] = defaultdict(list)
    for program, linked in programs:
        if linked.measure is None:
            continue
        share = shares(program, linked, sizes)
        for name in program.modules:
            if name in sizes:
                functions = sizes[name].functions
                by_name = {f.name: share.functions.get((name, f.name), 0.0) for f in functions}
                constants = share.constants.get(name, 0.0)
                weak = [by_name[f.name] for f in functions if f.weak]
                new_weak = float(np.mean(weak)) if weak else constants
                found[name].append(Weights(by_name, constants, new_weak))
    return {name: _mean(weights) for name, weights in found.items()}


def _mean(weights: Sequence[Weights]) -> Weights:
    names = weights[0].functions
    return Weights(
        {name: float(np.mean([w.functions[name] for w in weights])) for name in names},
        float(np.mean([w.constants for w in weights])),
        float(np.mean([w.new_weak for w in weights])),
    )
