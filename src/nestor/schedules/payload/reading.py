"""A payload: one function of linalg operations on tensors, which a schedule lowers."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler.process import Limits
from nestor.errors import meant
from nestor.files import read_regular_text, write_atomically
from nestor.schedules.language.diagnosis import Diagnosis, LoweringError, explain
from nestor.schedules.language.text import Place, ScheduleError, blanked, line_of
from nestor.schedules.payload.exported import FOLDING, has_unit_dimensions, with_constants
from nestor.schedules.payload.iree import without_iree
from nestor.schedules.payload.operations import Operation, parse, split
from nestor.schedules.tools import Tools, run_limited
from nestor.temporary import temporary_folder

_TENSOR: Final = re.compile(r"tensor<((?:[\d?]+x)*)([a-z]+\d*)(?:,.*)?>\Z")
_ELEMENTS: Final = {
    "f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16, "i8": 8, "i1": 8,
    "index": 64,
}  # fmt: skip
_FOREIGN: Final = re.compile(r"Dialect `\w+' not found|unregistered dialect")
_FOREIGN_NAME: Final = re.compile(r"custom op '([^']+)'|[!#]\"(\w+)\"<")
_FUNCTION: Final = re.compile(r'"func\.func"\(\) <\{(?P<properties>.*?)\}> \(\{', re.DOTALL)


@dataclass(frozen=True)
class TensorType:
    """The type of an argument or result; no dimensions: a scalar."""

    shape: tuple[int, ...]
    element: str
    """For example ``f32``."""
    tensor: bool = True
    """Whether it is a tensor, perhaps of no dimensions, and no plain number."""

    @property
    def bits(self) -> int:
        """The size of one element."""
        return _ELEMENTS[self.element]

    def __str__(self) -> str:
        if not self.tensor:
            return self.element
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"


@dataclass(frozen=True)
class Payload:
    """One function that can be lowered, as the compiler has read it."""

    name: str
    """The function."""
    text: str
    """The module in generic form, with the places of the source."""
    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    module: Operation
    """The module, read."""

    @property
    def function(self) -> Operation:
        """The function itself."""
        return _function(self.module, self.name)

    @property
    def digest(self) -> str:
        """SHA-256 of the payload without the places of its source, in hexadecimal."""
        plain = re.sub(r" loc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\)", "", self.text)
        return hashlib.sha256(plain.encode()).hexdigest()


def read_payload(
    source: Path | str, tools: Tools, *, function: str | None = None, limits: Limits | None = None
) -> Payload:
    """Read a payload.

    :param source: a file, or a module's text.
    :param function: which function; None: the only public one.
    :raises LoweringError: if mlir-opt does not accept it.
    :raises ScheduleError: if it has no such function, or one with types that numpy cannot pass.
    """
    text = source if isinstance(source, str) else read_regular_text(source, "a payload")
    shown = source if isinstance(source, Path) else Path("payload")
    text = without_iree(text, shown)
    generic = _generic(text, shown, tools, limits or Limits(seconds=30.0))
    if has_unit_dimensions(generic):
        generic = _generic(text, shown, tools, limits or Limits(seconds=30.0), FOLDING)
    generic = with_constants(generic, text)
    module = parse(generic)
    name = function or _only_function(module, shown)
    place = _place(text, name, shown)
    types = _function(module, name).attributes["function_type"]
    try:
        arguments, results = (tuple(map(parse_type, words)) for words in _signature(types))
    except ScheduleError as error:
        raise ScheduleError(f"{place}: {error}") from None
    if not results:
        raise ScheduleError(f"{place}: '{name}' returns nothing: a payload returns tensors.")
    return Payload(name, _read_only(generic, name), arguments, results, module)


def _generic(
    text: str, shown: Path, tools: Tools, limits: Limits, passes: Sequence[str] = ()
) -> str:
    """Return a module in generic form, with the places of the source.

    :param shown: the file that the places name.
    """
    with temporary_folder("payload") as folder:
        file, out = Path(folder) / "payload.mlir", Path(folder) / "generic.mlir"
        write_atomically(file, text)
        outcome = run_limited(
            [
                tools.mlir_opt, file, *passes, "--mlir-print-op-generic",
                "--mlir-print-local-scope", "--mlir-print-debuginfo",
            ],
            limits,
            stdout=out,
        )  # fmt: skip
        if not outcome.ok:
            found = [_in_source(d, file, shown) for d in explain(outcome, None, file)]
            diagnoses = [foreign] if (foreign := _foreign(found[0])) else found
            raise LoweringError(diagnoses, outcome.ending)
        return out.read_text().replace(str(file), str(shown))


def _foreign(diagnosis: Diagnosis) -> Diagnosis | None:
    """Return what to say where a payload has operations or types of another project."""
    if _FOREIGN.search(diagnosis.reason) is None:
        return None
    named = _FOREIGN_NAME.search(diagnosis.reason)
    what = f"'{named[1] or named[2]}'" if named else "this operation"
    reason = (
        f"{what} is of a dialect that MLIR does not have: export the payload as linalg on tensors"
        " (torch-mlir: output_type='linalg-on-tensors'; IREE: iree-compile --compile-to=input)"
    )
    return Diagnosis("error", reason, diagnosis.place)


def _in_source(diagnosis: Diagnosis, file: Path, shown: Path) -> Diagnosis:
    place = diagnosis.place
    if place is None or place.file != file:
        return diagnosis
    return Diagnosis(diagnosis.severity, diagnosis.reason, type(place)(shown, place.line))


def _functions(module: Operation) -> list[Operation]:
    return [o for o in module.walk() if o.name == "func.func" and o.regions and o.regions[0]]


def _place(text: str, name: str, file: Path) -> Place:
    """Return the line of a function."""
    match = re.search(rf"func\.func\b[^@\n]*@{re.escape(name)}(?![\w.$-])", blanked(text))
    return Place(file, line_of(text, match.start()) if match else 1)


def _only_function(module: Operation, file: Path) -> str:
    public = [o for o in _functions(module) if o.attributes.get("sym_visibility") != '"private"']
    names = [o.attributes["sym_name"].strip('"') for o in public]
    if not names:
        raise ScheduleError(f"{file} has no public function: a payload is one, on tensors.")
    if len(names) > 1:
        there = ", ".join(names)
        raise ScheduleError(f"{file} has several public functions, {there}: name one (--function).")
    return names[0]


def _function(module: Operation, name: str) -> Operation:
    for operation in _functions(module):
        if operation.attributes["sym_name"].strip('"') == name:
            return operation
    there = [o.attributes["sym_name"].strip('"') for o in _functions(module)]
    raise ScheduleError(
        f"The payload has no function '{name}'{meant(name, there)}; it has"
        f" {', '.join(there) or 'none'}."
    )


def _signature(text: str) -> tuple[list[str], list[str]]:
    """Split ``(a, b) -> c`` into arguments and results."""
    arguments, _, results = text.partition("->") if text.startswith("()") else _at_arrow(text)
    results = results.strip()
    inner = results[1:-1] if results.startswith("(") else results
    return split(arguments.strip()[1:-1]), split(inner)


def _at_arrow(text: str) -> tuple[str, str, str]:
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[: index + 1], "->", text[index + 1 :].strip().removeprefix("->")
    raise ScheduleError(f"The type '{text}' of a function cannot be read.")


def parse_type(text: str) -> TensorType:
    """Read the type of an argument or result.

    :raises ScheduleError: if numpy cannot pass it.
    """
    if text in _ELEMENTS:
        return TensorType((), text, tensor=False)
    match = _TENSOR.match(text)
    if match is None or match[2] not in _ELEMENTS:
        raise ScheduleError(
            f"'{text}' cannot be passed from numpy: arguments and results are tensors of"
            f" {', '.join(_ELEMENTS)}, or such numbers."
        )
    if "?" in match[1]:
        raise ScheduleError(
            f"'{text}' has a size that is not fixed: write a number instead of each '?'."
        )
    shape = tuple(int(size) for size in match[1].split("x") if size)
    return TensorType(shape, match[2])


def _read_only(text: str, name: str) -> str:
    """Mark all tensors that a function gets as read-only, so that no schedule writes into them."""
    for match in _FUNCTION.finditer(text):
        if f'sym_name = "{name}"' not in match["properties"]:
            continue
        found = re.search(r"arg_attrs = \[", match["properties"])
        types = re.search(r"function_type = ", match["properties"])
        if found is None and types is not None:
            signature = _at_arrow(match["properties"][types.end() :])[0]
            flags = [
                "{bufferization.writable = false}" if word.startswith("tensor") else "{}"
                for word in split(signature[1:-1])
            ]
            at = match.start("properties")
            return f"{text[:at]}arg_attrs = [{', '.join(flags)}], {text[at:]}"
    return text
