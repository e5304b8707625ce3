"""What the tests of updates share: policies to start from, small worlds and gradients."""

from typing import Any

import numpy as np
import pytest

from nestor.learn.algorithms.dqn import Dqn, DqnSettings
from nestor.learn.start import with_two_outputs
from nestor.policy.network import MlpPolicy
from tests.learn.worlds import World, beginner, pick_world, threshold_world

WORLDS = pytest.mark.parametrize("make", [threshold_world, pick_world])
UNIT = 16.0
"""Bytes that are one unit of reward in these worlds."""


def moved(policy: MlpPolicy, size: float = 0.3, seed: int = 3) -> MlpPolicy:
    """Return the policy with random parameters."""
    drawn = np.random.default_rng(seed).standard_normal(policy.parameters) * size
    return policy.with_parameters(drawn.astype(np.float32))


def gradient_of(state: Any) -> Any:
    """Return the gradient of the first step: the running mean has taken a tenth of it."""
    assert state.optimiser.updates == 1
    return state.optimiser.mean / 0.1


def two_units(make: Any) -> World:
    """A world of a few questions, so that plain references are quick."""
    made: World = make(2, 12)
    return made


def dqn(world: World, hidden: tuple[int, ...] = (4,), **options: Any) -> Dqn:
    first = moved(beginner(world, hidden))
    start = with_two_outputs(first) if world.reference.problem.rule.name == "threshold" else first
    start = moved(start)
    settings = DqnSettings(
        modules=2, **{"gradient_steps": 1, "minibatch": 64, "temperature": 5.0, **options}
    )
    return Dqn(settings, 0, start, world)
