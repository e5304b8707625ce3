"""What the file of one of our own models holds: safetensors, checked before anything is used."""

import json
from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any, Final

import numpy as np
from iced_x86 import Code
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from nestor.cost.core.parameters import FIELDS, CoreParameters, MachineSettings, checked_core
from nestor.cost.isa.template_layout import TEMPLATE, VARIANTS, WORDS, check_templates
from nestor.cost.isa.templates import Templates, opcode_of
from nestor.cost.model.features import FEATURES
from nestor.cost.model.forest import NO_TREES, Forest, checked
from nestor.cost.model.hybrid import MachinePart, Parts
from nestor.cost.model.levels import REACH_BEFORE
from nestor.cost.model.opcode_intervals import from_lists
from nestor.cost.model.trained_forms import TrainedForms

KIND: Final = "nestor cost model"
FORMAT: Final = 3
_OLD_SETTINGS: Final = 19


def content_of(parts: Parts) -> bytes:
    """Return the file of a model, which depends on nothing else."""
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
        "kind": KIND,
        "format": FORMAT,
        "features": list(FEATURES),
        "forms": parts.templates.forms,
        "machines": [_described(part, parts.templates.forms) for part in parts.machines],
        "base": [parts.residual.base, parts.spread.base],
        "on core": parts.on_core,
        "provenance": dict(parts.provenance),
    }
    return with_header(tensors, header)


def with_header(tensors: dict[str, NDArray[Any]], header: Mapping[str, Any]) -> bytes:
    """Return a file of tensors that says ``header`` of itself."""
    return save_tensors(tensors, metadata={"nestor": json.dumps(header, sort_keys=True)})


def header_of(data: bytes) -> dict[str, Any]:
    """Return what a file says of itself.

    :raises ValueError, KeyError, TypeError: if it says nothing.
    """
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


def parts_of(data: bytes) -> Parts:
    """Return what the file of one model holds.

    :raises SafetensorError, KeyError, ValueError, TypeError, IndexError, OverflowError: if it is of
        another kind or damaged.
    """
    tensors = load_tensors(data)
    header = header_of(data)
    if (header["kind"], header["format"]) != (KIND, FORMAT):
        raise ValueError("another kind of file")
    if header["features"] != list(FEATURES):
        raise ValueError("features of another version")
    forms = [str(form) for form in header["forms"]]
    if not all(isinstance(vars(Code).get(form.split()[0]), int) for form in forms):
        raise ValueError("forms that there are not")
    starts = typed(tensors, "bins.starts", np.int32, 1)
    edges = typed(tensors, "bins.edges", np.float32, 1)
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


def typed(
    tensors: dict[str, NDArray[Any]], name: str, kind: type[Any], dimensions: int
) -> NDArray[Any]:
    """Return one of the tensors.

    :raises ValueError: if it is of another type or shape, or not finite.
    """
    array = tensors[name]
    if array.dtype != kind or array.ndim != dimensions:
        raise ValueError(f"{name} is of another kind")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return np.ascontiguousarray(array)


def _templates(tensors: dict[str, NDArray[Any]], forms: list[str]) -> Templates:
    keys = typed(tensors, "template.keys", np.uint64, 1)
    words = typed(tensors, "template.rows", np.int16, 2).astype(np.int32)
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
            nodes=typed(tensors, f"{name}.nodes", np.uint32, 1),
            values=typed(tensors, f"{name}.values", np.float16, 1).astype(np.float32),
            first=typed(tensors, f"{name}.first", np.int32, 1),
            depth=typed(tensors, f"{name}.depth", np.int32, 1),
            base=base,
        ),
        len(FEATURES),
    )


def _machine(
    tensors: dict[str, NDArray[Any]], number: int, entry: dict[str, Any], forms: list[str]
) -> MachinePart:
    settings = typed(tensors, f"machine{number}.settings", np.int32, 1)
    costs = typed(tensors, f"machine{number}.costs", np.int32, 2)
    of_form = typed(tensors, f"machine{number}.forms", np.uint16, 1)
    if costs.shape[1] != len(FIELDS) or len(of_form) != len(forms) * VARIANTS:
        raise ValueError("parameters that do not fit")
    rows = np.ascontiguousarray(costs[of_form])
    keys = typed(tensors, f"machine{number}.memory.keys", np.uint32, 1)
    means = typed(tensors, f"machine{number}.memory.means", np.float16, 1)
    counts = typed(tensors, f"machine{number}.memory.counts", np.uint16, 1).astype(np.uint32)
    if not len(keys) == len(means) == len(counts):
        raise ValueError("a memory that does not fit")
    found = MachineSettings(*map(int, settings))
    if len(settings) <= _OLD_SETTINGS:
        found = replace(found, fine_variants=0)
    core = checked_core(CoreParameters(found, rows))
    levels = typed(tensors, f"machine{number}.levels", np.float32, 1)
    if (np.diff(levels) <= 0).any():
        raise ValueError("levels that do not rise")
    plain = {f"machine{number}.ordered": np.zeros(len(levels), dtype=np.uint8)}
    ordered = typed(plain | tensors, f"machine{number}.ordered", np.uint8, 1)
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
