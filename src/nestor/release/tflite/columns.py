"""A network over columns, each a formula of one feature, and the policy that it is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.policy.layers import Layer
from nestor.policy.network import MlpPolicy, build
from nestor.policy.normalisation import QuantileNormalisation, QuantileScoreNormalisation
from nestor.policy.spec import PolicyError

MAX_BOUNDARIES: Final = 1 << 14
_ROUNDING: Final = 1e-6
"""How far a reciprocal in f32 is from the number that it stands for, relative to it."""


@dataclass(frozen=True)
class Score:
    """(x - mean) · scale of a feature; the feature itself with 0 and 1."""

    feature: int
    mean: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Share:
    """(factor · number of boundaries up to x) ^ power, of a feature."""

    feature: int
    boundaries: tuple[float, ...]
    factor: float = 1.0
    power: float = 1.0


Column = Score | Share


@dataclass(frozen=True)
class Hidden:
    """What layers make of columns."""

    columns: tuple[Column, ...]
    layers: tuple[Layer, ...]
    rectified: bool
    """Whether the last layer has a ReLU behind it."""


def policy_of(
    network: Hidden, names: Sequence[str], problem: str, provenance: Mapping[str, object]
) -> MlpPolicy:
    """Return the policy that a network is.

    :param names: of the features by their numbers; those that no column reads are left out.
    :raises PolicyError: if a feature is normalised in more ways than a policy has.
    """
    used = sorted({column.feature for column in network.columns})
    place = {feature: index for index, feature in enumerate(used)}
    boundaries = _boundaries(network.columns, place, names)
    mean, scale = (np.zeros(len(used), np.float32) for _ in range(2))
    scores: dict[int, Score] = {}
    for column in network.columns:
        if isinstance(column, Score):
            if scores.setdefault(column.feature, column) != column:
                raise PolicyError(f"it scales the feature {names[column.feature]!a} in two ways")
            mean[place[column.feature]] = column.mean
            scale[place[column.feature]] = column.scale
    each = 4 if scores else 3
    first = network.layers[0]
    weight = np.zeros((len(first.bias), each * len(used)))
    for number, column in enumerate(network.columns):
        start = each * place[column.feature]
        if isinstance(column, Score):
            weight[:, start + 3] += first.weight[:, number]
            continue
        factor = np.float64(column.factor * len(column.boundaries))
        factor = np.float64(1) if abs(factor - 1) < _ROUNDING else factor**column.power
        slot = (1.0, 0.5, 2.0).index(column.power)
        weight[:, start + slot] += factor * first.weight[:, number]
    normalisation = (
        QuantileScoreNormalisation(boundaries, mean, scale)
        if scores
        else QuantileNormalisation(boundaries)
    )
    layers = [Layer(weight.astype(np.float32), first.bias), *network.layers[1:]]
    features = [names[feature] for feature in used]
    return build(features, "decision", normalisation, layers, provenance, problem=problem)


def _boundaries(
    columns: Sequence[Column], place: Mapping[int, int], names: Sequence[str]
) -> NDArray[np.float32]:
    """Return the boundaries of all features, equally many; one without has zeros.

    Lists of different lengths are brought to the length that all divide, each boundary repeated:
    that leaves the shares as they are.
    """
    found: dict[int, tuple[float, ...]] = {}
    for column in columns:
        if not isinstance(column, Share):
            continue
        if found.setdefault(column.feature, column.boundaries) != column.boundaries:
            raise PolicyError(f"it buckets the feature {names[column.feature]!a} in two ways")
    length = math.lcm(*(len(each) for each in found.values()))
    if length > MAX_BOUNDARIES:
        raise PolicyError("its features have numbers of boundaries that cannot be made equal")
    result = np.zeros((len(place), length), np.float32)
    for feature, boundaries in found.items():
        result[place[feature]] = np.repeat(boundaries, length // len(boundaries))
    return result
