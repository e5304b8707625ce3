"""
Multi-layer perceptrons: exact evaluation in numpy, and the way to PyTorch.

The reference path has exactly the arithmetic of docs/reference/formats.md, so that it agrees with
the C++ evaluator bit for bit. PyTorch is imported only by those who ask for `Network`: whoever
merely compiles with a policy does not need it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from nestor.policy.layers import MAX_LAYERS, Layer, LayeredPolicy, check_layers
from nestor.policy.normalisation import (
    LogNormalisation,
    Normalisation,
    QuantileNormalisation,
    QuantileScoreNormalisation,
    fit_normalisation,
    squash,
)
from nestor.policy.spec import DEFAULT_RULE, F32, F64, Array, Metadata, PolicyError

__all__ = [
    "MAX_LAYERS",
    "Layer",
    "LayeredPolicy",
    "LogNormalisation",
    "MlpPolicy",
    "Network",
    "Normalisation",
    "QuantileNormalisation",
    "QuantileScoreNormalisation",
    "build",
    "check_layers",
    "fit_normalisation",
    "from_torch",
    "initial_layers",
    "squash",
    "to_torch",
    "weighted_sum",
]

if TYPE_CHECKING:
    from torch import Tensor, nn

    class Network(nn.Module):
        """
        The layers of an `MlpPolicy` for training; built by `_network_class`.

        `widths` are those of the input, of every hidden layer, and of the output (1 or 2).
        """

        layers: nn.ModuleList

        def __init__(self, widths: Sequence[int]) -> None: ...

        def forward(self, z: Tensor) -> Tensor:
            """Logits [n] of the normalised inputs `z` f32 [n, widths[0]]."""


# Rows evaluated at once: the activations of a usual network then stay in the cache.
_BLOCK: Final = 1024


@dataclass(frozen=True, eq=False)
class MlpPolicy(LayeredPolicy):
    """A network with one logit for each row, or a value for each of two actions."""

    KIND = "mlp"

    def _check_outputs(self, outputs: int) -> None:
        if outputs not in (1, 2):
            raise PolicyError(f"the last layer must have one or two outputs, not {outputs}")

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the input, the hidden layers and the output."""
        return (self.normalisation.width, *(len(layer.bias) for layer in self.layers))

    def normalise(self, x: Array) -> F32:
        """The network's inputs z f32 [n, widths[0]] for x [n, features]."""
        return self.normalisation.apply(self.inputs(x))

    def _logits(self, inputs: F64) -> F64:
        """The reference: one multiplication and one addition at a time."""
        z = self.normalisation.apply(inputs)
        blocks = [self._exact(z[i : i + _BLOCK]) for i in range(0, len(z), _BLOCK)]
        return np.concatenate([np.empty(0), *blocks])

    def _fast_logits(self, inputs: F64) -> F64:
        """The same through BLAS, whose sums have another order: equal but for rounding."""
        values = self.normalisation.apply(inputs)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for k, layer in enumerate(self.layers):
                values = values @ layer.weight.T + layer.bias
                if k + 1 < len(self.layers):
                    values = np.maximum(values, 0)
            return _logit(values)

    def _exact(self, z: F32) -> F64:
        values = z
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for k, layer in enumerate(self.layers):
                total: F32 = np.tile(layer.bias, (len(values), 1))
                product = np.empty_like(total)
                rows = np.ascontiguousarray(layer.weight.T)
                for j in range(len(rows)):
                    # Two separate operations, or the rounding of the product would be lost.
                    np.multiply(values[:, j, None], rows[j], out=product)
                    np.add(total, product, out=total)
                if k + 1 < len(self.layers):
                    # `y > 0 ? y : 0`: unlike a maximum, this also defines NaN and -0.
                    total = np.where(total > 0, total, np.float32(0))
                values = total
            return _logit(values)

    def flatten_parameters(self) -> F32:
        """
        All weights and biases, f32 [parameters]: per layer, weight by rows, then bias.

        It is the order of `torch.nn.utils.parameters_to_vector` for a `Network`.
        """
        parts = [part.ravel() for layer in self.layers for part in (layer.weight, layer.bias)]
        return np.concatenate(parts)

    def with_parameters(self, vector: F32) -> MlpPolicy:
        """The same network with the parameters of a vector f32 [parameters]."""
        if vector.shape != (self.parameters,):
            raise ValueError(f"{self.parameters} parameters are needed, not {vector.shape}")
        layers, start = [], 0
        for layer in self.layers:
            middle = start + layer.weight.size
            end = middle + layer.bias.size
            weight = vector[start:middle].reshape(layer.weight.shape)
            layers.append(Layer(weight, vector[middle:end]))
            start = end
        return replace(self, layers=tuple(layers))


def initial_layers(widths: Sequence[int], rng: np.random.Generator) -> tuple[Layer, ...]:
    """
    Random layers for a start without PyTorch: uniform weights of variance 2 / in, no bias.

    `widths` as for `Network`. Source: He et al. 2015, "Delving deep into rectifiers".
    """
    layers = []
    for before, after in itertools.pairwise(widths):
        bound = np.sqrt(6.0 / before)
        weight = rng.uniform(-bound, bound, (after, before)).astype(np.float32)
        layers.append(Layer(weight, np.zeros(after, dtype=np.float32)))
    return tuple(layers)


def build(
    features: Sequence[str],
    answers: str,
    normalisation: Normalisation,
    layers: Sequence[Layer],
    provenance: Mapping[str, object] | None = None,
    *,
    problem: str,
    rule: str = DEFAULT_RULE,
    candidate_features: Sequence[str] = (),
) -> MlpPolicy:
    """A policy of these parts; raises PolicyError if they do not fit together."""
    meta = Metadata(
        "mlp",
        tuple(features),
        answers,
        normalisation.transform,
        provenance or {},
        problem=problem,
        rule=rule,
        candidate_features=tuple(candidate_features),
    )
    return MlpPolicy(meta, normalisation, tuple(layers))


def weighted_sum(parts: Sequence[tuple[MlpPolicy, float]], offset: float = 0.0) -> MlpPolicy:
    """
    The network whose logit is the sum of each part's times its weight, plus `offset`.

    The parts stand side by side in it. They must have one output, equally many layers and the
    first one's normalisation, whose metadata is kept; raises PolicyError if they have not.
    """
    first = parts[0][0]
    depth = len(first.layers)
    if any(len(p.layers) != depth or p.widths[-1] != 1 for p, _ in parts):
        raise PolicyError("networks of different depths or with two outputs have no sum")
    if any(p.features != first.features for p, _ in parts):
        raise PolicyError("policies that read different features have no sum")
    layers = []
    for k in range(depth):
        weights = [part.layers[k].weight for part, _ in parts]
        biases = [part.layers[k].bias for part, _ in parts]
        if k == depth - 1:
            weights = [
                np.float32(factor) * w for w, (_, factor) in zip(weights, parts, strict=True)
            ]
            biases = [np.float32(factor) * b for b, (_, factor) in zip(biases, parts, strict=True)]
        weight = np.concatenate(weights) if k == 0 else _block_diagonal(weights)
        bias = np.concatenate(biases)
        if k == depth - 1:
            weight = weight.sum(axis=0, keepdims=True, dtype=np.float32)
            bias = bias.sum(keepdims=True, dtype=np.float32) + np.float32(offset)
        layers.append(Layer(weight, bias))
    return replace(first, layers=tuple(layers), range=None)


def _block_diagonal(blocks: Sequence[F32]) -> F32:
    rows, columns = (sum(block.shape[axis] for block in blocks) for axis in (0, 1))
    result = np.zeros((rows, columns), dtype=np.float32)
    row = column = 0
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result


def to_torch(policy: MlpPolicy) -> Network:
    """A trainable network with the policy's weights; its inputs are `policy.normalise(x)`."""
    import torch

    network = _network_class()(policy.widths)
    with torch.no_grad():
        for module, layer in zip(network.layers, policy.layers, strict=True):
            # Copies: the policy's arrays are read-only and stay as they are.
            assert isinstance(module, torch.nn.Linear)
            module.weight.copy_(torch.tensor(layer.weight))
            module.bias.copy_(torch.tensor(layer.bias))
    return network


def from_torch(network: Network, template: MlpPolicy) -> MlpPolicy:
    """The template (normalisation, metadata) with the weights of a network, on any device."""
    arrays = [part.detach().cpu().float().numpy() for part in network.parameters()]
    layers = tuple(map(Layer, arrays[::2], arrays[1::2]))  # a weight, then its bias
    return replace(template, layers=layers)


def _logit(outputs: F32) -> F64:
    logit = outputs[:, 0] if outputs.shape[1] == 1 else outputs[:, 1] - outputs[:, 0]
    return logit.astype(np.float64)


@functools.cache
def _network_class() -> type[Network]:
    import torch

    class Network(torch.nn.Module):
        """The layers of an `MlpPolicy`; forward: z f32 [n, widths[0]] → logits [n]."""

        def __init__(self, widths: Sequence[int]) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(
                torch.nn.Linear(before, after) for before, after in itertools.pairwise(widths)
            )

        def forward(self, z: torch.Tensor) -> torch.Tensor:
            for k, layer in enumerate(self.layers):
                z = layer(z if k == 0 else torch.relu(z))
            return z[:, 0] if z.shape[1] == 1 else z[:, 1] - z[:, 0]

    # Found by pickle as an attribute of this module, like any other class.
    Network.__qualname__ = "Network"
    return Network  # type: ignore[return-value]  # the declaration above, with a body


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Create `Network`, and import PyTorch, at the first use of the name."""
        if name == "Network":
            return _network_class()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
