"""Read the plugin's log of what each allocated function will execute.

JSON lines (docs/reference/formats.md): the format's version, the module, one line for each
function, and how many these were; a log without its last line was cut short.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nestor.problem.trajectory import LogError

VERSION: Final = 1


@dataclass(frozen=True)
class FunctionCost:
    """What one call of a function executes, by the frequencies of its blocks."""

    instructions: float
    reads: float
    """Instructions that may read memory."""
    writes: float
    """Instructions that may write memory."""
    spills: float
    """Of the writes, those to the slots of spilled live ranges."""
    reloads: float
    """Of the reads, those from the slots of spilled live ranges."""
    copies: float
    """Copies from one register to another."""
    flattened: float
    """The cost with the square roots of the frequencies: what guessed ones say with caution."""
    size: int
    """Instructions, each once."""

    @property
    def cost(self) -> float:
        """Instructions and accesses to memory: what allocations are compared by."""
        return self.instructions + self.reads + self.writes

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "FunctionCost":
        """Return the cost in an object of the log."""
        return FunctionCost(
            instructions=float(data["instructions"]),
            reads=float(data["reads"]),
            writes=float(data["writes"]),
            spills=float(data["spills"]),
            reloads=float(data["reloads"]),
            copies=float(data["copies"]),
            flattened=float(data["flattened"]),
            size=int(data["size"]),
        )


@dataclass(frozen=True)
class FunctionAllocation:
    """How one function was allocated."""

    name: str
    """The symbol's."""
    id: int
    """The function's 64-bit id in logs and overrides, unsigned."""
    cost: FunctionCost
    entries: float | None
    """Calls of it by the profile in the module; None without one."""
    questions: int
    """How often the allocator asked what to evict."""
    orders: int
    """How often it asked for a priority."""
    kept: int
    """Questions about eviction that no policy may answer: the stock heuristic's choice is not among
    the candidates, or too many evictions have left it."""
    trials: int
    """Allocations that were tried and thrown away."""
    tried: tuple[float, ...]
    """What the allocations under stock and under each alternative cost, over stock's; infinite for
    one that failed or was not tried. Empty where no alternative left the stock heuristics."""
    evictions: tuple[tuple[int, int], ...]
    """Question and candidate of each eviction that left the stock heuristic."""
    priorities: tuple[tuple[int, float], ...]
    """Question and answer of each priority that left the stock heuristic."""

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "FunctionAllocation":
        """Return the function in a line of the log."""
        return FunctionAllocation(
            name=str(data["function"]),
            id=int(data["id"], 16),
            cost=FunctionCost.from_json(data["cost"]),
            entries=float(data["entries"]) if "entries" in data else None,
            questions=int(data["questions"]),
            orders=int(data["priorities"]),
            kept=int(data["kept"]),
            trials=int(data["trials"]),
            tried=tuple(math.inf if t is None else float(t) for t in data.get("tried", ())),
            evictions=tuple((int(q), int(a)) for q, a in data.get("evict", ())),
            priorities=tuple((int(q), float(a)) for q, a in data.get("priority", ())),
        )


def read(path: Path) -> tuple[FunctionAllocation, ...]:
    """Read the log of one module.

    :return: its functions, in the order of their allocation.
    :raises LogError: if it is no such log, is malformed, or was cut short.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LogError(f"There is no log of allocations: {error}.") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LogError(
            f"'{path}' is no complete log of allocations ({error}); compile again."
        ) from None


def parse(text: str) -> tuple[FunctionAllocation, ...]:
    """Parse the text of a log. See :func:`read`.

    :raises ValueError: (or KeyError, TypeError, RecursionError) if it is no complete log.
    """
    lines = [json.loads(line) for line in text.splitlines()]
    if not lines or lines[0].get("nestor_allocations") != VERSION:
        raise ValueError(f"its first line is not version {VERSION} of the format")
    functions = tuple(FunctionAllocation.from_json(line) for line in lines if "function" in line)
    if lines[-1].get("functions") != len(functions):
        raise ValueError("functions are missing")
    return functions
