"""The call graph around a site as features: what the callers and callees of both ends are like.

Each function of a module's log is a node with a few features, each pair of caller and callee an
edge. One *hop* appends to a node's features their means over its callees and over its callers;
of the result, those of the site's caller and callee are the site's. This is message passing with
fixed weights, which leaves the learning to the model behind it (Wu et al., "Simplifying Graph
Convolutional Networks", ICML 2019).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from nestor.problem.trajectory import Trajectory

F64 = npt.NDArray[np.float64]

NODE: tuple[str, ...] = ("code_size", "calls", "landing_pads", "is_local", "is_discardable",
                         "call_uses", "may_throw")  # fmt: skip
"""Features that a function has as caller and as callee alike, by the end of their names."""


def nodes(log: Trajectory) -> tuple[F64, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the features of the functions ``[functions, NODE]`` and each decision's ends.

    A function's are those of its first decision; sizes and counts are log2(1 + x).

    :return: features, and the caller's and the callee's number of each decision.
    """
    ids = np.concatenate([log.decisions["caller"], log.decisions["callee"]])
    _, first, number = np.unique(ids, return_index=True, return_inverse=True)
    ends = [log.rows([f"{end}_{name}" for name in NODE]) for end in ("caller", "callee")]
    values = np.concatenate(ends)[first]
    return np.log2(1 + np.maximum(0, values)), number[: len(log)], number[len(log) :]


def edges(caller: npt.NDArray[np.int64], callee: npt.NDArray[np.int64], functions: int) -> Any:
    """Return the graph as a sparse matrix: 1 where the row's function calls the column's."""
    graph = sparse.csr_matrix(
        (np.ones(len(caller)), (caller, callee)), shape=(functions, functions)
    )
    graph.data[:] = 1.0
    return graph


def names(hops: int) -> tuple[str, ...]:
    """Return the names of :func:`neighbourhood`'s features."""
    columns: tuple[str, ...] = NODE
    for hop in range(1, hops + 1):
        means_of = (f"{way}{hop}_{n}" for way in ("callees", "callers") for n in columns)
        columns = (*columns, *means_of, f"callees{hop}", f"callers{hop}")
    own = columns[len(NODE) :]
    return tuple(f"{end}_of_{name}" for end in ("caller", "callee") for name in own)


def neighbourhood(log: Trajectory, hops: int) -> F64:
    """Return the features of every decision, ``[decisions, len(names(hops))]``.

    :raises LogError: if the log lacks one of the functions' features.
    """
    columns, caller, callee = nodes(log)
    graph = edges(caller, callee, len(columns))
    ways = [means(graph), means(graph.T.tocsr())]
    for _ in range(hops):
        degrees = [np.log2(1 + np.diff(way.indptr))[:, None] for way in ways]
        columns = np.concatenate([columns, *(way @ columns for way in ways), *degrees], axis=1)
    own: Sequence[F64] = [columns[caller, len(NODE) :], columns[callee, len(NODE) :]]
    return np.concatenate(own, axis=1)


def means(graph: Any) -> Any:
    """Return the matrix that takes means over a row's neighbours; 0 where there are none."""
    degree = np.maximum(1, np.diff(graph.indptr))
    return sparse.diags(1 / degree) @ graph
