"""How a policy's features become the inputs of its network."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from nestor.policy.spec import F32, F64, Array, PolicyError, tensor


class Normalisation(Protocol):
    """How a policy's features become the network's inputs."""

    transform: ClassVar[str]

    @property
    def features(self) -> int:
        """How many features go in."""

    @property
    def width(self) -> int:
        """How many inputs of the network come out."""

    def apply(self, x: F64) -> F32:
        """Turn x [n, features] into z [n, width]."""

    def tensors(self) -> dict[str, Array]:
        """Name → array, as they stand in the file."""


@dataclass(frozen=True, eq=False)
class LogNormalisation:
    """z = f32(clamp((squash(x) - shift) · scale, -8, 8)); both f64 [features]."""

    transform: ClassVar[str] = "log"
    shift: F64
    scale: F64

    def __post_init__(self) -> None:
        for name in ("shift", "scale"):
            array = tensor(f"normalise.{name}", getattr(self, name), np.float64, 1)
            object.__setattr__(self, name, array)
        if self.shift.shape != self.scale.shape:
            raise PolicyError("normalise.shift and normalise.scale must have the same length")

    @property
    def features(self) -> int:
        """How many features go in."""
        return len(self.shift)

    @property
    def width(self) -> int:
        """One input per feature."""
        return len(self.shift)

    def apply(self, x: F64) -> F32:
        """Turn x [n, features] into z [n, features]."""
        with np.errstate(over="ignore"):  # an infinite product is clamped
            scaled = (squash(x) - self.shift) * self.scale
        return np.clip(scaled, -8.0, 8.0).astype(np.float32)

    def tensors(self) -> dict[str, Array]:
        """Name → array, as they stand in the file."""
        return {"normalise.shift": self.shift, "normalise.scale": self.scale}


@dataclass(frozen=True, eq=False)
class QuantileNormalisation:
    """z = the share of the feature's boundaries ≤ x; `boundaries` f32 [features, B], ascending."""

    transform: ClassVar[str] = "quantile"
    boundaries: F32

    def __post_init__(self) -> None:
        array = tensor("normalise.boundaries", self.boundaries, np.float32, 2)
        if (array[:, 1:] < array[:, :-1]).any():
            raise PolicyError("every row of normalise.boundaries must be ascending")
        object.__setattr__(self, "boundaries", array)

    @property
    def features(self) -> int:
        """How many features go in."""
        return int(self.boundaries.shape[0])

    @property
    def width(self) -> int:
        """Three inputs per feature: z, its root and its square."""
        return 3 * self.features

    def apply(self, x: F64) -> F32:
        """Turn x [n, features] into z, sqrt z, z² of each feature [n, 3 · features]."""
        with np.errstate(over="ignore"):  # beyond f32 is infinite, and so above every boundary
            rounded = x.astype(np.float32)
        result: F32 = np.empty((len(x), self.width), dtype=np.float32)
        for index, row in enumerate(self.boundaries):
            count = np.searchsorted(row, rounded[:, index], side="right")
            z = count.astype(np.float32) / np.float32(len(row))
            result[:, 3 * index] = z
            result[:, 3 * index + 1] = np.sqrt(z)
            result[:, 3 * index + 2] = z * z
        return result

    def tensors(self) -> dict[str, Array]:
        """Name → array, as they stand in the file."""
        return {"normalise.boundaries": self.boundaries}


@dataclass(frozen=True, eq=False)
class QuantileScoreNormalisation:
    """The inputs of `QuantileNormalisation`, and behind those of each feature its z-score.

    The z-score is (x - mean) · scale in f32; `mean` and `scale` f32 [features].
    """

    transform: ClassVar[str] = "quantile-z-score"
    boundaries: F32
    mean: F32
    scale: F32

    def __post_init__(self) -> None:
        object.__setattr__(self, "boundaries", QuantileNormalisation(self.boundaries).boundaries)
        for name in ("mean", "scale"):
            array = tensor(f"normalise.{name}", getattr(self, name), np.float32, 1)
            if len(array) != self.features:
                raise PolicyError(f"normalise.{name} must have a value per feature")
            object.__setattr__(self, name, array)

    @property
    def features(self) -> int:
        """How many features go in."""
        return int(self.boundaries.shape[0])

    @property
    def width(self) -> int:
        """Four inputs per feature: z, its root, its square and the z-score."""
        return 4 * self.features

    def apply(self, x: F64) -> F32:
        """Turn x [n, features] into z, sqrt z, z² and the z-score of each [n, 4 · features]."""
        shares = QuantileNormalisation(self.boundaries).apply(x)
        shares = shares.reshape(len(x), self.features, 3)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            scores = (x.astype(np.float32) - self.mean) * self.scale
        return np.concatenate([shares, scores[:, :, None]], axis=2).reshape(len(x), self.width)

    def tensors(self) -> dict[str, Array]:
        """Name → array, as they stand in the file."""
        return {
            "normalise.boundaries": self.boundaries,
            "normalise.mean": self.mean,
            "normalise.scale": self.scale,
        }


def squash(x: F64) -> F64:
    """A piecewise-linear log2(|x| + 1) with the sign of x; exact but for the last addition."""
    fraction, exponent = np.frexp(np.abs(x) + 1.0)
    result: F64 = np.copysign((exponent - 1) + (2.0 * fraction - 1.0), x)
    return result


def fit_normalisation(x: Array) -> tuple[F64, F64]:
    """
    (shift, scale), f64 [features], that give squashed x [n, features] mean 0 and deviation 1.

    A feature that is constant in x gets the scale 0: its input is then 0 for every value, so
    nothing that training has never seen reaches the network. Raises ValueError without rows.
    """
    if x.ndim != 2 or len(x) == 0:
        raise ValueError(f"a normalisation needs [n > 0, features], not {x.shape}")
    squashed = squash(x.astype(np.float64))
    shift: F64 = squashed.mean(axis=0)
    deviation: F64 = squashed.std(axis=0)
    # The mean of equal numbers may be off by a rounding: the deviation alone cannot tell.
    varies = (np.ptp(squashed, axis=0) > 0) & (deviation > 1e-12)
    scale: F64 = np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
    return shift, scale
