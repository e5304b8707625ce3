"""Compare searches and policies with the optima: shares of the gap, and of optimal components."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.optimal.graph import Inlined, autotuner, optimum
from benchmarks.optimal.record import Part, Record

TOLERANCE: Final = 4.0
"""Bytes: the last unwind entry of an object is padded, and moves with the order of functions."""


AUTOTUNED: Final = (25, 100)
"""Compiles of a component after which the autotuner is shown."""

FOUR_TIMES: Final = 4
"""A search is compared with the autotuner after so many times its compiles."""


@dataclass(frozen=True)
class Row:
    """One way to decide, over components."""

    name: str
    components: int
    closed: float
    """Share of the bytes between stock and optimum that it saves, in per cent."""
    with_gap: int
    """Components in which stock is not optimal."""
    optimal: float
    """Share of components in which it is optimal, in per cent."""
    larger: int
    """Components that are larger than stock's."""
    beyond: int | None
    """Components that are larger than the autotuner's with four times the compiles; None for what
    is no search."""


def rows(records: Sequence[Record], mode: str) -> list[Row]:
    """Return a row for everything that components have been measured under.

    What was measured of some components only has a row over those.
    """
    parts = [part for part in distinct(records) if part.measured["default"][mode]]
    if not parts:
        return []
    names = dict.fromkeys(name for part in parts for name in part.measured if name != "optimum")
    found = []
    for name in names:
        own = [part for part in parts if name in part.measured]
        compiles = _compiles(name)
        found.append(_row(name, own, mode, _measured(name, mode), compiles))
    found.append(_row("nothing inlined", parts, mode, lambda part: part.base[mode]))
    found.append(_row("autotuner, 1 round", parts, mode, _autotuned(mode, None)))
    for budget in AUTOTUNED:
        found.append(_row(f"autotuner, {budget}", parts, mode, _autotuned(mode, budget)))
    return found


def distinct(records: Sequence[Record]) -> list[Part]:
    """Return the components that were judged; of one that several programs link, the first."""
    found: dict[object, Part] = {}
    for record in records:
        for part in record.parts:
            if "default" in part.measured and part.enumerated:
                found.setdefault((record.level, part.own_keys), part)
    return list(found.values())


def _compiles(name: str) -> int | None:
    """Return how many compiles the search of this name had; None if it is no search."""
    last = name.rsplit(" ", 1)[-1]
    return int(last) if last.isdigit() else None


def by_project(records: Sequence[Record], mode: str) -> list[list[object]]:
    """Return by project its language, level, components, those with a gap, and the gap's bytes."""
    groups: dict[tuple[str, str, str], list[Part]] = defaultdict(list)
    known = {id(part) for part in distinct(records)}
    for record in records:
        own = [p for p in record.parts if id(p) in known and p.measured["default"][mode]]
        groups[record.program.split("/")[0], record.language, record.level] += own
    lines: list[list[object]] = []
    for names, parts in sorted(groups.items()):
        gaps = [part.measured["default"][mode] - best_bytes(part, mode) for part in parts]
        if parts:
            lines.append([*names, len(parts), sum(gap > TOLERANCE for gap in gaps), sum(gaps)])
    return lines


def best_bytes(part: Part, mode: str) -> float:
    """Return the bytes of the optimum of one component.

    It is that of a whole build, if one comes up to what was enumerated but for padding. Where
    copies of calls are too many to be enumerated they are all kept; where a build that answers them
    one by one came out smaller, that is the optimum.
    """
    enumerated = part.base[mode] + optimum(part.graph, _values(part, mode))[1]
    built = min((own[mode] for own in part.measured.values()), default=enumerated)
    return built if built <= enumerated + TOLERANCE else enumerated


def copies_matter(records: Sequence[Record], mode: str) -> int:
    """Return in how many components something is smaller than every answer that keeps copies."""
    return sum(
        best_bytes(part, mode) < part.base[mode] + _keeping_copies(part, mode) - TOLERANCE
        for part in distinct(records)
    )


def _keeping_copies(part: Part, mode: str) -> float:
    """Return the value of the best answers that keep all copies of calls."""
    own = {c: v for c, v in _values(part, mode).items() if max(c) < part.graph.own}
    return optimum(part.graph, own)[1]


def composed_wrongly(records: Sequence[Record], mode: str) -> int:
    """Return in how many components the optimum, when built, is not what clusters add up to.

    :param mode: that whose optimum was built.
    """
    return sum(
        abs(part.measured["optimum"][mode] - part.base[mode] - found) > TOLERANCE
        for part in distinct(records)
        if "optimum" in part.measured
        for found in [optimum(part.graph, _values(part, mode))[1]]
    )


def _row(
    name: str,
    parts: Sequence[Part],
    mode: str,
    of: Callable[[Part], float],
    compiles: int | None = None,
) -> Row:
    stock = [part.measured["default"][mode] for part in parts]
    best = [best_bytes(part, mode) for part in parts]
    own = [of(part) for part in parts]
    gap = sum(stock) - sum(best)
    beyond = None
    if compiles is not None:
        other = [_autotuned(mode, FOUR_TIMES * compiles)(part) for part in parts]
        beyond = sum(o > a + TOLERANCE for o, a in zip(own, other, strict=True))
    return Row(
        name,
        len(parts),
        100 * (sum(stock) - sum(own)) / gap if gap else 100.0,
        sum(s > b + TOLERANCE for s, b in zip(stock, best, strict=True)),
        100 * sum(o <= b + TOLERANCE for o, b in zip(own, best, strict=True)) / len(parts),
        sum(o > s + TOLERANCE for o, s in zip(own, stock, strict=True)),
        beyond,
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
        # Of what stock makes of copies nothing is enumerated, where copies are all kept.
        return min(part.measured["default"][mode], part.base[mode] + reached[-1].value)

    return of


def _values(part: Part, mode: str) -> dict[Inlined, float]:
    return {cluster: own[mode] for cluster, own in part.values.items()}
