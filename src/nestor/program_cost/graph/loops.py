"""Loops of a run: how they are nested, and how often they turn.

A loop is a strongly connected part of the graph; its head is the row that is entered most from
outside, and without the edges to the head what is still connected are the loops inside
(Havlak, "Nesting of reducible and irreducible loops", TOPLAS 1997, by counts instead of dominance).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from nestor.program_cost.graph.flow import Flow

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

_DEEPEST: Final = 12


@dataclass(frozen=True)
class Loop:
    """A loop; rows are those of the table."""

    head: int
    rows: frozenset[int]
    """Those of loops inside included."""
    entries: float
    turns: float
    """Executions of the head by entry."""
    depth: int
    """1 for a loop that is in no other."""
    outer: "Loop | None"


def each_once(innermost: Mapping[int, Loop]) -> list[Loop]:
    """Return the loops of :func:`innermost_loops`, and those around them, each once."""
    found: dict[int, Loop] = {}
    for loop in innermost.values():
        own: Loop | None = loop
        while own is not None and id(own) not in found:
            found[id(own)] = own
            own = own.outer
    return list(found.values())


def innermost_loops(flow: Flow, executions: F64) -> dict[int, Loop]:
    """Return the innermost loop of each row that is in one."""
    found: dict[int, Loop] = {}
    waiting: list[tuple[I64, Loop | None]] = [(np.arange(len(flow.sources)), None)]
    while waiting:
        edges, outer = waiting.pop()
        for inside in _connected(flow, edges):
            loop = _loop(flow, inside, executions, outer)
            found |= dict.fromkeys(loop.rows, loop)  # outer loops come first
            left = (flow.targets[inside] != loop.head) & (flow.sources[inside] != loop.head)
            if left.any() and loop.depth < _DEEPEST:
                waiting.append((inside[left], loop))
    return found


def _connected(flow: Flow, edges: I64) -> list[I64]:
    """Return the edges inside each strongly connected part of the graph of ``edges``."""
    if not len(edges):
        return []
    rows, ends = np.unique(
        np.concatenate([flow.sources[edges], flow.targets[edges]]), return_inverse=True
    )
    sources, targets = np.split(ends, 2)
    graph = coo_matrix((np.ones(len(edges)), (sources, targets)), (len(rows), len(rows)))
    _, part = connected_components(graph, directed=True, connection="strong")
    inside = np.flatnonzero(part[sources] == part[targets])
    order = inside[np.argsort(part[sources[inside]], kind="stable")]
    cuts = np.flatnonzero(np.diff(part[sources[order]])) + 1
    return [edges[piece] for piece in np.split(order, cuts)] if len(order) else []


def _loop(flow: Flow, inside: I64, executions: F64, outer: Loop | None) -> Loop:
    rows, ends = np.unique(flow.targets[inside], return_inverse=True)
    entered = np.maximum(executions[rows] - np.bincount(ends, flow.counts[inside]), 0)
    first = int(np.lexsort((executions[rows], entered))[-1])
    head, entries = int(rows[first]), max(float(entered.sum()), 1.0)
    depth = 1 if outer is None else outer.depth + 1
    turns = float(executions[head]) / entries
    return Loop(head, frozenset(rows.tolist()), entries, turns, depth, outer)
