"""A TFLite model read as a policy: a network over buckets and z-scores of the features.

The steps of a model are followed with columns instead of numbers: each says which feature a number
comes from and by what formula. What is no sum of known columns, then dense layers, then a choice,
is refused with the operator's name.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.policy.layers import Layer
from nestor.policy.metadata import MAX_FEATURES
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import PolicyError
from nestor.release.tflite.columns import (
    MAX_BOUNDARIES,
    Column,
    Hidden,
    Score,
    Share,
    policy_of,
)
from nestor.release.tflite.flatbuffer import FlatbufferError
from nestor.release.tflite.graph import Graph, Step, read_graph
from nestor.release.tflite.schema import RELU

MAX_COLUMNS: Final = 4 * MAX_FEATURES


@dataclass(frozen=True)
class Choice:
    """1 where the network's logit is above 0."""

    network: Hidden


Value = tuple[Column, ...] | Hidden | Choice


def import_tflite(data: bytes, problem: str, provenance: Mapping[str, object]) -> MlpPolicy:
    """Return the policy that a model is.

    :param data: the bytes of the file.
    :param problem: what it decides.
    :raises PolicyError: if the file is damaged, or a model of another kind; the text says which
        operator is in the way.
    """
    try:
        # What does not fit into the policy's numbers is refused there as not finite.
        with np.errstate(over="ignore", invalid="ignore"):
            return _followed(read_graph(data), problem, provenance)
    except FlatbufferError as error:
        raise PolicyError(str(error)) from error


def _followed(graph: Graph, problem: str, provenance: Mapping[str, object]) -> MlpPolicy:
    """Follow the steps to the decision and return its policy."""
    values: dict[int, Value] = {
        tensor: (Score(number),) for number, tensor in enumerate(graph.inputs)
    }
    for step in graph.steps:
        value = _Reader(graph, values, step).result()
        if value is not None:
            values[step.output] = value
    found = (values.get(output) for output in graph.outputs)
    choice = next((value for value in found if isinstance(value, Choice)), None)
    if choice is None:
        raise PolicyError(
            "none of its outputs is a decision: ARG_MAX of two numbers, or GREATER of one than 0"
        )
    names = [_feature_name(graph.tensors[tensor].name) for tensor in graph.inputs]
    return policy_of(choice.network, names, problem, provenance)


class _Reader:
    """One step: which operator is allowed on what."""

    def __init__(self, graph: Graph, values: Mapping[int, Value], step: Step) -> None:
        self._graph = graph
        self._values = values
        self._step = step

    def result(self) -> Value | None:
        """Return what the step makes, None if of constants alone."""
        operators: Mapping[str, Callable[[], Value]] = {
            "CAST": self._same,
            "RESHAPE": self._same,
            "EXPAND_DIMS": self._same,
            "SQUEEZE": self._same,
            "BUCKETIZE": self._bucketise,
            "ADD": lambda: self._moved(-1.0),
            "SUB": lambda: self._moved(1.0),
            "MUL": self._multiplied,
            "DIV": self._divided,
            "SQRT": self._root,
            "CONCATENATION": self._joined,
            "FULLY_CONNECTED": self._dense,
            "ARG_MAX": self._largest,
            "GREATER": self._above,
        }
        if not any(number in self._values for number in self._step.inputs):
            return None
        operator = operators.get(self._step.operator)
        if operator is None:
            raise PolicyError(
                f"it has the operator {self._step.operator}, and a policy is made of"
                f" {', '.join(operators)}"
            )
        return operator()

    def _refuse(self, what: str) -> PolicyError:
        return PolicyError(f"its operator {self._step.operator} {what}")

    def _value(self, index: int) -> Value | None:
        inputs = self._step.inputs
        return self._values.get(inputs[index]) if index < len(inputs) else None

    def _columns(self, index: int = 0) -> tuple[Column, ...]:
        value = self._value(index)
        if not isinstance(value, tuple):
            raise self._refuse("is not on features")
        return value

    def _constant(self, index: int) -> NDArray[Any] | None:
        inputs = self._step.inputs
        if index >= len(inputs) or inputs[index] < 0:
            return None
        return self._graph.tensors[inputs[index]].constant

    def _numbers(self, index: int, count: int) -> list[float]:
        """Return a constant input, a number for each of so many columns."""
        values = self._constant(index)
        if values is None or values.dtype != np.float32 or values.size not in (1, count):
            raise self._refuse("has an input that is neither a feature nor a fitting constant")
        return [float(number) for number in np.broadcast_to(values.ravel(), (count,))]

    def _option(self, field: int, form: str) -> int:
        options = self._step.options
        return 0 if options is None else options.number(field, form)

    def _unfused(self) -> None:
        if self._option(0, "b") != 0:
            raise self._refuse("has an activation, which only FULLY_CONNECTED may have")

    def _same(self) -> Value:
        value = self._value(0)
        if value is None:
            raise self._refuse("is not on features")
        return value

    def _bucketise(self) -> Value:
        options = self._step.options
        boundaries = () if options is None else options.numbers(0, "f")
        if not 1 <= len(boundaries) <= MAX_BOUNDARIES or not all(map(math.isfinite, boundaries)):
            raise self._refuse(f"needs 1 to {MAX_BOUNDARIES} boundaries that are finite")
        columns = self._columns()
        if any(column != Score(column.feature) for column in columns):
            raise self._refuse("is not on a feature itself")
        return tuple(Share(column.feature, boundaries) for column in columns)

    def _moved(self, sign: float) -> Value:
        """Subtract a constant, or add one with the sign -1."""
        self._unfused()
        columns = self._columns()
        numbers = self._numbers(1, len(columns))
        moved = []
        for column, number in zip(columns, numbers, strict=True):
            if not isinstance(column, Score) or column.scale == 0:
                raise self._refuse("is not on a feature itself")
            moved.append(replace(column, mean=column.mean + sign * number / column.scale))
        return tuple(moved)

    def _multiplied(self) -> Value:
        self._unfused()
        first, second = self._value(0), self._value(1)
        if isinstance(first, tuple) and first == second:
            return tuple(self._to_power(column, 2.0) for column in first)
        index = 0 if isinstance(first, tuple) else 1
        columns = self._columns(index)
        return self._scaled(columns, self._numbers(1 - index, len(columns)))

    def _divided(self) -> Value:
        self._unfused()
        columns = self._columns()
        numbers = self._numbers(1, len(columns))
        if 0.0 in numbers:
            raise self._refuse("divides by 0")
        return self._scaled(columns, [1.0 / number for number in numbers])

    def _scaled(self, columns: tuple[Column, ...], numbers: Sequence[float]) -> Value:
        scaled: list[Column] = []
        for column, number in zip(columns, numbers, strict=True):
            if isinstance(column, Score):
                scaled.append(replace(column, scale=column.scale * number))
            elif column.power == 1.0 and number > 0:
                scaled.append(replace(column, factor=column.factor * number))
            else:
                raise self._refuse("scales what is neither a feature nor a share of boundaries")
        return tuple(scaled)

    def _root(self) -> Value:
        return tuple(self._to_power(column, 0.5) for column in self._columns())

    def _to_power(self, column: Column, power: float) -> Column:
        if not isinstance(column, Share) or column.power != 1.0:
            raise self._refuse("is on something else than a share of boundaries")
        return replace(column, power=power)

    def _joined(self) -> Value:
        if self._option(1, "b") != 0:
            raise self._refuse("has an activation, which only FULLY_CONNECTED may have")
        columns = [
            column for index in range(len(self._step.inputs)) for column in self._columns(index)
        ]
        if len(columns) > MAX_COLUMNS:
            raise PolicyError(f"it joins more than {MAX_COLUMNS} numbers")
        return tuple(columns)

    def _dense(self) -> Value:
        activation = self._option(0, "b")
        if activation not in (0, RELU):
            raise self._refuse("has an activation other than RELU")
        value, weight, bias = self._value(0), self._constant(1), self._constant(2)
        if isinstance(value, Choice) or value is None:
            raise self._refuse("is not on features")
        hidden = Hidden(value, (), True) if isinstance(value, tuple) else value
        width = len(hidden.layers[-1].bias) if hidden.layers else len(hidden.columns)
        if not hidden.rectified:
            raise self._refuse("follows another one that has no RELU")
        if weight is None or weight.dtype != np.float32 or weight.shape[1:] != (width,):
            raise self._refuse("has weights that do not fit its input or are no floats")
        if bias is None:
            bias = np.zeros(len(weight), np.float32)
        if bias.dtype != np.float32 or bias.shape != weight.shape[:1]:
            raise self._refuse("has a bias that does not fit its weights")
        layers = (*hidden.layers, Layer(weight, bias))
        return Hidden(hidden.columns, layers, activation == RELU)

    def _network(self, outputs: int) -> Hidden:
        value = self._value(0)
        if not isinstance(value, Hidden) or len(value.layers[-1].bias) != outputs:
            raise self._refuse(f"is not on {outputs} outputs of a network")
        if value.rectified:
            raise self._refuse("is on a network whose last layer has a RELU")
        return value

    def _largest(self) -> Value:
        return Choice(self._network(2))

    def _above(self) -> Value:
        network = self._network(1)
        if self._numbers(1, 1) != [0.0]:
            raise self._refuse("compares with another number than 0")
        return Choice(network)


def _feature_name(tensor: str) -> str:
    """Return the feature of an input such as ``serving_default_action_cost_estimate:0``."""
    name = tensor.rpartition(":")[0] or tensor
    return name.removeprefix("serving_default_").removeprefix("action_")
