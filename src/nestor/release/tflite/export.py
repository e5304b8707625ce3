"""A network as a TFLite model, under the names that LLVM's development mode looks for.

LLVM finds inputs by the name ``action_<feature>:0`` and takes the tensor whose number is the
input's (llvm/lib/Analysis/TFLiteUtils.cpp), so the inputs are the tensors from 0 on. The decision
is ``StatefulPartitionedCall:0``; the network's outputs are there too, as
``StatefulPartitionedCall:1``. An interpreter may sum in any order, so logits agree but for
rounding.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.policy.network import (
    LogNormalisation,
    MlpPolicy,
    QuantileNormalisation,
    QuantileScoreNormalisation,
)
from nestor.policy.trees import TreesPolicy
from nestor.release.in_tree import DECISION, InTreePolicy, ReleaseError
from nestor.release.tflite.flatbuffer import Node, Number, Numbers, encode
from nestor.release.tflite.schema import (
    BUFFER_DATA,
    IDENTIFIER,
    LARGEST_BYTE,
    RELU,
    TYPES,
    VERSION,
    Model,
    Operator,
    OperatorCode,
    OperatorField,
    Options,
    SubGraph,
    Tensor,
    TensorType,
)

MODEL_FILE: Final = "model.tflite"
SPEC_FILE: Final = "output_spec.json"
_OUTPUT: Final = "StatefulPartitionedCall"
_POWERS: Final = tuple(2.0**k for k in range(1, 63))

F32 = TensorType.FLOAT32


def files(policy: InTreePolicy, name: str) -> dict[str, bytes | str]:
    """Return the model's folder as LLVM takes it: file name → content.

    :raises ReleaseError: for a sum of trees, for which TFLite has no operator.
    """
    if isinstance(policy, TreesPolicy):
        raise ReleaseError(
            f"{name} is a sum of trees, for which TFLite has no operator: use --as llvm-header or"
            " --as mlir."
        )
    spec = {
        "logging_name": DECISION,
        "tensor_spec": {"name": _OUTPUT, "port": 0, "type": "int64_t", "shape": [1]},
    }
    return {MODEL_FILE: model(policy), SPEC_FILE: json.dumps([spec], indent=1) + "\n"}


def model(policy: MlpPolicy) -> bytes:
    """Return the bytes of the model."""
    graph = _Graph()
    count = len(policy.features)
    inputs = [
        graph.tensor(f"action_{feature}:0", TensorType.INT64, (1,)) for feature in policy.features
    ]
    values = _network_inputs(graph, policy, _floats(graph, inputs))
    columns = _order_of_blocks(policy)
    width = policy.widths[0]
    row = graph.reshape(graph.joined("inputs", values, width), "row", (1, width), F32)
    for k, layer in enumerate(policy.layers):
        weight = layer.weight[:, columns] if k == 0 else layer.weight
        last = k + 1 == len(policy.layers)
        name = f"{_OUTPUT}:1" if last else f"layer.{k}"
        row = graph.add(
            Operator.FULLY_CONNECTED,
            [row, graph.constant(f"weight.{k}", weight), graph.constant(f"bias.{k}", layer.bias)],
            (name, F32, (1, len(layer.bias))),
            Options.FULLY_CONNECTED,
            {} if last else {0: Number("b", RELU)},
        )
    decision = _decision(graph, row, policy.widths[-1])
    assert inputs == list(range(count))
    return graph.encoded(inputs, [decision, row])


def _floats(graph: "_Graph", inputs: Sequence[int]) -> list[int]:
    """Append the features as floats, each [1]."""
    return [
        graph.cast(tensor, f"float.{index}", TensorType.INT64, F32, (1,))
        for index, tensor in enumerate(inputs)
    ]


def _network_inputs(graph: "_Graph", policy: MlpPolicy, floats: list[int]) -> list[int]:
    """Append the network's inputs in blocks, each with a number for each feature [features]."""
    normalisation = policy.normalisation
    count = len(floats)
    if isinstance(normalisation, LogNormalisation):
        return [_squashed(graph, normalisation, graph.joined("features", floats, count))]
    assert isinstance(normalisation, QuantileNormalisation | QuantileScoreNormalisation)
    counts = []
    for index, (tensor, row) in enumerate(zip(floats, normalisation.boundaries, strict=True)):
        found = graph.bucketise(tensor, f"bucket.{index}", [float(b) for b in row], (1,))
        counts.append(graph.cast(found, f"count.{index}", TensorType.INT32, F32, (1,)))
    shape = (count,)
    total = graph.number("boundaries", normalisation.boundaries.shape[1])
    share = graph.binary(Operator.DIV, graph.joined("counts", counts, count), total, "share", shape)
    root = graph.add(Operator.SQRT, [share], ("root", F32, shape))
    square = graph.binary(Operator.MUL, share, share, "square", shape)
    blocks = [share, root, square]
    if isinstance(normalisation, QuantileScoreNormalisation):
        mean = graph.constant("mean", normalisation.mean)
        scale = graph.constant("scale", normalisation.scale)
        x = graph.joined("features", floats, count)
        moved = graph.binary(Operator.SUB, x, mean, "moved", shape)
        blocks.append(graph.binary(Operator.MUL, moved, scale, "score", shape))
    return blocks


def _order_of_blocks(policy: MlpPolicy) -> NDArray[np.int64]:
    """Return which input of the policy's network is which of the blocks' numbers."""
    width, count = policy.widths[0], len(policy.features)
    return np.arange(width).reshape(count, width // count).T.ravel()


def _squashed(graph: "_Graph", normalisation: LogNormalisation, x: int) -> int:
    """Append clamp((squash(x) - shift) · scale, -8, 8): squash by tables over the exponent."""
    shape = (normalisation.features,)
    one = graph.number("one", 1.0)
    size = graph.add(Operator.ABS, [x], ("size", F32, shape), Options.ABS)
    m = graph.binary(Operator.ADD, size, one, "m", shape)
    k = graph.bucketise(m, "k", _POWERS, shape)
    slopes = graph.constant("slopes", np.array([0.5**e for e in range(63)], np.float32))
    bases = graph.constant("bases", np.array([e - 1.0 for e in range(63)], np.float32))
    slope, base = (
        graph.add(Operator.GATHER, [table, k], (name, F32, shape), Options.GATHER)
        for table, name in ((slopes, "slope"), (bases, "base"))
    )
    value = graph.binary(Operator.MUL, m, slope, "fraction", shape)
    value = graph.binary(Operator.ADD, value, base, "squashed", shape)
    # The features are whole numbers, so that x / max(|x|, 1) is the sign.
    divisor = graph.binary(Operator.MAXIMUM, size, one, "divisor", shape)
    sign = graph.binary(Operator.DIV, x, divisor, "sign", shape)
    value = graph.binary(Operator.MUL, value, sign, "signed", shape)
    shift = graph.constant("shift", normalisation.shift.astype(np.float32))
    value = graph.binary(Operator.SUB, value, shift, "moved", shape)
    scale = graph.constant("scale", normalisation.scale.astype(np.float32))
    value = graph.binary(Operator.MUL, value, scale, "scaled", shape)
    value = graph.binary(Operator.MAXIMUM, value, graph.number("low", -8.0), "above", shape)
    return graph.binary(Operator.MINIMUM, value, graph.number("high", 8.0), "normalised", shape)


def _decision(graph: "_Graph", row: int, outputs: int) -> int:
    """Append the decision, int64 [1]: 1 where the logit is above 0."""
    name = f"{_OUTPUT}:0"
    if outputs == 2:
        axis = graph.constant("axis", np.array(1, np.int32))
        kind = {0: Number("b", TensorType.INT64)}
        chosen = (name, TensorType.INT64, (1,))
        return graph.add(Operator.ARG_MAX, [row, axis], chosen, Options.ARG_MAX, kind)
    output = ("above", TensorType.BOOL, (1, 1))
    above = graph.add(Operator.GREATER, [row, graph.number("zero", 0.0)], output, Options.GREATER)
    whole = graph.cast(above, "whole", TensorType.BOOL, TensorType.INT64, (1, 1))
    return graph.reshape(whole, name, (1,), TensorType.INT64)


class _Graph:
    """Tensors and operators in order, until they are written."""

    def __init__(self) -> None:
        self._buffers: list[Node] = [{}]  # the first one stands for tensors without data
        self._tensors: list[Node] = []
        self._codes: list[Operator] = []
        self._operators: list[Node] = []

    def tensor(
        self, name: str, kind: TensorType, shape: tuple[int, ...], data: bytes | None = None
    ) -> int:
        """Append a tensor and return its number."""
        if data is not None:
            self._buffers.append({BUFFER_DATA: data})
        buffer = 0 if data is None else len(self._buffers) - 1
        self._tensors.append(
            {
                Tensor.SHAPE: Numbers("i", shape),
                Tensor.TYPE: Number("b", kind),
                Tensor.BUFFER: Number("I", buffer),
                Tensor.NAME: name,
            }
        )
        return len(self._tensors) - 1

    def constant(self, name: str, values: NDArray[Any]) -> int:
        """Append a tensor with numbers."""
        kind = next(kind for kind, dtype in TYPES.items() if dtype == values.dtype)
        return self.tensor(
            name, TensorType(kind), values.shape, np.ascontiguousarray(values).tobytes()
        )

    def number(self, name: str, value: float) -> int:
        """Append a float, [1]."""
        return self.constant(name, np.array([value], np.float32))

    def add(
        self,
        operator: Operator,
        inputs: Sequence[int],
        output: tuple[str, TensorType, tuple[int, ...]],
        options: Options | None = None,
        fields: Node | None = None,
    ) -> int:
        """Append an operator and return its output's tensor."""
        if operator not in self._codes:
            self._codes.append(operator)
        result = self.tensor(*output)
        own: Node = {}
        if options is not None:
            own = {
                OperatorField.OPTIONS_TYPE: Number("B", options),
                OperatorField.OPTIONS: fields or {},
            }
        self._operators.append(
            {
                OperatorField.CODE: Number("I", self._codes.index(operator)),
                OperatorField.INPUTS: Numbers("i", inputs),
                OperatorField.OUTPUTS: Numbers("i", [result]),
                **own,
            }
        )
        return result

    def binary(
        self, operator: Operator, left: int, right: int, name: str, shape: tuple[int, ...]
    ) -> int:
        """Append an operator of two tensors of floats."""
        in_pairs = operator in (Operator.MAXIMUM, Operator.MINIMUM)
        options = Options.MAXIMUM_MINIMUM if in_pairs else Options[operator.name]
        return self.add(operator, [left, right], (name, F32, shape), options)

    def cast(
        self, value: int, name: str, before: TensorType, after: TensorType, shape: tuple[int, ...]
    ) -> int:
        """Append a conversion."""
        fields = {0: Number("b", before), 1: Number("b", after)}
        return self.add(Operator.CAST, [value], (name, after, shape), Options.CAST, fields)

    def bucketise(
        self, value: int, name: str, boundaries: Sequence[float], shape: tuple[int, ...]
    ) -> int:
        """Append the number of boundaries up to each value, int32."""
        fields = {0: Numbers("f", boundaries)}
        output = (name, TensorType.INT32, shape)
        return self.add(Operator.BUCKETIZE, [value], output, Options.BUCKETIZE, fields)

    def reshape(self, value: int, name: str, shape: tuple[int, ...], kind: TensorType) -> int:
        """Append the same numbers in another shape."""
        target = self.constant(f"{name}.shape", np.array(shape, np.int32))
        fields = {0: Numbers("i", shape)}
        output = (name, kind, shape)
        return self.add(Operator.RESHAPE, [value, target], output, Options.RESHAPE, fields)

    def joined(self, name: str, values: Sequence[int], width: int) -> int:
        """Append vectors behind one another, [width]."""
        if len(values) == 1:
            return values[0]
        output = (name, F32, (width,))
        axis = {0: Number("i", 0)}
        return self.add(Operator.CONCATENATION, values, output, Options.CONCATENATION, axis)

    def encoded(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """Return the file."""
        codes: list[Node] = [
            {
                OperatorCode.SHORT_CODE: Number("b", min(code, LARGEST_BYTE)),
                OperatorCode.VERSION: Number("i", 1),
                OperatorCode.CODE: Number("i", code),
            }
            for code in self._codes
        ]
        graph: Node = {
            SubGraph.TENSORS: self._tensors,
            SubGraph.INPUTS: Numbers("i", inputs),
            SubGraph.OUTPUTS: Numbers("i", outputs),
            SubGraph.OPERATORS: self._operators,
            SubGraph.NAME: "main",
        }
        root: Node = {
            Model.VERSION: Number("I", VERSION),
            Model.OPERATOR_CODES: codes,
            Model.SUBGRAPHS: [graph],
            Model.DESCRIPTION: "a policy of Nestor",
            Model.BUFFERS: self._buffers,
        }
        return encode(root, IDENTIFIER)
