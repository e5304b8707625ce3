"""The file of our own cost model: safetensors, checked before anything in it is used."""

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from iced_x86 import Code
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from nestor.cost.contract import ModelError
from nestor.cost.core.parameters import FIELDS, CoreParameters, MachineSettings, checked_core
from nestor.cost.isa.template_layout import TEMPLATE, VARIANTS, WORDS, check_templates
from nestor.cost.isa.templates import Templates, opcode_of
from nestor.cost.model.features import FEATURES
from nestor.cost.model.forest import NO_TREES, Forest, checked
from nestor.cost.model.hybrid import HybridModel, MachinePart, Parts
from nestor.cost.model.levels import REACH_BEFORE
from nestor.cost.model.opcode_intervals import from_lists
from nestor.cost.model.trained_forms import TrainedForms
from nestor.files import write_atomically

SHIPPED: Final = Path(__file__).parents[1] / "data" / "shipped.safetensors"
"""The model that comes with the package."""

Content = TypeVar("Content")

_KIND: Final = "nestor cost model"
_FORMAT: Final = 3
_KIND_OF_SEVERAL: Final = "nestor cost models"
"""A file that holds the files of several models, each of other machines, as they are."""
_OLD_SETTINGS: Final = 19
_MOST_BYTES: Final = 64 << 20


def load(name_or_path: str | Path, machine: str | None = None) -> HybridModel:
    """Return ``shipped``, or the model in a file.

    :param machine: the machine to predict for, by its name in the training table; the file's
        first if None.
    :raises ModelError: if there is no such file, it is damaged, or it has no such machine.
    """
    return read(_path(name_or_path), machine)


def machines(name_or_path: str | Path) -> tuple[str, ...]:
    """Return the machines that ``shipped``, or the models in a file, predict for, the first first.

    :raises ModelError: if there is no such file, or it is damaged.
    """
    path = _path(name_or_path)
    return tuple(name for data in _single_files(_bytes_of(path)) for name in _names(path, data))


def _path(name_or_path: str | Path) -> Path:
    return SHIPPED if str(name_or_path) == "shipped" else Path(name_or_path)


def save(model: HybridModel, path: Path) -> None:
    """Write ``model`` at once or not at all; the bytes depend on the model alone.

    :raises ModelError: if the file cannot be written.
    """
    parts = model.parts
    tensors: dict[str, NDArray[Any]] = {
        "template.keys": np.array(parts.templates.keys, dtype=np.uint64),
        "template.rows": _words(parts.templates).astype(np.int16),
        "bins.edges": parts.edges,
        "bins.starts": parts.starts,
    }
    forests = {"residual": parts.residual, "spread": parts.spread, "fine": parts.fine}
    for name, forest in forests.items():
        tensors[f"{name}.nodes"] = forest.nodes
        tensors[f"{name}.values"] = forest.values.astype(np.float16)
        tensors[f"{name}.first"] = forest.first
        tensors[f"{name}.depth"] = forest.depth
    for number, part in enumerate(parts.machines):
        keys, sums, counts = part.memory
        tensors[f"machine{number}.levels"] = part.levels
        tensors[f"machine{number}.ordered"] = part.ordered
        tensors[f"machine{number}.settings"] = np.array(astuple(part.core.settings), dtype=np.int32)
        # Most forms have the starting values of their category: each set of costs stands once.
        costs, of_form = np.unique(part.core.forms, axis=0, return_inverse=True)
        tensors[f"machine{number}.costs"] = costs
        tensors[f"machine{number}.forms"] = of_form.reshape(-1).astype(np.uint16)
        tensors[f"machine{number}.memory.keys"] = keys
        tensors[f"machine{number}.memory.means"] = (sums / counts).astype(np.float16)
        tensors[f"machine{number}.memory.counts"] = np.minimum(counts, 65535).astype(np.uint16)
    header = {
        "kind": _KIND,
        "format": _FORMAT,
        "features": list(FEATURES),
        "forms": parts.templates.forms,
        "machines": [_described(part, parts.templates.forms) for part in parts.machines],
        "base": [parts.residual.base, parts.spread.base],
        "on core": parts.on_core,
        "provenance": dict(parts.provenance),
    }
    data = save_tensors(tensors, metadata={"nestor": json.dumps(header, sort_keys=True)})
    try:
        write_atomically(path, data)
    except OSError as error:
        raise ModelError(f"Cannot write '{path}': {error.strerror}.") from error


def join(paths: Sequence[Path], out: Path) -> tuple[str, ...]:
    """Write one file of the models in ``paths``, each for its own machines; return their names.

    The first machine of the first model is the one that is used if none is named.

    :raises ModelError: if a file is no such model, two have one machine, or it cannot be written.
    """
    tensors: dict[str, NDArray[Any]] = {}
    machines: list[list[str]] = []
    for path in paths:
        for data in _single_files(_bytes_of(path)):
            names = _names(path, data)
            if taken := {name for found in machines for name in found} & set(names):
                raise ModelError(
                    f"Two of the models are for '{min(taken)}'; name one model for each machine."
                )
            tensors[f"model{len(machines)}"] = np.frombuffer(data, dtype=np.uint8)
            machines.append(names)
    header = {"kind": _KIND_OF_SEVERAL, "format": _FORMAT, "machines": machines}
    content = save_tensors(tensors, metadata={"nestor": json.dumps(header, sort_keys=True)})
    try:
        write_atomically(out, content)
    except OSError as error:
        raise ModelError(f"Cannot write '{out}': {error.strerror}.") from error
    return tuple(name for found in machines for name in found)


def _names(path: Path, data: bytes) -> list[str]:
    return [part.name for part in _of_version(path, lambda: _parts(data)).machines]


def _single_files(data: bytes) -> list[bytes]:
    """Return the files of single models in a file, which may be one itself."""
    try:
        if _header(data)["kind"] != _KIND_OF_SEVERAL:
            return [data]
        tensors = load_tensors(data)
        names = [f"model{number}" for number in range(len(tensors))]
        return [_typed(tensors, name, np.uint8, 1).tobytes() for name in names]
    except (SafetensorError, KeyError, ValueError, TypeError):
        return [data]


def _for_machine(data: bytes, machine: str | None) -> bytes:
    """Return the single model in a file that predicts for ``machine``; its first if None."""
    header = _header(data)
    if header["kind"] != _KIND_OF_SEVERAL:
        return data
    machines = [[str(name) for name in names] for names in header["machines"]]
    for number, names in enumerate(machines):
        if machine is None or machine in names:
            return _typed(load_tensors(data), f"model{number}", np.uint8, 1).tobytes()
    machine_names = ", ".join(name for names in machines for name in names)
    raise ModelError(f"The model has no machine '{machine}'; name one of: {machine_names}.")


def _header(data: bytes) -> dict[str, Any]:
    """Return what a file says of itself."""
    length = int.from_bytes(data[:8], "little")
    found = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["nestor"])
    if not isinstance(found, dict):
        raise TypeError("a header that is no object")
    return found


def _described(part: MachinePart, forms: list[str]) -> dict[str, Any]:
    measured = part.opcodes.trained | part.opcodes.borrowed
    return {
        "name": part.name,
        "factor": part.factor,
        "method": part.method,
        "reach": part.reach,
        "trained opcodes": sorted(part.opcodes.trained),
        "unmeasured opcodes": sorted(set(map(opcode_of, forms)) - measured),
        "borrowed factors": part.borrowed.groups,
    }


def _words(templates: Templates) -> NDArray[np.int32]:
    """Return templates as the file holds them, ``[templates, WORDS]``."""
    rows = np.array(templates.rows, dtype=TEMPLATE)
    return rows.view(np.int32).reshape(-1, WORDS)


def read(path: Path, machine: str | None = None) -> HybridModel:
    """Open a model file.

    :raises ModelError: if it is missing, damaged or has no such machine.
    """
    data = _bytes_of(path)
    return _of_version(path, lambda: HybridModel(_parts(_for_machine(data, machine)), machine))


def _bytes_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ModelError(f"'{path}' is larger than any cost model; name another file.")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ModelError(f"Cannot read the cost model '{path}'; is the path right?") from error


def _of_version(path: Path, make: Callable[[], Content]) -> Content:
    """Return what ``make`` makes of a file.

    :raises ModelError: if the file is of another kind or damaged.
    """
    try:
        return make()
    except (SafetensorError, KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise ModelError(
            f"'{path}' is not a cost model of this version, or is damaged; train it again."
        ) from error


def _parts(data: bytes) -> Parts:
    tensors = load_tensors(data)
    header = _header(data)
    if (header["kind"], header["format"]) != (_KIND, _FORMAT):
        raise ValueError("another kind of file")
    if header["features"] != list(FEATURES):
        raise ValueError("features of another version")
    forms = [str(form) for form in header["forms"]]
    if not all(isinstance(vars(Code).get(form.split()[0]), int) for form in forms):
        raise ValueError("forms that there are not")
    starts = _typed(tensors, "bins.starts", np.int32, 1)
    edges = _typed(tensors, "bins.edges", np.float32, 1)
    if len(starts) != len(FEATURES) + 1 or starts[0] != 0 or starts[-1] != len(edges):
        raise ValueError("bins that do not fit")
    if (np.diff(starts) < 0).any() or (np.diff(starts) > 255).any():
        raise ValueError("bins that do not fit")
    return Parts(
        templates=_templates(tensors, forms),
        machines=tuple(
            _machine(tensors, number, entry, forms)
            for number, entry in enumerate(header["machines"])
        ),
        edges=edges,
        starts=starts,
        residual=_forest(tensors, "residual", float(header["base"][0])),
        spread=_forest(tensors, "spread", float(header["base"][1])),
        on_core=bool(header["on core"]),
        # Files that were written before have none.
        fine=_forest(tensors, "fine", 0.0) if "fine.nodes" in tensors else NO_TREES,
        provenance={str(key): str(value) for key, value in header["provenance"].items()},
    )


def _typed(
    tensors: dict[str, NDArray[Any]], name: str, kind: type[Any], dimensions: int
) -> NDArray[Any]:
    array = tensors[name]
    if array.dtype != kind or array.ndim != dimensions:
        raise ValueError(f"{name} is of another kind")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return np.ascontiguousarray(array)


def _templates(tensors: dict[str, NDArray[Any]], forms: list[str]) -> Templates:
    keys = _typed(tensors, "template.keys", np.uint64, 1)
    words = _typed(tensors, "template.rows", np.int16, 2).astype(np.int32)
    if words.shape != (len(keys), WORDS):
        raise ValueError("templates that do not fit")
    rows = words.view(TEMPLATE)[:, 0]
    if (rows["form"] >= len(forms)).any():
        raise ValueError("templates of forms that are not there")
    check_templates(rows)
    return Templates([int(key) for key in keys], [rows[i, ...] for i in range(len(rows))], forms)


def _forest(tensors: dict[str, NDArray[Any]], name: str, base: float) -> Forest:
    return checked(
        Forest(
            nodes=_typed(tensors, f"{name}.nodes", np.uint32, 1),
            values=_typed(tensors, f"{name}.values", np.float16, 1).astype(np.float32),
            first=_typed(tensors, f"{name}.first", np.int32, 1),
            depth=_typed(tensors, f"{name}.depth", np.int32, 1),
            base=base,
        ),
        len(FEATURES),
    )


def _machine(
    tensors: dict[str, NDArray[Any]], number: int, entry: dict[str, Any], forms: list[str]
) -> MachinePart:
    settings = _typed(tensors, f"machine{number}.settings", np.int32, 1)
    costs = _typed(tensors, f"machine{number}.costs", np.int32, 2)
    of_form = _typed(tensors, f"machine{number}.forms", np.uint16, 1)
    if costs.shape[1] != len(FIELDS) or len(of_form) != len(forms) * VARIANTS:
        raise ValueError("parameters that do not fit")
    rows = np.ascontiguousarray(costs[of_form])
    keys = _typed(tensors, f"machine{number}.memory.keys", np.uint32, 1)
    means = _typed(tensors, f"machine{number}.memory.means", np.float16, 1)
    counts = _typed(tensors, f"machine{number}.memory.counts", np.uint16, 1).astype(np.uint32)
    if not len(keys) == len(means) == len(counts):
        raise ValueError("a memory that does not fit")
    found = MachineSettings(*map(int, settings))
    if len(settings) <= _OLD_SETTINGS:
        found = replace(found, fine_variants=0)
    core = checked_core(CoreParameters(found, rows))
    levels = _typed(tensors, f"machine{number}.levels", np.float32, 1)
    if (np.diff(levels) <= 0).any():
        raise ValueError("levels that do not rise")
    plain = {f"machine{number}.ordered": np.zeros(len(levels), dtype=np.uint8)}
    ordered = _typed(plain | tensors, f"machine{number}.ordered", np.uint8, 1)
    if len(ordered) != len(levels):
        raise ValueError("levels that do not fit")
    factor, reach = float(entry["factor"]), float(entry.get("reach", REACH_BEFORE))
    if not 0 < factor < 1e6 or not 0 <= reach < 1:
        raise ValueError("an interval factor or a reach out of its range")
    trained = frozenset(str(opcode) for opcode in entry["trained opcodes"])
    others = frozenset(map(opcode_of, forms)) - trained
    borrowed = others - {str(opcode) for opcode in entry["unmeasured opcodes"]}
    memory = (keys, (means * counts).astype(np.float32), counts)
    return MachinePart(
        str(entry["name"]),
        core,
        memory,
        levels,
        factor,
        TrainedForms(trained, borrowed),
        from_lists(entry["borrowed factors"]),
        ordered,
        str(entry["method"]),
        reach,
    )
