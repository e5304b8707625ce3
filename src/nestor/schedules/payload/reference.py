"""What a payload computes, by numpy in double precision, without any schedule or code generator.

Named operations are written as linalg.generic by mlir-opt; what remains is a short list of
operations on whole tensors, evaluated here one by one.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from nestor.compiler.process import Limits
from nestor.files import write_atomically
from nestor.schedules.language.diagnosis import LoweringError, explain
from nestor.schedules.language.text import ScheduleError
from nestor.schedules.payload.operations import Block, Operation, parse, split
from nestor.schedules.payload.reading import Payload
from nestor.schedules.payload.scalars import COMBINING, Value, evaluate
from nestor.schedules.tools import Tools, run_limited
from nestor.temporary import temporary_folder

_MAP: Final = re.compile(r"affine_map<\((.*?)\) -> \((.*)\)>", re.DOTALL)
_EXPRESSION: Final = re.compile(r"[\sd0-9+*()-]*")
LARGEST: Final = 1 << 27
"""Elements of an iteration space beyond which only products are evaluated."""


def as_generics(payload: Payload, tools: Tools, limits: Limits | None = None) -> str:
    """Return a payload's module with named operations as linalg.generic, for :class:`Reference`.

    :raises LoweringError: if mlir-opt fails.
    """
    with temporary_folder("reference") as name:
        source, out = Path(name) / "payload.mlir", Path(name) / "generic.mlir"
        write_atomically(source, payload.text)
        outcome = run_limited(
            [
                tools.mlir_opt, source, "--linalg-generalize-named-ops",
                "--mlir-print-op-generic", "--mlir-print-local-scope",
            ],
            limits or Limits(seconds=30.0),
            stdout=out,
        )  # fmt: skip
        if not outcome.ok:
            raise LoweringError(explain(outcome, None, source), outcome.ending)
        return out.read_text()


class Reference:
    """A payload that numpy evaluates."""

    def __init__(self, generics: str, name: str) -> None:
        """Read a payload.

        :param generics: from :func:`as_generics`.
        :param name: of the function.
        """
        self._module = parse(generics)
        self._name = name
        # Exporters write the maximum of a row together with its unused index.
        self._used = {name for o in self._module.walk() for name in o.operands}

    def __call__(self, *arrays: Any, precise: bool = True) -> list[Any]:
        """Return the results.

        :param precise: in double precision; else in the precision of the arguments, as numpy
            users would compute them. Integers stay as they are.
        :raises ScheduleError: if an operation has no reference in numpy.
        """
        functions = [o for o in self._module.walk() if o.name == "func.func" and o.regions]
        block = next(
            f.regions[0][0]
            for f in functions
            if f.regions[0] and f.attributes["sym_name"].strip('"') == self._name
        )
        values = [
            np.asarray(a, np.float64) if precise and np.asarray(a).dtype.kind == "f" else a
            for a in arrays
        ]
        with np.errstate(all="ignore"):
            return _block(block, values, {"#used": self._used})


def _block(block: Block, values: Sequence[Value], outer: dict[str, Value]) -> list[Value]:
    """Return what a block yields or returns."""
    known_values = outer | dict(zip(block.arguments, values, strict=True))
    for operation in block.operations:
        operands = [known_values[name] for name in operation.operands]
        if operation.name in ("func.return", "linalg.yield", "tensor.yield"):
            return operands
        results = _operation(operation, operands, known_values)
        known_values |= dict(zip(operation.results, results, strict=True))
    return []


def _operation(operation: Operation, operands: list[Value], scope: dict[str, Value]) -> list[Value]:
    name = operation.name
    shape = _shape(operation.result_types[0]) if operation.result_types else []
    if name == "linalg.generic":
        return _generic(operation, operands, scope)
    if name == "linalg.softmax":
        axis = int(operation.attributes["dimension"].split(":")[0])
        powers = np.exp(operands[0] - operands[0].max(axis=axis, keepdims=True))
        return [powers / powers.sum(axis=axis, keepdims=True)]
    if name == "tensor.empty":
        kind = operation.result_types[0]
        return [np.zeros(shape, np.int64 if re.search(r"x?i\d+>$", kind) else np.float64)]
    if name in ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast"):
        return [operands[0].reshape(shape)]
    if name == "tensor.splat":
        return [np.full(shape, operands[0])]
    if name == "tensor.concat":
        return [np.concatenate(operands, axis=int(operation.attributes["dim"].split(":")[0]))]
    if name == "tensor.pad":
        low, high = (_integers(operation.attributes[f"static_{side}"]) for side in ("low", "high"))
        (fill,) = _block(operation.regions[0][0], low, scope)
        widths = list(zip(low, high, strict=True))
        return [np.pad(operands[0], widths, constant_values=fill)]
    if name in ("tensor.extract_slice", "tensor.insert_slice"):
        return [_slice(operation, operands)]
    if name == "cf.assert":
        return []
    return [evaluate(operation, operands)]


def _slice(operation: Operation, operands: list[Value]) -> Value:
    parts = [
        _integers(operation.attributes[f"static_{word}"])
        for word in ("offsets", "sizes", "strides")
    ]
    if any(number < 0 for part in parts for number in part):
        raise ScheduleError("numpy cannot verify this payload: a slice has no fixed place.")
    index = tuple(
        slice(start, start + size * step, step) for start, size, step in zip(*parts, strict=True)
    )
    if operation.name == "tensor.extract_slice":
        return operands[0][index].reshape(_shape(operation.result_types[0]))
    whole = operands[1].copy()
    whole[index] = operands[0].reshape(whole[index].shape)
    return whole


def _generic(operation: Operation, operands: list[Value], scope: dict[str, Value]) -> list[Value]:
    """Evaluate one linalg.generic: all combinations of its dimensions at a time."""
    maps = [_map(text) for text in split(operation.attributes["indexing_maps"][1:-1])]
    kinds = re.findall(r"iterator_type<(\w+)>", operation.attributes["iterator_types"])
    sizes = _sizes(operands, maps, len(kinds))
    outputs = len(operation.results)
    body = operation.regions[0][0]
    views = [_view(np.asarray(a), m, sizes) for a, m in zip(operands, maps, strict=True)]
    axes = tuple(d for d, kind in enumerate(kinds) if kind == "reduction")
    if axes and outputs == 1 and (product := _product(body, views, axes, maps[-1])) is not None:
        return [_scattered(product + operands[-1], operands[-1])]
    if np.prod(sizes, dtype=float) > LARGEST:
        raise ScheduleError("numpy cannot verify this payload: it is too large to be evaluated.")
    known_values = scope | {"#sizes": sizes}
    if not axes:
        results = _body(body, views, known_values)
        return [
            _placed(result, m, out, sizes)
            for result, m, out in zip(results, maps[-outputs:], operands[-outputs:], strict=True)
        ]
    return [
        _reduced(body, number, views, axes, known_values, operands, maps)
        if name in scope["#used"]
        else None
        for number, name in enumerate(operation.results)
    ]


def _reduced(
    body: Block,
    number: int,
    views: list[Value],
    axes: tuple[int, ...],
    scope: dict[str, Value],
    operands: list[Value],
    maps: list[tuple[list[list[int]], list[int]]],
) -> Value:
    """Return one result of a reduction: all values by the whole body, combined at the end."""
    outputs = len(body.operations[-1].operands)
    accumulator = body.arguments[len(body.arguments) - outputs + number]
    combine = next((o for o in body.operations if accumulator in o.operands), None)
    final = body.operations[-1].operands[number]
    if combine is None or combine.results[0] != final or combine.name not in COMBINING:
        raise ScheduleError("numpy cannot verify this payload: a reduction of another kind.")
    (other,) = [name for name in combine.operands if name != accumulator]
    values = _body(body, views, scope, wanted=other)[0]
    sizes = scope["#sizes"]
    whole = np.broadcast_to(values, sizes)
    ufunc = COMBINING[combine.name]
    start = operands[len(operands) - outputs + number]
    return _scattered(ufunc(ufunc.reduce(whole, axis=axes), start), start)


def _body(
    body: Block, views: list[Value], scope: dict[str, Value], wanted: str | None = None
) -> list[Value]:
    """Evaluate the body of a generic on whole arrays.

    :param wanted: the one value to return; None: what the body yields.
    """
    values = scope | dict(zip(body.arguments, views, strict=True))
    if wanted in values:
        return [values[wanted]]
    sizes = scope["#sizes"]
    for operation in body.operations:
        if operation.name == "linalg.yield":
            break
        if operation.name == "linalg.index":
            axis = int(operation.attributes["dim"].split(":")[0])
            shape = [1] * len(sizes)
            shape[axis] = sizes[axis]
            result = np.arange(sizes[axis]).reshape(shape)
        else:
            result = evaluate(operation, [values[name] for name in operation.operands])
        values[operation.results[0]] = result
        if operation.results[0] == wanted:
            return [result]
    return [values[name] for name in body.operations[-1].operands]


def _product(
    body: Block,
    views: list[Value],
    axes: tuple[int, ...],
    result: tuple[list[list[int]], list[int]],
) -> Value | None:
    """Return the sum of products of two operands, by BLAS where numpy can; None if it is none."""
    steps = {o.results[0]: o for o in body.operations if o.results}
    total = steps.get(body.operations[-1].operands[0])
    if total is None or total.name not in ("arith.addf", "arith.addi"):
        return None
    factors = [steps.get(n) for n in total.operands if n != body.arguments[-1]]
    if (
        len(factors) != 1
        or factors[0] is None
        or factors[0].name not in ("arith.mulf", "arith.muli")
    ):
        return None
    sources = []
    for name in factors[0].operands:
        while name in steps and steps[name].name in ("arith.extf", "arith.extsi", "arith.sitofp"):
            name = steps[name].operands[0]
        if name not in body.arguments[:-1]:
            return None
        sources.append(views[body.arguments.index(name)])
    kept = [row.index(1) for row in result[0]]
    pieces: list[Any] = []
    for view in sources:
        own = [d for d in range(view.ndim) if view.strides[d] or view.shape[d] == 1]
        index = tuple(slice(None) if d in own else 0 for d in range(view.ndim))
        array = view[index]
        wide = array.astype(np.int64) if array.dtype.kind in "iu" else array
        pieces += [wide, own]
    return np.einsum(*pieces, kept, optimize=True)


def _map(text: str) -> tuple[list[list[int]], list[int]]:
    """Return the coefficients of the dimensions for each result of an affine map, and constants."""
    match = _MAP.fullmatch(text.strip())
    if match is None:
        raise ScheduleError(f"The map '{text}' cannot be read.")
    names = [name.strip() for name in match[1].split(",") if name.strip()]
    rows, constants = [], []
    for expression in split(match[2]):
        if not _EXPRESSION.fullmatch(expression):
            raise ScheduleError(f"numpy cannot verify this payload: the index '{expression}'.")
        code = compile(expression, "<affine>", "eval")
        origin = dict.fromkeys(names, 0)
        base = eval(code, {"__builtins__": {}}, origin)  # noqa: S307  # digits, names, + - *
        points = [eval(code, {"__builtins__": {}}, origin | {name: 1}) for name in names]  # noqa: S307
        rows.append([point - base for point in points])
        constants.append(base)
    return rows, constants


def _sizes(
    operands: list[Value], maps: list[tuple[list[list[int]], list[int]]], count: int
) -> list[int]:
    """Return the extent of each dimension, read off where an operand has it as an index."""
    sizes = [0] * count
    for operand, (rows, _) in zip(operands, maps, strict=True):
        for axis, row in enumerate(rows):
            if sorted(row) == [0] * (count - 1) + [1]:
                sizes[row.index(1)] = np.shape(operand)[axis]
    return sizes


def _view(array: Any, affine: tuple[list[list[int]], list[int]], sizes: list[int]) -> Value:
    """Return an array as seen over all dimensions, without a copy."""
    rows, constants = affine
    offset = array[tuple(slice(c, None) for c in constants)] if constants else array
    strides = [
        sum(row[d] * offset.strides[axis] for axis, row in enumerate(rows))
        for d in range(len(sizes))
    ]
    return as_strided(offset, sizes, strides, writeable=False)


def _placed(
    result: Value, affine: tuple[list[list[int]], list[int]], out: Value, sizes: list[int]
) -> Value:
    """Return the result of a generic without reductions in the order of its output's dimensions."""
    whole = np.broadcast_to(result, sizes)
    order = [row.index(1) for row in affine[0]]
    return _scattered(np.transpose(whole, order) if order else whole.reshape(()), out)


def _scattered(result: Value, like: Value) -> Value:
    array = np.asarray(result)
    return array.reshape(np.shape(like))


def _shape(kind: str) -> list[int]:
    """Return the sizes of a tensor type of fixed sizes; of a number: none."""
    match = re.match(r"tensor<((?:\d+x)*)", kind)
    return [int(size) for size in match[1].split("x") if size] if match else []


def _integers(text: str) -> list[int]:
    """Return the numbers of an attribute such as ``array<i64: 1, 2>``."""
    return [int(word) for word in text.partition(":")[2].rstrip(">").split(",") if word.strip()]
