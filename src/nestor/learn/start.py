"""Where a learner starts: at the default heuristic, with room to explore.

Either a policy that says where to *deviate* from the default, and does so nowhere; or one that
*decides* by itself, the clone of the default (the warm start of MLGO's learners).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nestor.errors import NestorError
from nestor.learn.behavioural_cloning import BehaviouralCloning, CloningSettings
from nestor.learn.known_range import known_range, require_size
from nestor.learn.reference import Reference
from nestor.policy import network
from nestor.policy.network import Layer, LogNormalisation, MlpPolicy
from nestor.policy.spec import Policy

_ROWS = 50_000
"""Decisions to which a normalisation and a clone are fitted."""


@dataclass(frozen=True)
class StartSettings:
    """The policy that a learner starts from, if it is not given one."""

    answers: Literal["deviation", "decision"] = "deviation"
    """Whether to do the opposite of the default, or to inline."""
    hidden: tuple[int, ...] = (32, 32)
    """Widths of the hidden layers; none makes the policy linear."""
    explore: float = 0.03
    """Probability of the answer that the default would not give."""
    outliers: float = 0.05
    """Part of the decisions with the largest callees. Callees larger than the rest are the
    default's, as is what lies outside of the training programs' range ("deviation" only)."""
    clone_steps: int = 1500
    """Gradient steps of cloning ("decision" only)."""

    def __post_init__(self) -> None:
        if not 0 < self.explore < 1:
            raise NestorError("The probability to explore must be between 0 and 1.")
        if not 0 <= self.outliers < 1:
            raise NestorError("The part of outliers must be at least 0 and less than 1.")


def start(reference: Reference, settings: StartSettings, seed: int) -> MlpPolicy:
    """Return the policy that answers as the default does, but for ``explore``."""
    x, answers = reference.sample(_ROWS, seed)
    names = reference.features
    if settings.answers == "decision":
        clone = CloningSettings(
            hidden=settings.hidden,
            steps=settings.clone_steps,
            learning_rate=0.03 if not settings.hidden else 0.01,
            smoothing=settings.explore,
        )
        learner = BehaviouralCloning.fit(clone, seed, names, x, answers.astype(np.float64))
        state = learner.init()
        for _ in range(learner.steps):
            state, _metrics = learner.update(state, learner.batch(state))
        return learner.policy(state)
    require_size(names, settings.outliers)
    normalisation = LogNormalisation(*network.fit_normalisation(x))
    widths = (len(names), *settings.hidden, 1)
    layers = network.initial_layers(widths, np.random.default_rng([seed, 0]))
    odds = np.log(settings.explore / (1 - settings.explore))
    last = Layer(np.zeros_like(layers[-1].weight), np.full(1, odds, dtype=np.float32))
    policy = network.build(
        names, "deviation", normalisation, (*layers[:-1], last), problem="inlining-size"
    )
    return replace(policy, range=known_range(x, names, settings.outliers))


def with_two_outputs(policy: MlpPolicy) -> MlpPolicy:
    """Return the same policy with a value for each action: their difference is the logit."""
    last = policy.layers[-1]
    if len(last.bias) == 2:
        return policy
    half = np.float32(0.5)
    both = Layer(
        np.concatenate([-half * last.weight, half * last.weight]),
        np.concatenate([-half * last.bias, half * last.bias]),
    )
    return replace(policy, layers=(*policy.layers[:-1], both))


def as_network(policy: Policy) -> MlpPolicy:
    """Return the policy that a user wants to start from.

    :raises NestorError: if it is no network.
    """
    if not isinstance(policy, MlpPolicy):
        raise NestorError(
            "This learner moves the weights of a network, and --init names another kind of policy;"
            " --learner distil takes any."
        )
    return policy
