"""What a compile comes to: the cost of its functions, each weighted by how often it is called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nestor.regalloc.allocation_log import FunctionAllocation
from nestor.regalloc.weights import Calls, weights

COLUMNS: Final = (
    "cost",
    "instructions",
    "reads",
    "writes",
    "spills",
    "reloads",
    "copies",
    "flattened",
    "size",
)
"""Of a report; all but ``size`` count what is executed."""

_PER_CALL: Final = COLUMNS[:-1]


@dataclass(frozen=True)
class ModuleCost:
    """The functions of a module as they were allocated."""

    functions: tuple[FunctionAllocation, ...]
    weights: tuple[float, ...]
    """Calls of each function, ``[functions]``."""

    @staticmethod
    def of(functions: Sequence[FunctionAllocation], measured: Calls | None) -> "ModuleCost":
        """Return the cost of ``functions``, weighted as :mod:`nestor.regalloc.weights` says."""
        return ModuleCost(tuple(functions), tuple(weights(functions, measured)))

    def columns(self) -> dict[str, float]:
        """Return the sums over all functions, by the names of :data:`COLUMNS`."""
        pairs = list(zip(self.weights, self.functions, strict=True))
        executed = {
            name: sum(weight * getattr(function.cost, name) for weight, function in pairs)
            for name in _PER_CALL
        }
        return executed | {"size": sum(function.cost.size for function in self.functions)}

    def parts(self) -> dict[str, float]:
        """Return the weighted cost of each function by its symbol's name."""
        pairs = zip(self.weights, self.functions, strict=True)
        return {function.name: weight * function.cost.cost for weight, function in pairs}


@dataclass(frozen=True)
class CostOfFunctions:
    """Scores a unit by the cost of its functions; nothing of it depends on a program."""

    def parts(self, outcome: ModuleCost) -> Mapping[str, float]:
        """Return the cost of each function by its name."""
        return outcome.parts()

    def total(self, outcome: ModuleCost) -> float:
        """Return the cost of all functions."""
        return sum(outcome.parts().values())

    def to_json(self) -> dict[str, Any]:
        """Return no data: there are no settings."""
        return {}
