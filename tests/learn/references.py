"""Slow and plain versions of what the learners compute, to compare with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.learn.batch import Batch
from nestor.policy.network import MlpPolicy
from nestor.policy.rule import THRESHOLD, Rule

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


def outputs(template: MlpPolicy, parameters: F64, z: npt.NDArray[Any]) -> F64:
    """Return the network's outputs in f64, ``[rows, outputs]``."""
    values, place = z.astype(np.float64), 0
    for number, layer in enumerate(template.layers):
        size = layer.weight.size
        weight = parameters[place : place + size].reshape(layer.weight.shape)
        bias = parameters[place + size : place + size + layer.bias.size]
        place += size + layer.bias.size
        values = np.maximum(values, 0) if number else values
        values = values @ weight.T + bias
    return values


def logits(template: MlpPolicy, parameters: F64, z: npt.NDArray[Any]) -> F64:
    """Return the network's logits in f64, ``[rows]``."""
    found = outputs(template, parameters, z)
    return found[:, 0] if found.shape[1] == 1 else found[:, 1] - found[:, 0]


def log_probabilities(rule: Rule, values: F64, question: I64, action: npt.NDArray[Any]) -> F64:
    """Return log π(action) question by question."""
    found = []
    for number in range(len(action)):
        own = values[question == number]
        if rule == THRESHOLD:
            found.append(-np.log1p(np.exp(-own[0] if action[number] else own[0])))
        else:
            found.append(own[action[number]] - np.log(np.exp(own).sum()))
    return np.array(found)


def entropies(rule: Rule, values: F64, question: I64) -> F64:
    """Return the entropy of each question's distribution."""
    found = []
    for number in range(question[-1] + 1):
        own = values[question == number]
        if rule == THRESHOLD:
            own = np.array([0.0, own[0]])
        p = np.exp(own) / np.exp(own).sum()
        found.append(-(p * np.log(p)).sum())
    return np.array(found)


def reinforce_loss(
    template: MlpPolicy, batch: Batch, advantage: F64, entropy: float
) -> Callable[[F64], float]:
    """Return Williams' loss with an entropy bonus as a function of the parameters."""
    z, rule = template.normalise(batch.x), template.rule

    def loss(parameters: F64) -> float:
        values = logits(template, parameters, z)
        likely = log_probabilities(rule, values, batch.question, batch.action)
        bonus = entropies(rule, values, batch.question).mean()
        return float(-(advantage * likely).mean() - entropy * bonus)

    return loss


def ppo_loss(
    template: MlpPolicy, batch: Batch, advantage: F64, entropy: float, clip: float
) -> Callable[[F64], float]:
    """Return the clipped loss of Schulman et al. (2017) as a function of the parameters."""
    z, rule = template.normalise(batch.x), template.rule

    def loss(parameters: F64) -> float:
        values = logits(template, parameters, z)
        likely = log_probabilities(rule, values, batch.question, batch.action)
        bonus = entropies(rule, values, batch.question).mean()
        found = []
        for ratio, better in zip(np.exp(likely - batch.log_probability), advantage, strict=True):
            near = min(max(ratio, 1 - clip), 1 + clip)
            found.append(min(ratio * better, near * better))
        return float(-np.mean(found) - entropy * bonus)

    return loss


def numeric_gradient(loss: Callable[[F64], float], parameters: F64) -> F64:
    """Return the gradient of ``loss`` by central differences."""
    found = np.empty(len(parameters))
    for index in range(len(parameters)):
        shift = np.zeros(len(parameters))
        shift[index] = 1e-5
        found[index] = (loss(parameters + shift) - loss(parameters - shift)) / 2e-5
    return found


def clipped(gradient: F64, most: float = 1.0) -> F64:
    """Return ``gradient``, no longer than ``most``."""
    return gradient * min(1.0, most / float(np.linalg.norm(gradient)))
