"""The two networks as cost models: their files, and how they predict."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nestor.cost.baselines import granite, lstm
from nestor.cost.baselines.vocabulary import Vocabulary
from nestor.cost.contract import ModelError, Prediction
from nestor.cost.isa.decoding import DecodeError, Instruction, decode

F64 = NDArray[np.float64]
Index = NDArray[np.int64]
NetworkKind = Literal["lstm", "granite"]

BATCH_COST: Final = 4096
"""Instructions (or a quarter of the edges) in one batch."""


class Encoded(Protocol):
    """Blocks as a network reads them."""

    @property
    def costs(self) -> Index:
        """How much of a batch each block fills ``[n]``."""
        ...

    def batch(self, rows: Index) -> tuple[Tensor, ...]:
        """Return the network's inputs for the blocks ``rows``."""
        ...


class Architecture(Protocol):
    """The module of one kind of network."""

    @property
    def KIND(self) -> str:  # noqa: N802
        """Its name in files."""
        ...

    @property
    def Sizes(self) -> Any:  # noqa: N802
        """The settings of its network."""
        ...

    @property
    def Network(self) -> Any:  # noqa: N802
        """Its network: of the number of words and the settings."""
        ...

    def words_of(self, training: Sequence[Sequence[Instruction]]) -> Vocabulary:
        """Return the vocabulary of training blocks."""
        ...

    def encode(self, blocks: Sequence[Sequence[Instruction]], words: Vocabulary) -> Encoded:
        """Return blocks as the network reads them."""
        ...


ARCHITECTURES: Final[Mapping[NetworkKind, Architecture]] = MappingProxyType(
    {"lstm": lstm, "granite": granite}
)


@dataclass(frozen=True)
class NetworkModel:
    """A trained network with its vocabulary and its interval."""

    kind: NetworkKind
    sizes: lstm.Sizes | granite.Sizes
    vocabulary: Vocabulary
    network: nn.Module
    low: float
    """Factor from the predicted cycles to the lower end of the interval."""
    high: float

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``; NaN where a block cannot be decoded or is empty."""
        result = np.full(len(blocks), np.nan)
        decoded = [decoded_or_none(block) for block in blocks]
        good = np.array([i for i, found in enumerate(decoded) if found], dtype=np.int64)
        if len(good):
            usable = [found for found in decoded if found]
            encoded = ARCHITECTURES[self.kind].encode(usable, self.vocabulary)
            result[good] = np.exp(logarithms(self.network, encoded))
        return Prediction(result, result * self.low, result * self.high)

    def contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the description of the model's file."""
        tensors = self.network.state_dict()
        arrays = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
        return arrays, {
            "sizes": dataclasses.asdict(self.sizes),
            "words": list(self.vocabulary.words),
            "low": self.low,
            "high": self.high,
        }


def restore(
    kind: NetworkKind, arrays: dict[str, NDArray[Any]], description: dict[str, Any]
) -> NetworkModel:
    """Return the model of a file's contents.

    :raises ModelError: if they do not fit together.
    """
    architecture = ARCHITECTURES[kind]
    try:
        sizes = architecture.Sizes(**{k: int(v) for k, v in description["sizes"].items()})
        if not all(0 < size <= 4096 for size in dataclasses.astuple(sizes)):
            raise ValueError("a size is out of range")
        words = Vocabulary(tuple(str(word) for word in description["words"]))
        network = architecture.Network(len(words), sizes)
        network.load_state_dict({name: torch.from_numpy(a) for name, a in arrays.items()})
        low, high = float(description["low"]), float(description["high"])
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"the contents do not fit together ({reason})") from None
    return NetworkModel(kind, sizes, words, network.to(device()).eval(), low, high)


def decoded_or_none(block: bytes) -> tuple[Instruction, ...] | None:
    """Return the instructions of ``block``; None if it is empty or undecodable."""
    try:
        return decode(block) or None
    except DecodeError:
        return None


def device() -> torch.device:
    """Return where networks are computed: on a GPU if PyTorch finds one, else here."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def answers(network: nn.Module, encoded: Encoded, rows: Index) -> Tensor:
    """Return the network's answers for some blocks, where the network is ``[rows]``."""
    home = next(network.parameters()).device
    found: Tensor = network(*(part.to(home) for part in encoded.batch(rows)))
    return found


def logarithms(network: nn.Module, encoded: Encoded) -> F64:
    """Return the network's answers for all blocks ``[n]``."""
    result = np.empty(len(encoded.costs))
    network.eval()
    with torch.inference_mode():
        for rows in batches(encoded.costs, np.argsort(encoded.costs, kind="stable")):
            result[rows] = answers(network, encoded, rows).double().cpu().numpy()
    return result


def batches(costs: Index, order: Index, limit: int = BATCH_COST) -> Iterator[Index]:
    """Cut ``order`` into batches whose blocks, padded to the longest, stay within ``limit``.

    A block that is longer than the limit is a batch of its own.
    """
    start, longest = 0, 0
    for end, cost in enumerate(costs[order].tolist()):
        longest = max(longest, cost)
        if end > start and longest * (end + 1 - start) > limit:
            yield order[start:end]
            start, longest = end, cost
    if start < len(order):
        yield order[start:]
