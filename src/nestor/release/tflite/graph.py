"""A TFLite model as tensors and steps, checked: every number refers to something that is there."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.policy.spec import PolicyError
from nestor.release.tflite.flatbuffer import Table, root_of
from nestor.release.tflite.schema import (
    BUFFER_DATA,
    IDENTIFIER,
    NAMES,
    TYPES,
    Model,
    OperatorCode,
    OperatorField,
    SubGraph,
    Tensor,
)

MAX_STEPS: Final = 1 << 14


@dataclass(frozen=True)
class TensorInfo:
    """A tensor by its name, and its numbers if they are in the file."""

    name: str
    constant: NDArray[Any] | None


@dataclass(frozen=True)
class Step:
    """An operator with the tensors that it reads and the one that it makes."""

    operator: str
    """Its name in TFLite's schema."""
    inputs: tuple[int, ...]
    """Numbers of tensors; -1 is one that is left out."""
    output: int
    options: Table | None


@dataclass(frozen=True)
class Graph:
    """The steps of a model in order."""

    tensors: tuple[TensorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    steps: tuple[Step, ...]


def read_graph(data: bytes) -> Graph:
    """Return the graph of a model.

    :raises FlatbufferError: if the file is cut short, damaged or something else.
    :raises PolicyError: if it is sound and holds more than one graph, or refers to what is not
        there.
    """
    root = root_of(data, IDENTIFIER)
    subgraphs = root.tables(Model.SUBGRAPHS)
    if len(subgraphs) != 1:
        raise PolicyError(f"it has {len(subgraphs)} graphs, and a policy has one")
    graph = subgraphs[0]
    buffers = root.tables(Model.BUFFERS)
    tensors = tuple(_tensor(table, buffers) for table in graph.tables(SubGraph.TENSORS))
    codes = [_operator(table) for table in root.tables(Model.OPERATOR_CODES)]
    operators = graph.tables(SubGraph.OPERATORS)
    if len(operators) > MAX_STEPS:
        raise PolicyError(f"it has more than {MAX_STEPS} operators")
    steps = tuple(_step(table, codes, len(tensors)) for table in operators)
    ends = [
        _tensor_numbers(graph, field, len(tensors)) for field in (SubGraph.INPUTS, SubGraph.OUTPUTS)
    ]
    return Graph(tensors, ends[0], ends[1], steps)


def _tensor(table: Table, buffers: list[Table]) -> TensorInfo:
    name = table.data(Tensor.NAME).decode(errors="replace")
    number = table.number(Tensor.BUFFER, "I")
    if number >= len(buffers):
        raise PolicyError("a tensor refers to data that is not there")
    content = buffers[number].data(BUFFER_DATA)
    kind = table.number(Tensor.TYPE, "b")
    dtype = TYPES.get(kind)
    if not content or dtype is None:
        return TensorInfo(name, None)
    shape = [int(size) for size in table.numbers(Tensor.SHAPE, "i")]
    count = 1
    for size in shape:
        count *= size
    if min(shape, default=0) < 0 or count * dtype.itemsize != len(content):
        raise PolicyError("a tensor's data is not of its size")
    values = np.frombuffer(content, dtype).reshape(shape)
    if dtype.kind == "f" and not np.isfinite(values).all():
        raise PolicyError("a tensor holds numbers that are not finite")
    return TensorInfo(name, values)


def _operator(table: Table) -> str:
    """Return an operator's name; the larger of two fields holds its number."""
    code = max(table.number(OperatorCode.SHORT_CODE, "b"), table.number(OperatorCode.CODE, "i"))
    name = NAMES[code] if 0 <= code < len(NAMES) else f"number {code}"
    custom = table.data(OperatorCode.CUSTOM_CODE).decode(errors="replace")
    return f"CUSTOM {custom[:40]!a}" if name == "CUSTOM" else name


def _step(table: Table, codes: list[str], tensors: int) -> Step:
    number = table.number(OperatorField.CODE, "I")
    if number >= len(codes):
        raise PolicyError("an operator refers to a kind that is not there")
    outputs = _tensor_numbers(table, OperatorField.OUTPUTS, tensors)
    if len(outputs) != 1:
        raise PolicyError(f"it has an operator {codes[number]} with {len(outputs)} outputs")
    inputs = _tensor_numbers(table, OperatorField.INPUTS, tensors, least=-1)
    return Step(codes[number], inputs, outputs[0], table.table(OperatorField.OPTIONS))


def _tensor_numbers(table: Table, field: int, tensors: int, least: int = 0) -> tuple[int, ...]:
    numbers = tuple(int(number) for number in table.numbers(field, "i"))
    if any(not least <= number < tensors for number in numbers):
        raise PolicyError("it refers to a tensor that is not there")
    return numbers
