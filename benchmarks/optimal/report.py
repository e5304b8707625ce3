"""Compare searches and policies with the optima: shares of the gap, and of optimal components."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.optimal.graph import Inlined, autotuner, optimum, value
from benchmarks.optimal.record import Part, Record

TOLERANCE = 4.0
"""Bytes: the last unwind entry of an object is padded, and moves with the order of functions."""


@dataclass(frozen=True)
class Row:
    """One way to decide, over components."""

    name: str
    components: int
    closed: float
    """Share of the bytes between stock and optimum that it saves, in per cent."""
    optimal: float
    """Share of components in which it is optimal, in per cent."""
    larger: int
    """Components that are larger than stock's."""


def rows(records: Sequence[Record], mode: str) -> list[Row]:
    """Return a row for everything that all components have been measured under."""
    parts = [part for record in records for part in record.parts if "default" in part.measured]
    parts = [part for part in parts if part.measured["default"][mode]]
    if not parts:
        return []
    names = [n for n in parts[0].measured if all(n in part.measured for part in parts)]
    found = [_row(name, parts, mode, _measured(name, mode)) for name in names if name != "optimum"]
    found.append(_row("nothing inlined", parts, mode, lambda part: part.base[mode]))
    for compiles in (25, 100):
        found.append(_row(f"autotuner {compiles}", parts, mode, _autotuned(mode, compiles)))
    found.append(_row("autotuner 1 round", parts, mode, _autotuned(mode, None)))
    return found


def best_bytes(part: Part, mode: str) -> float:
    """Return the bytes of the optimum of one component.

    Calls that inlining copies are all kept in what was enumerated; where a build that answers them
    one by one came out smaller, that is the optimum.
    """
    enumerated = part.base[mode] + optimum(part.graph, _values(part, mode))[1]
    return min([enumerated, *(own[mode] for own in part.measured.values())])


def copies_matter(records: Sequence[Record], mode: str) -> int:
    """Return in how many components something is smaller than what was enumerated."""
    parts = [part for record in records for part in record.parts]
    return sum(
        best_bytes(part, mode)
        < part.base[mode] + optimum(part.graph, _values(part, mode))[1] - TOLERANCE
        for part in parts
    )


def composed_wrongly(records: Sequence[Record], mode: str) -> int:
    """Return in how many components the optimum, when built, is not what clusters add up to."""
    return sum(
        abs(part.measured["optimum"][mode] - part.base[mode] - found) > TOLERANCE
        for record in records
        for part in record.parts
        if "optimum" in part.measured
        for found in [optimum(part.graph, _values(part, mode))[1]]
    )


def _row(name: str, parts: Sequence[Part], mode: str, of: Callable[[Part], float]) -> Row:
    stock = [part.measured["default"][mode] for part in parts]
    best = [best_bytes(part, mode) for part in parts]
    own = [of(part) for part in parts]
    gap = sum(stock) - sum(best)
    return Row(
        name,
        len(parts),
        100 * (sum(stock) - sum(own)) / gap if gap else 100.0,
        100 * sum(o <= b + TOLERANCE for o, b in zip(own, best, strict=True)) / len(parts),
        sum(o > s + TOLERANCE for o, s in zip(own, stock, strict=True)),
    )


def _measured(name: str, mode: str) -> Callable[[Part], float]:
    return lambda part: part.measured[name][mode]


def _autotuned(mode: str, compiles: int | None) -> Callable[[Part], float]:
    """Return what the autotuner reaches with so many compiles, or in one round."""

    def of(part: Part) -> float:
        values = _values(part, mode)
        stock: Inlined = frozenset(n for n, answer in enumerate(part.stock) if answer)
        rounds = autotuner(part.graph, values, stock)
        reached = rounds[:2] if compiles is None else [r for r in rounds if r.compiles <= compiles]
        last = reached[-1]
        # Stock may have inlined copies; the rounds start from what it answers to the calls.
        return part.measured["default"][mode] + last.value - value(part.graph, values, stock)

    return of


def _values(part: Part, mode: str) -> dict[Inlined, float]:
    return {cluster: own[mode] for cluster, own in part.values.items()}
