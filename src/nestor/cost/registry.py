"""Open any cost model by its name or file, and write any model's file.

A baseline's file is safetensors as our own model's is (``model.model_file``); its metadata carries
the key ``baseline`` with the kind and a description in JSON. Nothing in it is executed.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from nestor.cost.baselines.bound import BoundModel
from nestor.cost.baselines.mca import McaModel
from nestor.cost.contract import CostModel, ModelError
from nestor.cost.model import model_file
from nestor.cost.model.mean import OwnModel
from nestor.files import read_regular, write_atomically

_KEY: Final = "baseline"
_LARGEST_HEADER: Final = 1 << 20
_LARGEST_BASELINE: Final = 1 << 28
"""Bytes."""


def open_model(name_or_path: str | Path, machine: str | None = None) -> CostModel:
    """Return ``shipped``, a model from a file, or the baseline ``llvm-mca`` or ``bound``.

    By name the two are as LLVM has them, not rescaled to measurements.

    :param machine: the machine to predict for, of those in the file of our own kind of model; its
        first if None.
    :raises ModelError: if there is no such model, its file is broken, or it has no such machine.
    """
    name = str(name_or_path)
    if machine is not None and name in ("llvm-mca", "bound"):
        raise ModelError(f"'{name}' predicts for one machine alone: leave out --machine.")
    if name == "llvm-mca":
        return McaModel()
    if name == "bound":
        return BoundModel()
    path = Path(name_or_path)
    if name != "shipped" and not path.is_file():
        raise ModelError(
            f"'{name}' is neither a file nor one of shipped, llvm-mca and bound; 'nestor costmodel"
            " train' writes one."
        )
    if name != "shipped" and (description := _description(path)) is not None:
        return _restore(path, description)
    return model_file.load(name_or_path, machine)


def open_model_for(name_or_path: str | Path, machine: str | None, here: str) -> CostModel:
    """Return what :func:`open_model` does, for the machine ``here`` where none is named.

    :param here: is meant if the file has a model of it; else it is the file's first.
    :raises ModelError: as :func:`open_model` does.
    """
    found = open_model(name_or_path, machine)
    if machine is not None or not isinstance(found, OwnModel):
        return found
    has_it = found.machine != here and here in model_file.machines(name_or_path)
    return open_model(name_or_path, here) if has_it else found


@dataclass(frozen=True)
class Target:
    """What a model predicts; empty where it does not say."""

    machine: str
    """The processor."""
    method: str
    """How the labels were measured that it learned from."""


def target_of(model: CostModel) -> Target:
    """Return which labels a model predicts."""
    if isinstance(model, OwnModel):
        return Target(model.machine, model.method)
    return Target(model.cpu if isinstance(model, McaModel) else "", "")


def save_model(model: CostModel, path: Path) -> None:
    """Write the file of a model that :func:`nestor.cost.trainers.train` returned.

    :raises ModelError: if it cannot be written; a file that was there stays as it was.
    """
    if isinstance(model, OwnModel):
        model_file.save(model, path)
    else:
        save_baseline(model, path)


def save_baseline(model: Any, path: Path) -> None:
    """Write a baseline's file.

    :raises ModelError: if it cannot be written; a file that was there stays as it was.
    """
    arrays, description = model.contents()
    content = {"kind": model.kind} | description
    data = save_arrays(
        {name: np.ascontiguousarray(array) for name, array in arrays.items()},
        metadata={_KEY: json.dumps(content)},
    )
    try:
        write_atomically(path, data)
    except OSError as error:
        raise ModelError(
            f"'{path}' cannot be written ({error.strerror}); choose another place."
        ) from None


def _description(path: Path) -> dict[str, Any] | None:
    """Return what the file says of a baseline; None if it is of another kind or broken."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > _LARGEST_HEADER:
                return None
            found = json.loads(json.loads(file.read(size))["__metadata__"][_KEY])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _restore(path: Path, description: dict[str, Any]) -> CostModel:
    try:
        arrays: dict[str, NDArray[Any]] = load_arrays(
            read_regular(path, "a cost model", limit=_LARGEST_BASELINE)
        )
        kind = description.get("kind")
        if kind == "llvm-mca":
            return McaModel.restore(arrays, description)
        if kind == "bound":
            return BoundModel.restore(arrays, description)
        if kind in ("lstm", "granite"):
            from nestor.cost.baselines import network  # PyTorch takes seconds to import

            return network.restore(kind, arrays, description)
        raise ModelError(f"it is of the unknown kind {str(kind)[:40]!r}")
    except (
        OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError, ModelError
    ) as error:  # fmt: skip
        raise ModelError(
            f"'{path}' is not a model that can be used ({error}); train it again."
        ) from None
