"""Adam on a flat parameter vector, as a pure function (Kingma and Ba, 2015)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """The running means of the gradient and of its square, both f64 ``[parameters]``."""

    mean: F64
    square: F64

    @staticmethod
    def zeros(parameters: int) -> "Moments":
        """Return the moments before the first step."""
        return Moments(np.zeros(parameters), np.zeros(parameters))


def adam(
    gradient: F64,
    moments: Moments,
    step: int,
    rate: float,
    decay: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
) -> tuple[F64, Moments]:
    """Return what to add to the parameters to descend, and the next moments.

    :param step: counts from 0.
    """
    first, second = decay
    mean = first * moments.mean + (1 - first) * gradient
    square = second * moments.square + (1 - second) * gradient**2
    unbiased_mean = mean / (1 - first ** (step + 1))
    unbiased_square = square / (1 - second ** (step + 1))
    return -rate * unbiased_mean / (np.sqrt(unbiased_square) + epsilon), Moments(mean, square)
