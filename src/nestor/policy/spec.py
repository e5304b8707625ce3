"""
What a policy is: the contract of every kind, and the check against a compiler.

The format is described in docs/reference/formats.md; this module holds what does not depend on the
kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.policy.metadata import DEFAULT_RULE, Metadata, PolicyError, shown
from nestor.policy.rule import THRESHOLD, Actions, Rule, rule_named

__all__ = [
    "DEFAULT_RULE",
    "F32",
    "F64",
    "RANGE",
    "Array",
    "Bools",
    "FeatureSpec",
    "Metadata",
    "Policy",
    "PolicyError",
    "columns",
    "shown",
    "tensor",
]

#: The optional tensor of every kind: the inputs for which the policy may answer.
RANGE: Final = "range"

Array = NDArray[Any]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class FeatureSpec:
    """One feature as a compiler offers it: its tensor's name, type (its own word) and shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Policy(ABC):
    """
    Rows of features → a logit for each. Immutable, and valid by construction.

    Two policies are the same when `nestor.policy.bundle.digest` says so.
    """

    metadata: Metadata
    # Lowest and highest value of every feature that training has covered, f64 [features, 2]: where
    # an input lies beyond them, the default decides. None: the policy decides everywhere.
    range: F64 | None = field(default=None, kw_only=True)
    # SHA-256 of the file that it was read from. Not an argument, so dataclasses.replace
    # never carries it over to a policy that differs from the file.
    file_digest: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.range is None:
            return
        if self.metadata.rule == THRESHOLD.name and self.metadata.answers != "deviation":
            raise PolicyError(
                "its range needs answers that are deviations from a default, or another rule than"
                f" {THRESHOLD.name}"
            )
        array = tensor(RANGE, self.range, np.float64, 2)
        if array.shape != (len(self.features), 2):
            raise PolicyError("its range must hold a low and a high value of every feature")
        if (array[:, 0] > array[:, 1]).any():
            raise PolicyError("its range has a low value above the high one")
        object.__setattr__(self, "range", array)

    @property
    def features(self) -> tuple[str, ...]:
        """Names in the order of the columns of `x`."""
        return self.metadata.features

    @property
    def rule(self) -> Rule:
        """What turns the logits of a question's rows into its action."""
        return rule_named(self.metadata.rule)

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many numbers were learned."""

    def tensors(self) -> dict[str, Array]:
        """Name → array, as they stand in the file."""
        return self._tensors() if self.range is None else {**self._tensors(), RANGE: self.range}

    def logits(self, x: Array) -> F64:
        """
        The logits [n] of the inputs `x` [n, features], int64 or float64, all finite.

        The reference: bit-identical to the C++ evaluator (a network's f32 logit is widened).
        An input out of range has the logit 0. Raises ValueError for inputs of a wrong shape or
        type.
        """
        return self._guarded(x, self._logits)

    def fast_logits(self, x: Array) -> F64:
        """Like `logits`, perhaps faster and then different in the last bits: for learners."""
        return self._guarded(x, self._fast_logits)

    def in_range(self, x: Array) -> Bools:
        """Which inputs [n] are within the range in all features."""
        inputs = self.inputs(x)
        if self.range is None:
            return np.ones(len(inputs), dtype=np.bool_)
        low, high = self.range.T
        result: Bools = ((low <= inputs) & (inputs <= high)).all(axis=1)
        return result

    def decides(self, x: Array, question: NDArray[np.int64]) -> Bools:
        """
        Which questions have all their rows in range, [questions]; the default decides the others.

        `question` [n] numbers the question of each row (`nestor.policy.rule`).
        """
        outside = np.bincount(question, weights=~self.in_range(x))
        result: Bools = outside == 0
        return result

    def _guarded(self, x: Array, evaluate: Callable[[F64], F64]) -> F64:
        inputs = self.inputs(x)
        if self.range is None:
            return evaluate(inputs)
        inside = self.in_range(inputs)
        result = np.zeros(len(inputs))
        result[inside] = evaluate(inputs[inside])
        return result

    @abstractmethod
    def _tensors(self) -> dict[str, Array]:
        """The tensors of this kind."""

    @abstractmethod
    def _logits(self, inputs: F64) -> F64:
        """The logits of inputs that are in range."""

    def _fast_logits(self, inputs: F64) -> F64:
        return self._logits(inputs)

    def actions(self, x: Array, question: NDArray[np.int64] | None = None) -> Actions:
        """
        The greedy action of each question, [questions], by the policy's rule.

        `question` [n] numbers the question of each row (`nestor.policy.rule`); without it, each row
        is a question of its own. What it says of questions that are not the policy's to decide
        (`decides`) means nothing.
        """
        logits = self.logits(x)
        return self.rule.greedy(logits, np.arange(len(logits)) if question is None else question)

    def answer(self, x: Array, default: Bools | None = None) -> Bools:
        """
        The greedy answers [n] to questions of one row under the rule `threshold`.

        `default` [n] is the default heuristic's answer; only `deviation` policies need it.
        """
        self._check_threshold()
        return self.answers_of(self.actions(x) > 0, default)

    def probabilities(self, x: Array, temperature: float = 1.0) -> F64:
        """
        How probable action 1 is, [n], when sampling at `temperature` > 0.

        For the rule `threshold` only; 0 where the input is out of range.
        """
        self._check_threshold()
        result = THRESHOLD.probability(self.logits(x), temperature)
        result[~self.in_range(x)] = 0.0
        return result

    def answers_of(self, actions: Bools, default: Bools | None) -> Bools:
        """Turn actions [n] of the rule `threshold` into answers [n]."""
        if self.metadata.answers == "decision":
            return actions
        if default is None:
            raise ValueError("a policy that answers with deviations needs the default's answers")
        defaults: Bools = np.asarray(default, dtype=np.bool_)
        if defaults.shape != actions.shape:
            raise ValueError(f"{defaults.shape} defaults for {actions.shape} decisions")
        return actions ^ defaults

    def check_problem(self, problem: str, name: str = "") -> None:
        """
        Raise PolicyError, one sentence, unless the policy is for the problem of this name.

        `name` is what the user calls the policy, for the message.
        """
        if self.metadata.problem != problem:
            subject = f"The policy {name}" if name else "The policy"
            raise PolicyError(f"{subject} is for {self.metadata.problem}, not for {problem}.")

    def _check_threshold(self) -> None:
        if self.metadata.rule != THRESHOLD.name:
            raise ValueError(f"the policy's rule is {self.metadata.rule}, not {THRESHOLD.name}")

    def inputs(self, x: Array) -> F64:
        """Check `x` and convert it to f64 [n, features], as the format demands."""
        array = np.asarray(x)
        if array.ndim != 2 or array.shape[1] != len(self.features):
            raise ValueError(f"the inputs must be [n, {len(self.features)}], not {array.shape}")
        if array.dtype.kind not in "iuf":
            raise ValueError(f"the inputs must be numbers, not {array.dtype}")
        result: F64 = np.ascontiguousarray(array, dtype=np.float64)
        if array.dtype.kind == "f" and not np.isfinite(result).all():
            raise ValueError("the inputs must be finite")
        return result


def columns(
    policy: Policy, offered: Sequence[FeatureSpec], default_feature: str | None = None
) -> tuple[int | None, ...]:
    """
    Where each feature of the policy stands among those that a compiler offers.

    `default_feature` names the feature that holds the default's answer, if the problem has one:
    None stands for it when the compiler has no tensor of this name, and the caller fills in the
    answer. Raises PolicyError that names all features that are missing, or all that are not single
    numbers.
    """
    place = {spec.name: index for index, spec in enumerate(offered)}
    missing = [n for n in policy.features if n not in place and n != default_feature]
    if missing:
        raise PolicyError(
            f"The policy needs features that this compiler does not offer: {', '.join(missing)}; "
            "use a policy for this version of LLVM."
        )
    vectors = [n for n in policy.features if n in place and math.prod(offered[place[n]].shape) != 1]
    if vectors:
        raise PolicyError(
            f"The policy uses features that are not single numbers here: {', '.join(vectors)}; "
            "use a policy for this version of LLVM."
        )
    return tuple(place.get(name) for name in policy.features)


def tensor(name: str, array: Array, dtype: type[np.generic], dims: int) -> Array:
    """A private, read-only copy of `array`, after checking its type, rank and finiteness."""
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype):
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise PolicyError(f"the tensor {name} must be {np.dtype(dtype)}, not {found}")
    if array.ndim != dims or 0 in array.shape:
        raise PolicyError(
            f"the tensor {name} must have {dims} non-empty dimensions, not {array.shape}"
        )
    if not np.isfinite(array).all():
        raise PolicyError(f"the tensor {name} holds numbers that are not finite")
    own = np.array(array, dtype=dtype, order="C")
    own.flags.writeable = False
    return own
