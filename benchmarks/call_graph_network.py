"""A call-graph network with learned weights, beside a perceptron on the site's own features.

    python -m benchmarks.call_graph_network OUT [--steps 3000] [--repeats 1]

OUT holds what ``benchmarks.embeddings record`` has kept: trials, and the logs in which they lie. A
function is a node; a layer makes a new vector of a node's and of the means over its callees and
over its callers (GraphSAGE with means: Hamilton, Ying and Leskovec, NIPS 2017). The vectors of the
site's two ends join the site's features as inputs of the perceptron that distillation's networks
are, and all of it is trained together. A row is a number of layers; 0 is the perceptron alone.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from benchmarks.ablation import FEATURES
from benchmarks.embeddings import logs_of, recorded, score, with_columns
from benchmarks.pool import PROBLEM
from nestor.learn.distil import gain_model
from nestor.learn.distil.gain_model import GainSettings
from nestor.learn.distil.gain_network import Network
from nestor.learn.distil.trials import Trials, join
from nestor.policy.network import LogNormalisation, fit_normalisation
from nestor.policy.spec import Policy
from nestor.problems.inlining_size.features.neighbourhood import edges, means, nodes

if TYPE_CHECKING:
    import torch

F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]

ENDS: Final = ("caller_node", "callee_node")
"""Columns of trials: the numbers of the site's functions in the graph."""


@dataclass(frozen=True)
class Graph:
    """The call graphs of all logs, side by side."""

    x: F32
    """Features of the functions and the means of their neighbours', ``[functions, 3 × NODE]``."""
    ways: tuple[Any, Any]
    """Sparse matrices that take means over callees and over callers."""


def gather(kept: Sequence[tuple[Trials, Path]]) -> tuple[Trials, Graph]:
    """Return the trials of all programs, with their ends as columns, and the graph they lie in."""
    features, graphs, trials, begin = [], [], [], 0
    for one, folder in kept:
        places, logs = logs_of(folder)
        ends: dict[str, tuple[I64, I64]] = {}
        for name, log in logs.items():
            own, caller, callee = nodes(log)
            features.append(own)
            graphs.append(edges(caller, callee, len(own)))
            ends[name] = (caller + begin, callee + begin)
            begin += len(own)
        rows = np.array([[ends[log][0][i], ends[log][1][i]] for log, i in places], dtype=np.float64)
        trials.append(with_columns(one, ENDS, rows))
    graph = sparse.block_diag(graphs, format="csr")
    ways = (means(graph), means(graph.T.tocsr()))
    x = np.concatenate(features)
    x = (x - x.mean(axis=0)) / np.maximum(1e-9, x.std(axis=0))
    around = np.concatenate([x, ways[0] @ x, ways[1] @ x], axis=1)
    return join(trials), Graph(around.astype(np.float32), ways)


@dataclass(frozen=True)
class GraphNetwork:
    """The kind of models: see :class:`nestor.learn.distil.gain_model.Kind`.

    The last two columns of the inputs are the numbers of the site's ends.
    """

    graph: Graph = field(repr=False)
    layers: int = 2
    """1 sees the functions' neighbours, 2 also theirs."""
    width: int = 16
    """Of a node's vector."""
    like: Network = field(default_factory=Network)
    """The perceptron, and how it is trained."""

    def fit(self, x: F64, y: F64, weight: F64, seed: int, *, coarse: bool) -> "Fitted":
        """Fit the graph's layers and the perceptron together."""
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        normalisation = LogNormalisation(*fit_normalisation(x[:, :-2]))
        fitted = Fitted(self, normalisation, self._module(x.shape[1] - 2))
        targets = torch.from_numpy(y.astype(np.float32))
        importance = torch.from_numpy((weight / weight.mean()).astype(np.float32))
        parameters = fitted.net.parameters()
        optimiser = torch.optim.AdamW(
            parameters, self.like.learning_rate, weight_decay=self.like.decay
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.like.steps)
        for _ in range(self.like.steps):
            batch = rng.integers(len(y), size=self.like.batch_size)
            error = torch.nn.functional.huber_loss(
                fitted.outputs(x[batch]), targets[batch], reduction="none", delta=self.like.huber
            )
            optimiser.zero_grad()
            (error * importance[batch]).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        return fitted

    def _module(self, inputs: int) -> "torch.nn.ModuleDict":
        from torch import nn

        first = nn.Sequential(nn.Linear(self.graph.x.shape[1], self.width), nn.ReLU())
        second = nn.Sequential(nn.Linear(3 * self.width, self.width), nn.ReLU())
        widths = (inputs + 2 * self.width * self.layers, *self.like.hidden)
        hidden = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
        head = nn.Sequential(*hidden, nn.Linear(widths[-1], 1))
        return nn.ModuleDict({"first": first, "second": second, "head": head})


@dataclass(frozen=True)
class Fitted:
    """A network in training, or trained."""

    kind: GraphNetwork
    normalisation: LogNormalisation
    net: "torch.nn.ModuleDict"

    def predict(self, x: F64) -> F64:
        """Predict. See :class:`nestor.learn.distil.gain_model.Model`."""
        import torch

        with torch.no_grad():
            parts = [self.outputs(x[row : row + 2048]) for row in range(0, len(x), 2048)]
        return np.concatenate([part.numpy() for part in parts]).astype(np.float64)

    def policy(self, features: Sequence[str], problem: str) -> Policy:
        """Refuse: there is no such policy in a compiler yet."""
        raise NotImplementedError

    def outputs(self, x: F64) -> "torch.Tensor":
        """Return the predictions for ``x`` ``[rows, features and ends]``, ``[rows]``."""
        import torch

        site = torch.from_numpy(self.normalisation.apply(x[:, :-2]).astype(np.float32))
        ends, where = np.unique(x[:, -2:].astype(np.int64), return_inverse=True)
        vectors = self._vectors(ends)[torch.from_numpy(where.reshape(-1))].reshape(len(x), -1)
        inputs = torch.cat([site, vectors], dim=1)
        logits: torch.Tensor = self.net["head"](inputs).squeeze(1)
        return logits

    def _vectors(self, chosen: I64) -> "torch.Tensor":
        """Return the vectors of all layers of the functions ``chosen``."""
        import torch

        own = [way[chosen].tocoo() for way in self.kind.graph.ways]
        needed = np.unique(np.concatenate([chosen, *(part.col for part in own)]))
        first = self.net["first"](torch.from_numpy(self.kind.graph.x[needed]))
        here: torch.Tensor = first[torch.from_numpy(np.searchsorted(needed, chosen))]
        if self.kind.layers == 1:
            return here
        around = [
            torch.sparse_coo_tensor(
                torch.from_numpy(np.stack([part.row, np.searchsorted(needed, part.col)])),
                torch.from_numpy(part.data.astype(np.float32)),
                (len(chosen), len(needed)),
                check_invariants=False,  # said, or PyTorch warns that it does not check
            )
            @ first
            for part in own
        ]
        second = self.net["second"](torch.cat([here, *around], dim=1))
        return torch.cat([here, second], dim=1)


def main() -> int:
    """Fit and print a row per number of layers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path, help="what 'benchmarks.embeddings record' has kept")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    kept = recorded(options.out)
    if not kept:
        parser.error(f"{options.out} holds no trials: run 'benchmarks.embeddings record' first")
    trials, graph = gather(kept)
    folds = len(trials.programs)
    settings = GainSettings(repeats=options.repeats, folds=folds)
    perceptron = replace(Network(), steps=options.steps)
    print(f"{len(trials):,} trials, {graph.ways[0].nnz:,} calls of {len(graph.x):,} functions")
    for layers in (0, 1, 2):
        kind = GraphNetwork(graph, layers, like=perceptron) if layers else perceptron
        features = (*FEATURES, *(ENDS if layers else ()))
        data = gain_model.rows(trials, features, PROBLEM, settings, 0)
        across = gain_model.predict_across(kind, data, settings, 0)
        print(f"{layers} layers  {score(data, across, settings)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
