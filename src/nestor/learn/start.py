"""Where a learner starts: at the default heuristic, with room to explore.

Under the rule ``threshold`` that is either a policy that says where to *deviate* from the default,
and does so nowhere; or one that *decides* by itself, the clone of the default (the warm start of
MLGO's learners). Under the other rules there is no opposite of the default: a learner starts at the
clone, at a policy that takes the default's candidate because a feature says which it is, or at one
to which all candidates are alike.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nestor.errors import NestorError
from nestor.learn.algorithms.cloning import Cloning, CloningSettings, clone
from nestor.learn.extent import observed_range, require_extent
from nestor.learn.reference import Questions, Reference
from nestor.learn.setup import Setup, as_network
from nestor.policy import network
from nestor.policy.network import Layer, LogNormalisation, MlpPolicy
from nestor.policy.rule import PICK, THRESHOLD

_QUESTIONS = 50_000
"""To which a normalisation and a clone are fitted."""


@dataclass(frozen=True)
class StartSettings:
    """The policy that a learner starts from, if the user names none."""

    answers: Literal["deviation", "decision"] = "deviation"
    """Whether to do the opposite of the default, or to decide as a clone of it. Under rules other
    than threshold, "deviation" starts at the default's answer if the policy reads which that is,
    and else where all candidates are alike."""
    hidden: tuple[int, ...] = (32, 32)
    """Widths of the hidden layers; none makes the policy linear."""
    explore: float = 0.03
    """Probability of the answer that the default would not give (threshold), or of candidates that
    the default would not choose (pick)."""
    outliers: float = 0.05
    """Part of the decisions in which a mistake can cost most. What exceeds the rest is left to the
    default, as is what lies outside of the training programs' range ("deviation" only)."""
    clone_steps: int = 1500
    """Gradient steps of cloning ("decision" only)."""

    def __post_init__(self) -> None:
        if not 0 < self.explore < 1:
            raise NestorError("The probability to explore must be between 0 and 1.")
        if not 0 <= self.outliers < 1:
            raise NestorError("The part of outliers must be at least 0 and less than 1.")


def first_policy(
    setup: Setup, reference: Reference | Questions, settings: StartSettings
) -> MlpPolicy:
    """Return the user's initial policy, or the one that ``settings`` describe."""
    if setup.init is not None:
        return as_network(setup.init)
    return start(reference, settings, setup.seed)


def start(reference: Reference | Questions, settings: StartSettings, seed: int) -> MlpPolicy:
    """Return the policy that answers as the default does, but for ``explore``.

    Under the rule ``pick`` "deviation" needs the feature that says which candidate the default
    takes; without it, and under ``value``, it gives a policy whose logits are all 0.
    """
    examples, names = reference.sample(_QUESTIONS, seed), reference.features
    problem = reference.problem
    if settings.answers == "decision":
        smoothing = CloningSettings(
            hidden=settings.hidden,
            steps=settings.clone_steps,
            learning_rate=0.03 if not settings.hidden else 0.01,
            smoothing=settings.explore,
        )
        return clone(Cloning.fit(smoothing, seed, names, examples, problem.name, problem.rule))
    deviates = problem.rule == THRESHOLD
    if deviates:
        require_extent(names, problem.features.extent, settings.outliers)
    normalisation = LogNormalisation(*network.fit_normalisation(examples.x))
    widths = (len(names), *settings.hidden, 1)
    layers = network.initial_layers(widths, np.random.default_rng([seed, 0]))
    odds = np.log(settings.explore / (1 - settings.explore)) if deviates else 0.0
    last = Layer(np.zeros_like(layers[-1].weight), np.full(1, odds, dtype=np.float32))
    layers = (*layers[:-1], last)
    if problem.rule == PICK and problem.default_column in names:
        # The default's candidate has the probability 1 - explore, the others share the rest.
        others = max(1.0, len(examples.x) / len(examples.action) - 1)
        logit = np.log((1 - settings.explore) / settings.explore * others)
        layers = _pass_on(layers, names.index(problem.default_column), normalisation, float(logit))
    policy = network.build(
        names,
        "deviation" if deviates else "decision",
        normalisation,
        layers,
        problem=problem.name,
        rule=problem.rule.name,
    )
    if not deviates:
        return policy
    seen = observed_range(examples.x, names, problem.features.extent, settings.outliers)
    return replace(policy, range=seen)


def _pass_on(
    layers: tuple[Layer, ...], column: int, normalisation: LogNormalisation, logit: float
) -> tuple[Layer, ...]:
    """Return layers whose output is 0 or ``logit``, as the feature of ``column`` is 0 or 1.

    :param layers: of which the last is all zeros; the first unit of each carries the feature.
    """
    rows = np.zeros((2, len(normalisation.shift)))
    rows[1, column] = 1.0
    low, high = normalisation.apply(rows)[:, column]
    if low == high:  # it was 1 in all rows: no question had another candidate
        return layers
    passing, source, shift = list[Layer](), column, low
    for number, layer in enumerate(layers):
        weight, bias = layer.weight.copy(), layer.bias.copy()
        weight[0] = 0.0
        weight[0, source] = logit / (high - low) if number == len(layers) - 1 else 1.0
        bias[0] = -shift * weight[0, source]  # so that ReLU leaves both values
        passing.append(Layer(weight, bias))
        source, shift = 0, np.float32(0.0)
    return tuple(passing)


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
