"""Call graphs of a few sites: values of all their answers, the best ones, and a known autotuner.

A value is a number of bytes more than with no call inlined. Functions that are joined by inlined
calls change together, and whatever else is inlined does not matter to them, as all other calls
between are kept. So the value of answers is the sum over the parts that inlined calls join, and
only those *clusters* need to be compiled: this is the recursive partitioning of Theodoridis et al.,
"Understanding and exploiting optimal function inlining" (ASPLOS 2022), with the parts of all its
branches shared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

Inlined = frozenset[int]
"""Numbers of the sites that are inlined."""


@dataclass(frozen=True)
class Graph:
    """The call sites of one component: caller and callee of each, by function id."""

    sites: tuple[tuple[int, int], ...]

    @property
    def functions(self) -> frozenset[int]:
        """All callers and callees."""
        return frozenset(function for site in self.sites for function in site)

    def parts(self, inlined: Inlined) -> list[Inlined]:
        """Return the clusters that ``inlined`` consists of."""
        found: list[tuple[set[int], set[int]]] = []
        for number in sorted(inlined):
            functions, numbers = set(self.sites[number]), {number}
            for other in [one for one in found if one[0] & functions]:
                functions |= other[0]
                numbers |= other[1]
                found.remove(other)
            found.append((functions, numbers))
        return [frozenset(numbers) for _, numbers in found]

    def clusters(self) -> Iterator[Inlined]:
        """Yield every set of sites that is joined, the smallest first."""
        for count in range(1, len(self.sites) + 1):
            for chosen in combinations(range(len(self.sites)), count):
                if len(self.parts(frozenset(chosen))) == 1:
                    yield frozenset(chosen)

    def of_cluster(self, cluster: Inlined) -> frozenset[int]:
        """Return the functions that change when exactly ``cluster`` is inlined."""
        return frozenset(function for number in cluster for function in self.sites[number])

    def assignments(self) -> Iterator[Inlined]:
        """Yield every combination of answers."""
        for answers in product((False, True), repeat=len(self.sites)):
            yield frozenset(number for number, answer in enumerate(answers) if answer)


Values = Mapping[Inlined, float]
"""Bytes of each cluster more than with no call inlined."""


def value(graph: Graph, values: Values, inlined: Inlined) -> float:
    """Return the bytes that ``inlined`` adds to inlining nothing; negative is a saving."""
    return sum(values[part] for part in graph.parts(inlined))


def optimum(graph: Graph, values: Values) -> tuple[Inlined, float]:
    """Return the best answers, those with fewest calls inlined of equal ones, and their value."""
    best, least = frozenset[int](), 0.0
    for inlined in sorted(graph.assignments(), key=len):
        own = value(graph, values, inlined)
        if own < least:
            best, least = inlined, own
    return best, least


@dataclass(frozen=True)
class Round:
    """The best answers after a round of the autotuner."""

    compiles: int
    """So far."""
    inlined: Inlined
    value: float


def autotuner(graph: Graph, values: Values, start: Inlined) -> Sequence[Round]:
    """Flip each call alone, in rounds, and then all those together that made the program smaller.

    It is the autotuner of Theodoridis et al. (2022). A round compiles once for each call and once
    for the flips together, and the next goes on from there even if that is larger; the best of all
    is the result. Rounds end when no flip pays, or when they come back to answers that they had.
    """
    current = best = start
    seen: set[Inlined] = set()
    rounds = [Round(0, start, value(graph, values, start))]
    while current not in seen:
        seen.add(current)
        before = value(graph, values, current)
        flips = [n for n in range(len(graph.sites)) if value(graph, values, current ^ {n}) < before]
        compiles = rounds[-1].compiles + len(graph.sites) + 1
        if not flips:
            break
        current = current ^ frozenset(flips)
        best = min(best, current, key=lambda inlined: value(graph, values, inlined))
        rounds.append(Round(compiles, best, value(graph, values, best)))
    return rounds
