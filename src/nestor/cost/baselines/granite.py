"""A graph network over the data flow of a block, in the way of GRANITE.

Source of the method: Sýkora, Phothilimthana, Mendis, Yazdanbakhsh, "GRANITE: A Graph Neural Network
Model for Basic Block Throughput Estimation", IISWC 2022. Instructions, values (a register or
memory between one write and the next), constants and address computations are nodes; edges say
which instruction follows, reads and writes what. Full graph-network blocks (Battaglia et al.,
2018) update edges, nodes and a state of the whole graph several times; the answer is the sum of
what every instruction's node says. Ours differs in size (the CPU budget), in the kind of node word
of an instruction (its code instead of prefixes and mnemonic) and in the loss (see ``training``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nestor.cost.baselines import vocabulary
from nestor.cost.baselines.vocabulary import Vocabulary
from nestor.cost.isa.decoding import Instruction

Index = NDArray[np.int64]

KIND: Final = "granite"
_MARKS: Final = ("<memory>", "<address>", "<constant>", "<flags>")
_NEXT, _READ, _WRITE, _BASE, _INDEX, _DISPLACEMENT = range(6)
EDGE_KINDS: Final = 6


@dataclass(frozen=True)
class Sizes:
    """How large the network is."""

    width: int = 48
    """Of every node, edge and graph state."""
    rounds: int = 4
    """Updates, each with weights of its own."""


@dataclass(frozen=True)
class Encoded:
    """Graphs, one after the other."""

    nodes: NDArray[np.int32]
    """Words of the nodes."""
    node_starts: Index
    """``[n + 1]``"""
    edges: NDArray[np.int32]
    """Source, target (numbered within the block) and kind ``[edges, 3]``."""
    edge_starts: Index
    """``[n + 1]``"""
    operations: NDArray[np.int32]
    """Nodes that are instructions, numbered within the block."""
    operation_starts: Index
    """``[n + 1]``"""

    @property
    def costs(self) -> Index:
        """Edges of each block: what a batch is filled by ``[n]``."""
        return np.diff(self.edge_starts) // 4 + 1

    def batch(self, rows: Index) -> tuple[Tensor, ...]:
        """Return node words and graphs, edges, operations and their graphs, and a count."""
        nodes, graphs = _gather(self.nodes, self.node_starts, rows)
        first = np.concatenate([[0], np.cumsum(np.diff(self.node_starts)[rows])])
        edges, owners = _gather(self.edges, self.edge_starts, rows)
        edges = edges.astype(np.int64)
        edges[:, :2] += first[owners, None]
        operations, holders = _gather(self.operations, self.operation_starts, rows)
        parts = (
            nodes.astype(np.int64), graphs, edges[:, 0], edges[:, 1], edges[:, 2], owners,
            operations + first[holders], holders, np.zeros(len(rows), dtype=np.int64),
        )  # fmt: skip
        return tuple(torch.from_numpy(np.ascontiguousarray(part)) for part in parts)


def _gather(
    values: NDArray[np.int32], starts: Index, rows: Index
) -> tuple[NDArray[np.int32], Index]:
    """Return the values of the blocks ``rows``, and for each the position of its block."""
    parts = [values[starts[row] : starts[row + 1]] for row in rows]
    owners = np.repeat(np.arange(len(rows)), np.diff(starts)[rows])
    return np.concatenate(parts), owners


def words_of(training: Sequence[Sequence[Instruction]]) -> Vocabulary:
    """Return the vocabulary of training blocks."""
    return vocabulary.build(training, _MARKS)


def encode(blocks: Sequence[Sequence[Instruction]], words: Vocabulary) -> Encoded:
    """Return ``blocks``, none of them empty, as graphs."""
    nodes: list[int] = []
    edges: list[tuple[int, int, int]] = []
    operations: list[int] = []
    starts = [(0, 0, 0)]
    for block in blocks:
        graph = _Graph(words)
        for instruction in block:
            graph.add(instruction)
        nodes += graph.nodes
        edges += graph.edges
        operations += graph.operations
        starts.append((len(nodes), len(edges), len(operations)))
    node_starts, edge_starts, operation_starts = np.array(starts, dtype=np.int64).T
    return Encoded(
        np.array(nodes, dtype=np.int32), node_starts,
        np.array(edges, dtype=np.int32).reshape(-1, 3), edge_starts,
        np.array(operations, dtype=np.int32), operation_starts,
    )  # fmt: skip


class _Graph:
    """The graph of one block while it grows."""

    def __init__(self, words: Vocabulary) -> None:
        self.nodes: list[int] = []
        self.edges: list[tuple[int, int, int]] = []
        self.operations: list[int] = []
        self._words = words
        self._values: dict[str, int] = {}
        """The node that holds each register's present value."""

    def add(self, instruction: Instruction) -> None:
        """Add the next instruction, what it reads, then what it writes."""
        operation = self._node(self._words.operation(instruction))
        if self.operations:
            self.edges.append((self.operations[-1], operation, _NEXT))
        self.operations.append(operation)
        address = vocabulary.addressing(instruction.memory)
        for register in instruction.reads:
            if register not in address:
                self.edges.append((self._value(register), operation, _READ))
        if instruction.flags_read:
            self.edges.append((self._value("<flags>"), operation, _READ))
        if instruction.immediate is not None:
            self.edges.append((self._new("<constant>"), operation, _READ))
        stores = []
        for memory in instruction.memory:
            computed = self._new("<address>")
            for register, kind in ((memory.base, _BASE), (memory.index, _INDEX)):
                if register:
                    self.edges.append((self._value(register), computed, kind))
            if memory.displacement:
                self.edges.append((self._new("<constant>"), computed, _DISPLACEMENT))
            if memory.access != "write":
                loaded = self._new("<memory>")
                self.edges += [(computed, loaded, _READ), (loaded, operation, _READ)]
            if memory.access != "read":
                stores.append(computed)
        for computed in stores:
            stored = self._new("<memory>")
            self.edges += [(computed, stored, _WRITE), (operation, stored, _WRITE)]
        written = [*instruction.writes, *(["<flags>"] if instruction.flags_written else [])]
        for register in written:
            self._values[register] = self._new(register)
            self.edges.append((operation, self._values[register], _WRITE))

    def _node(self, word: int) -> int:
        self.nodes.append(word)
        return len(self.nodes) - 1

    def _new(self, word: str) -> int:
        return self._node(self._words.number(word))

    def _value(self, register: str) -> int:
        if register not in self._values:
            self._values[register] = self._new(register)
        return self._values[register]


class Network(nn.Module):
    """Graph → logarithm of the cycles."""

    def __init__(self, words: int, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.width
        self.embedding = nn.Embedding(words, width)
        self.kinds = nn.Embedding(EDGE_KINDS, width)
        self.graph = nn.Parameter(torch.zeros(width))
        self.rounds = nn.ModuleList(_Round(width) for _ in range(sizes.rounds))
        self.head = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1), nn.Softplus()
        )

    def forward(
        self, words: Tensor, graphs: Tensor, sources: Tensor, targets: Tensor, kinds: Tensor,
        owners: Tensor, operations: Tensor, holders: Tensor, blank: Tensor,
    ) -> Tensor:  # fmt: skip
        """Return the logarithm of the cycles ``[blocks]``."""
        nodes = self.embedding(words)
        edges = self.kinds(kinds)
        whole = self.graph.expand(len(blank), -1)
        for update in self.rounds:
            nodes, edges, whole = update(nodes, edges, whole, graphs, sources, targets, owners)
        cycles = nodes.new_zeros(len(blank))
        cycles = cycles.index_add(
            0, holders, self.head(nodes.index_select(0, operations)).squeeze(1)
        )
        return torch.log(cycles + 1e-4)


class _Round(nn.Module):
    """One full graph-network block with residual connections.

    The first layer of each update is a sum of linear maps of its inputs: that of their
    concatenation, but a node is mapped once instead of once an edge.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge = nn.Linear(width, width)
        self.source = nn.Linear(width, width, bias=False)
        self.target = nn.Linear(width, width, bias=False)
        self.edge_whole = nn.Linear(width, width, bias=False)
        self.edge_out = nn.Linear(width, width)
        self.node = nn.Linear(width, width)
        self.received = nn.Linear(width, width, bias=False)
        self.node_whole = nn.Linear(width, width, bias=False)
        self.node_out = nn.Linear(width, width)
        self.whole = nn.Linear(3 * width, width)
        self.whole_out = nn.Linear(width, width)
        self.edge_norm = nn.LayerNorm(width)
        self.node_norm = nn.LayerNorm(width)
        self.whole_norm = nn.LayerNorm(width)

    def forward(
        self, nodes: Tensor, edges: Tensor, whole: Tensor,
        graphs: Tensor, sources: Tensor, targets: Tensor, owners: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """Return the updated states of nodes, edges and graphs."""
        shown = self.node_norm(nodes)
        context = self.whole_norm(whole)
        hidden = self.edge(self.edge_norm(edges))
        hidden = hidden + self.source(shown).index_select(0, sources)
        hidden = hidden + self.target(shown).index_select(0, targets)
        hidden = hidden + self.edge_whole(context).index_select(0, owners)
        edges = edges + self.edge_out(torch.relu(hidden))
        received = torch.zeros_like(nodes).index_add(0, targets, edges)
        hidden = self.node(shown) + self.received(received)
        hidden = hidden + self.node_whole(context).index_select(0, graphs)
        nodes = nodes + self.node_out(torch.relu(hidden))
        sums = [torch.zeros_like(whole).index_add(0, graphs, nodes)]
        sums.append(torch.zeros_like(whole).index_add(0, owners, edges))
        inputs = torch.cat([context, *(torch.log1p(s.abs()) * s.sign() for s in sums)], dim=1)
        return nodes, edges, whole + self.whole_out(torch.relu(self.whole(inputs)))
