"""Policies whose numbers are layers: their tensors, and what must fit together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from nestor.policy.normalisation import Normalisation
from nestor.policy.spec import F32, Array, Metadata, Policy, PolicyError, tensor

MAX_LAYERS: Final = 8
MAX_WIDTH: Final = 4096


@dataclass(frozen=True, eq=False)
class Layer:
    """`weight` f32 [out, in] and `bias` f32 [out]."""

    weight: F32
    bias: F32


def check_layers(
    metadata: Metadata, normalisation: Normalisation, layers: tuple[Layer, ...]
) -> tuple[Layer, ...]:
    """Return the layers with checked arrays.

    :raises PolicyError: if they do not fit one another, the normalisation or the features.
    """
    if normalisation.features != len(metadata.features):
        raise PolicyError(
            f"its normalisation is for {normalisation.features} features "
            f"and it names {len(metadata.features)}"
        )
    if not 1 <= len(layers) <= MAX_LAYERS:
        raise PolicyError(f"a network has 1 to {MAX_LAYERS} layers, not {len(layers)}")
    width = normalisation.width
    checked = []
    for k, layer in enumerate(layers):
        weight = tensor(f"layer.{k}.weight", layer.weight, np.float32, 2)
        bias = tensor(f"layer.{k}.bias", layer.bias, np.float32, 1)
        if weight.shape != (len(bias), width) or len(bias) > MAX_WIDTH:
            raise PolicyError(
                f"layer {k} must be [at most {MAX_WIDTH}, {width}] with a bias for every row, "
                f"not {weight.shape} with {len(bias)}"
            )
        width = len(bias)
        checked.append(Layer(weight, bias))
    return tuple(checked)


@dataclass(frozen=True, eq=False)
class LayeredPolicy(Policy):
    """A normalisation and 1 to 8 layers with ReLU between them; raises PolicyError if unfit."""

    normalisation: Normalisation
    layers: tuple[Layer, ...]

    KIND: ClassVar[str]
    """The kind of its files."""

    def __post_init__(self) -> None:
        super().__post_init__()
        transform = self.normalisation.transform
        if self.metadata.kind != self.KIND or self.metadata.transform != transform:
            raise PolicyError("its kind and transform must be those of its tensors")
        checked = check_layers(self.metadata, self.normalisation, self.layers)
        self._check_outputs(len(checked[-1].bias))
        object.__setattr__(self, "layers", checked)

    def _check_outputs(self, outputs: int) -> None:
        """Raise PolicyError unless the last layer may have so many outputs."""

    @property
    def parameters(self) -> int:
        """How many weights and biases there are."""
        return sum(layer.weight.size + layer.bias.size for layer in self.layers)

    def _tensors(self) -> dict[str, Array]:
        result = self.normalisation.tensors()
        for k, layer in enumerate(self.layers):
            result[f"layer.{k}.weight"] = layer.weight
            result[f"layer.{k}.bias"] = layer.bias
        return result
