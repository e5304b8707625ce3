"""Random network distillation: a bonus for decisions unlike those seen before.

A network is trained to predict the outputs of a fixed random one; where it still errs, little was
seen (Burda et al., "Exploration by random network distillation", ICLR 2019). The bonus is added
to a decision's reward and fades with the updates.
"""

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nestor.learn.gradient.optimiser import OptimiserState, adam_step

if TYPE_CHECKING:
    import torch

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

_HIDDEN, _OUTPUTS = 32, 16


@dataclass(frozen=True)
class NoveltySettings:
    """How much novelty is worth."""

    weight: float = 0.0
    """Units of reward that the mean novelty is worth at first; 0: no bonus."""
    half_life: float = 20.0
    """Updates after which it is worth half."""
    learning_rate: float = 1e-3
    """Adam's step size."""


@dataclass(frozen=True)
class NoveltyState:
    """The predictor; without parameters if there is no bonus."""

    predictor: OptimiserState
    scale: float
    """The mean error when the first batch was seen, by which errors are divided."""


def begin(settings: NoveltySettings, inputs: int, seed: int) -> NoveltyState:
    """Return a predictor that has seen nothing."""
    if settings.weight == 0:
        return NoveltyState(OptimiserState.begin(np.empty(0)), 0.0)
    parameters = _random(inputs, np.random.default_rng([seed, 5]))
    return NoveltyState(OptimiserState.begin(parameters), 0.0)


def update(
    settings: NoveltySettings, state: NoveltyState, z: F32, seed: int
) -> tuple[NoveltyState, F64]:
    """Return the predictor after one step on ``z``, and the bonus of each row ``[questions]``.

    :param z: normalised features of the rows that were chosen, f32 ``[questions, inputs]``.
    """
    if settings.weight == 0 or len(z) == 0:
        return state, np.zeros(len(z))
    import torch

    torch.set_num_threads(1)
    rows = torch.from_numpy(z)
    fixed = _random(z.shape[1], np.random.default_rng([seed, 6]))
    target = _outputs(torch.from_numpy(fixed).float(), rows)
    parameters = torch.from_numpy(state.predictor.parameters).float().requires_grad_()
    errors = ((_outputs(parameters, rows) - target) ** 2).mean(dim=1)
    errors.mean().backward()  # type: ignore[no-untyped-call]
    assert parameters.grad is not None
    gradient = parameters.grad.numpy().astype(np.float64)
    predictor = adam_step(state.predictor, gradient, settings.learning_rate)
    found = errors.detach().numpy().astype(np.float64)
    scale = state.scale or float(found.mean()) or 1.0
    fading = 0.5 ** (state.predictor.updates / settings.half_life)
    return NoveltyState(predictor, scale), settings.weight * fading * found / scale


def _widths(inputs: int) -> tuple[int, ...]:
    return inputs, _HIDDEN, _OUTPUTS


def _random(inputs: int, generator: np.random.Generator) -> F64:
    parts = []
    for before, after in itertools.pairwise(_widths(inputs)):
        parts.append(generator.standard_normal(before * after) * np.sqrt(2 / before))
        parts.append(np.zeros(after))
    return np.concatenate(parts)


def _outputs(parameters: "torch.Tensor", rows: "torch.Tensor") -> "torch.Tensor":
    import torch

    place, values = 0, rows
    for before, after in itertools.pairwise(_widths(rows.shape[1])):
        weight = parameters[place : place + before * after].reshape(after, before)
        place += before * after
        values = values @ weight.T + parameters[place : place + after]
        place += after
        values = torch.relu(values) if after != _OUTPUTS else values
    return values
