"""The file of our own cost model: safetensors, checked before anything in it is believed."""

import contextlib
import json
import secrets
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from nestor.cost.encoding import WORDS, Templates
from nestor.cost.features import FEATURES
from nestor.cost.forest import Forest, checked
from nestor.cost.hybrid import HybridModel, MachinePart, Parts
from nestor.cost.machine import (
    FIELDS,
    VARIANTS,
    CoreParameters,
    MachineSettings,
    checked_core,
)
from nestor.cost.model import ModelError

_KIND: Final = "nestor cost model"
_FORMAT: Final = 2
_MOST_BYTES: Final = 64 << 20


def save(model: HybridModel, path: Path) -> None:
    """Write ``model`` at once or not at all; the bytes depend on the model alone.

    :raises ModelError: if the file cannot be written.
    """
    parts = model.parts
    tensors: dict[str, NDArray[Any]] = {
        "template.keys": np.array(parts.templates.keys, dtype=np.uint64),
        "template.rows": np.array(parts.templates.rows, dtype=np.int16).reshape(-1, WORDS),
        "bins.edges": parts.edges,
        "bins.starts": parts.starts,
    }
    for name, forest in (("residual", parts.residual), ("spread", parts.spread)):
        tensors[f"{name}.nodes"] = forest.nodes
        tensors[f"{name}.values"] = forest.values.astype(np.float16)
        tensors[f"{name}.first"] = forest.first
        tensors[f"{name}.depth"] = forest.depth
    for number, part in enumerate(parts.machines):
        keys, sums, counts = part.memory
        tensors[f"machine{number}.levels"] = part.levels
        tensors[f"machine{number}.settings"] = part.core.settings.row()
        tensors[f"machine{number}.forms"] = part.core.forms
        tensors[f"machine{number}.memory.keys"] = keys
        tensors[f"machine{number}.memory.means"] = (sums / counts).astype(np.float16)
        tensors[f"machine{number}.memory.counts"] = np.minimum(counts, 65535).astype(np.uint16)
    header = {
        "kind": _KIND,
        "format": _FORMAT,
        "features": list(FEATURES),
        "forms": parts.templates.forms,
        "machines": [{"name": part.name, "factor": part.factor} for part in parts.machines],
        "base": [parts.residual.base, parts.spread.base],
        "on core": parts.on_core,
        "provenance": dict(parts.provenance),
    }
    data = save_tensors(tensors, metadata={"nestor": json.dumps(header, sort_keys=True)})
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            partial.write_bytes(data)
            partial.replace(path)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise ModelError(f"Cannot write '{path}': {error.strerror}.") from error


def read(path: Path, machine: str | None = None) -> HybridModel:
    """Open a model file.

    :raises ModelError: if it is missing, damaged or does not know ``machine``.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ModelError(f"'{path}' is larger than any cost model; name another file.")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ModelError(f"Cannot read the cost model '{path}'; is the path right?") from error
    try:
        return HybridModel(_parts(data), machine)
    except (SafetensorError, KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise ModelError(
            f"'{path}' is no cost model of this version, or damaged; train it anew."
        ) from error


def _parts(data: bytes) -> Parts:
    tensors = load_tensors(data)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["nestor"])
    if (header["kind"], header["format"]) != (_KIND, _FORMAT):
        raise ValueError("another kind of file")
    if header["features"] != list(FEATURES):
        raise ValueError("features of another version")
    forms = [str(form) for form in header["forms"]]
    starts = _typed(tensors, "bins.starts", np.int32, 1)
    edges = _typed(tensors, "bins.edges", np.float32, 1)
    if len(starts) != len(FEATURES) + 1 or starts[0] != 0 or starts[-1] != len(edges):
        raise ValueError("bins that do not fit")
    if (np.diff(starts) < 0).any() or (np.diff(starts) > 255).any():
        raise ValueError("bins that do not fit")
    return Parts(
        templates=_templates(tensors, forms),
        machines=tuple(
            _machine(tensors, number, entry, len(forms))
            for number, entry in enumerate(header["machines"])
        ),
        edges=edges,
        starts=starts,
        residual=_forest(tensors, "residual", float(header["base"][0])),
        spread=_forest(tensors, "spread", float(header["base"][1])),
        on_core=bool(header["on core"]),
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
    rows = _typed(tensors, "template.rows", np.int16, 2).astype(np.int32)
    if rows.shape != (len(keys), WORDS):
        raise ValueError("templates that do not fit")
    if len(rows) and (rows[:, 0] >= len(forms)).any():
        raise ValueError("templates of forms that are not there")
    for row in rows:
        _check_template(row)
    return Templates([int(key) for key in keys], list(rows), forms)


def _check_template(row: NDArray[np.int32]) -> None:
    """Refuse a template that would lead the native decoder out of its arrays."""
    operands = row[12:27].reshape(5, 3)
    registers = np.concatenate([row[27:43], operands[operands[:, 0] == 6, 1]])
    if (registers < -1).any() or (registers >= 67).any():
        raise ValueError("a template names a register that is not there")
    if not 0 <= row[1] <= 12 or not 0 <= row[4] <= 8 or not 0 <= row[5] <= 1024:
        raise ValueError("a template has a size that is not there")
    if not 0 <= row[9] < 256 or not 0 <= row[3] < 256:
        raise ValueError("a template has a category that is not there")


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
    tensors: dict[str, NDArray[Any]], number: int, entry: dict[str, Any], forms: int
) -> MachinePart:
    settings = _typed(tensors, f"machine{number}.settings", np.int32, 1)
    rows = _typed(tensors, f"machine{number}.forms", np.int32, 2)
    if rows.shape != (forms * VARIANTS, len(FIELDS)):
        raise ValueError("parameters that do not fit")
    keys = _typed(tensors, f"machine{number}.memory.keys", np.uint32, 1)
    means = _typed(tensors, f"machine{number}.memory.means", np.float16, 1)
    counts = _typed(tensors, f"machine{number}.memory.counts", np.uint16, 1).astype(np.uint32)
    if not len(keys) == len(means) == len(counts):
        raise ValueError("a memory that does not fit")
    core = checked_core(CoreParameters(MachineSettings(*(int(x) for x in settings)), rows))
    levels = _typed(tensors, f"machine{number}.levels", np.float32, 1)
    if (np.diff(levels) <= 0).any():
        raise ValueError("levels that do not rise")
    factor = float(entry["factor"])
    if not 0 < factor < 1e6:
        raise ValueError("an interval that makes no sense")
    memory = (keys, (means * counts).astype(np.float32), counts)
    return MachinePart(str(entry["name"]), core, memory, levels, factor)
