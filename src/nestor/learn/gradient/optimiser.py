"""One step of Adam on a flat vector of parameters, with its state as arrays for checkpoints.

The optimiser is that of PyTorch; a checkpoint needs its state as arrays, and a pure update must
leave the state before it as it is. So each step makes the optimiser of its state, steps, and reads
the next state. All is f64: what is lost in rounding the parameters to f32 is lost only for the
network that is evaluated.
"""

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
    import torch  # only a training run needs it, and its import takes a second

    parameters = torch.tensor(state.parameters)
    parameters.grad = torch.tensor(gradient)
    adam = torch.optim.Adam([parameters], rate, eps=epsilon)
    adam.state[parameters] = {
        "step": torch.tensor(float(state.updates)),
        "exp_avg": torch.tensor(state.mean),
        "exp_avg_sq": torch.tensor(state.square),
    }
    adam.step()
    after = adam.state[parameters]
    return OptimiserState(
        state.updates + 1,
        parameters.numpy(),
        after["exp_avg"].numpy(),
        after["exp_avg_sq"].numpy(),
    )
