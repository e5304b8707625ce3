"""
What a policy is: its metadata, the contract of every kind, and the check against a compiler.

The format is described in docs/reference/formats.md; this module holds what does not depend on the
kind.
"""

from __future__ import annotations

import copy
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.errors import NestorError
from nestor.policy.rule import PICK, RULES, THRESHOLD, Actions, Rule, rule_named

VERSION: Final = 1
ANSWERS: Final = ("decision", "deviation")
TRANSFORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "mlp": ("log", "quantile"),
    "trees": ("none",),
}
MAX_FEATURES: Final = 1024

#: The optional tensor of every kind that says for which inputs the policy was made.
RANGE: Final = "range"

#: The rule of files that name none.
DEFAULT_RULE: Final = "threshold"

_PROBLEM: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_MAX_PROBLEM: Final = 64

Array = NDArray[Any]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]


class PolicyError(NestorError):
    """A policy that cannot be used; the text is one sentence that says why."""


@dataclass(frozen=True)
class FeatureSpec:
    """One feature as a compiler offers it: its tensor's name, type (its own word) and shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Metadata:
    """
    The JSON object of a policy file; always valid.

    `features` are in the order of the input vector. `provenance` is free-form JSON. `problem` names
    what is decided; what the name stands for is the caller's matter. `rule` is a name of
    `nestor.policy.rule`. `candidate_features` are those of `features` that differ between the
    candidates of one question; all others are the question's own.
    Raises PolicyError for values that docs/reference/formats.md does not allow.
    """

    kind: str
    features: tuple[str, ...]
    answers: str
    transform: str
    provenance: Mapping[str, object] = field(default_factory=dict, hash=False)
    problem: str = field(kw_only=True)
    rule: str = field(default=DEFAULT_RULE, kw_only=True)
    candidate_features: tuple[str, ...] = field(default=(), kw_only=True)
    version: int = field(default=VERSION, kw_only=True)

    def __post_init__(self) -> None:
        # bool is an int to Python, and `true` is no version.
        if type(self.version) is not int or self.version < 1:
            raise PolicyError(f"its version must be {VERSION}, not {shown(self.version)}")
        if self.version > VERSION:
            raise PolicyError(
                f"its version is {shown(self.version)} and this Nestor reads up to {VERSION}: "
                "use a newer Nestor"
            )
        _check_problem(self.problem)
        _one_of("rule", self.rule, tuple(RULES))
        _one_of("kind", self.kind, tuple(TRANSFORMS))
        _one_of("answers", self.answers, ANSWERS)
        _one_of("transform", self.transform, TRANSFORMS[self.kind])
        if not isinstance(self.provenance, Mapping):
            raise PolicyError("its provenance must be a JSON object")
        # A copy: what the caller does to its own object later must not reach a policy.
        object.__setattr__(self, "provenance", copy.deepcopy(dict(self.provenance)))
        _check_names("features", self.features, least=1)
        self._check_rule()

    def _check_rule(self) -> None:
        if self.answers == "deviation" and self.rule != THRESHOLD.name:
            raise PolicyError(
                f"its answers must be decision, not deviation, with the rule {self.rule}"
            )
        _check_names("candidate_features", self.candidate_features, least=0)
        strange = [name for name in self.candidate_features if name not in self.features]
        if strange:
            raise PolicyError(f"its candidate feature {shown(strange[0])} is none of its features")
        if self.candidate_features and self.rule != PICK.name:
            raise PolicyError(f"it has candidate features, which the rule {self.rule} does not use")

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Metadata:
        """The metadata in a parsed JSON object; fields that are not known are ignored."""
        for name in ("version", "problem", "kind", "features", "answers", "transform"):
            if name not in fields:
                raise PolicyError(f"its metadata lacks the field {name!r}")
        values: dict[str, Any] = {
            name: fields[name] for name in ("version", "problem", "kind", "answers", "transform")
        }
        values |= {name: fields[name] for name in ("provenance", "rule") if name in fields}
        for name in ("features", "candidate_features"):
            names = fields.get(name, [])
            if not isinstance(names, list):
                raise PolicyError(f"its {name} must be a list of names")
            values[name] = tuple(names)
        return cls(**values)

    def to_json(self) -> dict[str, object]:
        """The same as a plain object, for a file."""
        fields: dict[str, object] = {
            "answers": self.answers,
            "features": list(self.features),
            "kind": self.kind,
            "problem": self.problem,
            "provenance": dict(self.provenance),
            "transform": self.transform,
            "version": self.version,
        }
        # Only where they say something: files without them keep their bytes.
        if self.rule != DEFAULT_RULE:
            fields["rule"] = self.rule
        if self.candidate_features:
            fields["candidate_features"] = list(self.candidate_features)
        return fields


@dataclass(frozen=True, eq=False)
class Policy(ABC):
    """
    Rows of features → a logit for each. Immutable, and valid by construction.

    Two policies are the same when `nestor.policy.bundle.digest` says so.
    """

    metadata: Metadata
    # Lowest and highest known value of every feature, f64 [features, 2]: where an input lies
    # beyond them, the default decides. None: all values are known.
    range: F64 | None = field(default=None, kw_only=True)
    # SHA-256 of the file that it was read from. Not an argument, so dataclasses.replace
    # never carries it over to a policy that differs from the file.
    file_digest: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.range is None:
            return
        if self.metadata.answers != "deviation":
            raise PolicyError("its range needs answers that are deviations from a default")
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

    def knows(self, x: Array) -> Bools:
        """Which inputs [n] are within the range in all features."""
        inputs = self.inputs(x)
        if self.range is None:
            return np.ones(len(inputs), dtype=np.bool_)
        low, high = self.range.T
        result: Bools = ((low <= inputs) & (inputs <= high)).all(axis=1)
        return result

    def _guarded(self, x: Array, evaluate: Callable[[F64], F64]) -> F64:
        inputs = self.inputs(x)
        if self.range is None:
            return evaluate(inputs)
        known = self.knows(inputs)
        result = np.zeros(len(inputs))
        result[known] = evaluate(inputs[known])
        return result

    @abstractmethod
    def _tensors(self) -> dict[str, Array]:
        """The tensors of this kind."""

    @abstractmethod
    def _logits(self, inputs: F64) -> F64:
        """The logits of inputs that are known."""

    def _fast_logits(self, inputs: F64) -> F64:
        return self._logits(inputs)

    def actions(self, x: Array, question: NDArray[np.int64] | None = None) -> Actions:
        """
        The greedy action of each question, [questions], by the policy's rule.

        `question` [n] numbers the question of each row (`nestor.policy.rule`); without it, each row
        is a question of its own.
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

        For the rule `threshold` only; 0 where the policy does not know the input.
        """
        self._check_threshold()
        result = THRESHOLD.probability(self.logits(x), temperature)
        result[~self.knows(x)] = 0.0
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
            who = f"The policy {name}" if name else "The policy"
            raise PolicyError(f"{who} is for {self.metadata.problem}, not for {problem}.")

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
            "use a policy that was made for this version of LLVM."
        )
    vectors = [n for n in policy.features if n in place and math.prod(offered[place[n]].shape) != 1]
    if vectors:
        raise PolicyError(
            f"The policy uses features that are not single numbers here: {', '.join(vectors)}; "
            "use a policy that was made for this version of LLVM."
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


def shown(value: object) -> str:
    """A value from a file, safe and short enough for a message."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise PolicyError(f"its {name} must be {' or '.join(allowed)}, not {shown(value)}")


def _check_problem(problem: object) -> None:
    if (
        not isinstance(problem, str)
        or len(problem) > _MAX_PROBLEM
        or not _PROBLEM.fullmatch(problem)
    ):
        raise PolicyError(
            "its problem must be words of a-z and 0-9 with hyphens between them, "
            f"not {shown(problem)}"
        )


def _check_names(field_name: str, names: object, least: int) -> None:
    if not isinstance(names, tuple) or not least <= len(names) <= MAX_FEATURES:
        raise PolicyError(f"its {field_name} must be a list of {least} to {MAX_FEATURES} names")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise PolicyError(f"its {field_name} must be names, not {shown(name)}")
        if name in seen:
            raise PolicyError(f"its {field_name} list {shown(name)} twice")
        seen.add(name)
