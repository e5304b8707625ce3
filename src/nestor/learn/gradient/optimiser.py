"""One step of Adam on a flat vector of parameters, with its state as arrays for checkpoints."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OptimiserState:
    """Parameters and what Adam remembers of the gradients before (Kingma and Ba, 2015)."""

    updates: int
    """Steps so far."""
    parameters: F64
    """``[parameters]``"""
    mean: F64
    """Running mean of the gradient, ``[parameters]``."""
    square: F64
    """Running mean of the gradient's square, ``[parameters]``."""

    @staticmethod
    def begin(parameters: npt.NDArray[np.floating]) -> "OptimiserState":
        """Return the state before the first step."""
        nothing = np.zeros(len(parameters))
        return OptimiserState(0, parameters.astype(np.float64), nothing, nothing)


def adam_step(
    state: OptimiserState, gradient: F64, rate: float, epsilon: float = 1e-8
) -> OptimiserState:
    """Return the state after one step of Adam against ``gradient`` ``[parameters]``."""
    first, second = 0.9, 0.999
    updates = state.updates + 1
    mean = first * state.mean + (1 - first) * gradient
    square = second * state.square + (1 - second) * gradient**2
    unbiased_mean = mean / (1 - first**updates)
    unbiased_square = square / (1 - second**updates)
    change = -rate * unbiased_mean / (np.sqrt(unbiased_square) + epsilon)
    return OptimiserState(updates, state.parameters + change, mean, square)
