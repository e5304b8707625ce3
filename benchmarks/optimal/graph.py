"""Call graphs of a few sites: values of all their answers, the best ones, and a known autotuner.

A value is a number of bytes more than with no call inlined. Functions that are joined by inlined
calls change together, and whatever else is inlined does not matter to them, as all other calls
between are kept. So the value of answers is the sum over the parts that inlined calls join, and
only those *clusters* need to be compiled: this is the recursive partitioning of Theodoridis et al.,
"Understanding and exploiting optimal function inlining" (ASPLOS 2022), with the parts of all its
branches shared.

Inlining a function copies the calls in it, and each copy is a question of its own: it is a further
site, once a build has asked about it, and clusters that inline copies are measured like all others.
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
    copies: int = 0
    """The last sites are so many copies that inlining makes."""

    @property
    def own(self) -> int:
        """The number of sites of the source."""
        return len(self.sites) - self.copies

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
        """Yield every set of sites of the source that is joined, the smallest first."""
        for count in range(1, self.own + 1):
            for chosen in combinations(range(self.own), count):
                if len(self.parts(frozenset(chosen))) == 1:
                    yield frozenset(chosen)

    def with_copies(self, offers: Mapping[Inlined, Inlined]) -> Iterator[Inlined]:
        """Yield further clusters: what was measured, one of the copies that it was asked about, and
        nothing or something measured that changes the callee of that copy.

        :param offers: the copies that each measured cluster was asked about and keeps.
        """
        functions = {cluster: self.of_cluster(cluster) for cluster in offers}
        seen: set[Inlined] = set(offers)
        for cluster, copies in offers.items():
            for copy in sorted(copies):
                callee = self.sites[copy][1]
                others = [frozenset[int]()]
                if callee not in functions[cluster]:
                    others += [
                        other
                        for other, own in functions.items()
                        if callee in own and own.isdisjoint(functions[cluster])
                    ]
                for other in others:
                    further = cluster | {copy} | other
                    if further not in seen:
                        seen.add(further)
                        yield further

    def of_cluster(self, cluster: Inlined) -> frozenset[int]:
        """Return the functions that change when exactly ``cluster`` is inlined."""
        return frozenset(function for number in cluster for function in self.sites[number])

    def assignments(self) -> Iterator[Inlined]:
        """Yield every combination of answers to sites of the source."""
        for answers in product((False, True), repeat=self.own):
            yield frozenset(number for number, answer in enumerate(answers) if answer)


Values = Mapping[Inlined, float]
"""Bytes of each cluster more than with no call inlined."""


def value(graph: Graph, values: Values, inlined: Inlined) -> float:
    """Return the bytes that ``inlined`` adds to inlining nothing; negative is a saving."""
    return sum(values[part] for part in graph.parts(inlined))


def optimum(graph: Graph, values: Values) -> tuple[Inlined, float]:
    """Return the best answers, those with fewest calls inlined of equal ones, and their value.

    It is the best packing of clusters that share no function, copies included.
    """
    by_functions: dict[frozenset[int], Inlined] = {}
    for cluster in sorted(values, key=lambda one: (values[one], len(one))):
        if values[cluster] < 0:
            by_functions.setdefault(graph.of_cluster(cluster), cluster)
    found: dict[frozenset[int], tuple[float, int, Inlined]] = {}

    def best(free: frozenset[int]) -> tuple[float, int, Inlined]:
        """Return value, count and answers of the best packing into ``free``."""
        if not free:
            return 0.0, 0, frozenset()
        if free not in found:
            first = min(free)
            ways = [best(free - {first})]
            for functions, cluster in by_functions.items():
                if first in functions and functions <= free:
                    own, count, rest = best(free - functions)
                    ways.append((own + values[cluster], count + len(cluster), rest | cluster))
            found[free] = min(ways, key=lambda way: way[:2])
        return found[free]

    least, _, inlined = best(graph.functions)
    return inlined, least


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
    Copies of a call are kept.
    """
    current = best = start
    seen: set[Inlined] = set()
    rounds = [Round(0, start, value(graph, values, start))]
    while current not in seen:
        seen.add(current)
        before = value(graph, values, current)
        flips = [n for n in range(graph.own) if value(graph, values, current ^ {n}) < before]
        compiles = rounds[-1].compiles + graph.own + 1
        if not flips:
            break
        current = current ^ frozenset(flips)
        best = min(best, current, key=lambda inlined: value(graph, values, inlined))
        rounds.append(Round(compiles, best, value(graph, values, best)))
    return rounds
