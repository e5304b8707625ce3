"""Keep a learner's state on disk, so that a run that was killed goes on where it was.

A state is a (possibly nested) frozen dataclass of arrays and numbers; it becomes one safetensors
file that is replaced atomically. The file carries a digest of everything the run depends on, so
that a run is never resumed with other settings, another corpus or another compiler.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from nestor.errors import NestorError
from nestor.files import ReadError, read_regular, write_atomically

State = TypeVar("State")

_LARGEST = 8 << 30
"""Bytes of a checkpoint, at most: a replay memory takes most of one."""


class CheckpointError(NestorError):
    """A checkpoint cannot be used or written."""


def save(path: Path, state: Any, run: str) -> None:
    """Write ``state`` to ``path``; the file before it stays whole if this fails.

    :param run: digest of what the run depends on.
    :raises CheckpointError: if there is no room.
    """
    data = save_tensors(_flatten(state), metadata={"run": json.dumps(run)})
    try:
        write_atomically(path, data)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path} could not be written ({error.strerror}); the one before it is"
            " whole: make room and run the same command again."
        ) from None


def load(path: Path, like: State, run: str) -> State | None:
    """Return the state in ``path``, shaped ``like`` the initial one, or None if there is none.

    :raises CheckpointError: if the file is broken or belongs to another run.
    """
    try:
        data = read_regular(path, "a checkpoint", limit=_LARGEST)
    except ReadError as error:
        if error.absent:
            return None
        raise CheckpointError(str(error)) from None
    try:
        size = int.from_bytes(data[:8], "little")
        stored = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["run"])
        tensors = load_tensors(data)
        if stored == run:
            return _unflatten(like, tensors)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"The checkpoint {path} is broken ({error}); delete it to start anew."
        ) from None
    raise CheckpointError(
        f"The checkpoint {path} belongs to a run with other settings, corpus or compiler; take"
        " another --out, or delete it to start anew."
    )


def _flatten(state: Any, prefix: str = "") -> dict[str, np.ndarray[Any, Any]]:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if dataclasses.is_dataclass(value):
            arrays |= _flatten(value, f"{prefix}{field.name}.")
        else:
            arrays[f"{prefix}{field.name}"] = np.ascontiguousarray(value)
    return arrays


def _unflatten(like: State, arrays: dict[str, np.ndarray[Any, Any]], prefix: str = "") -> State:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(like):  # type: ignore[arg-type]
        before = getattr(like, field.name)
        if dataclasses.is_dataclass(before):
            values[field.name] = _unflatten(before, arrays, f"{prefix}{field.name}.")
            continue
        array = arrays[f"{prefix}{field.name}"]
        if isinstance(before, np.ndarray):
            # An array that begins with no elements may have grown.
            fixed = before.size > 0 and array.shape != before.shape
            if fixed or array.dtype != before.dtype:
                raise ValueError(f"'{field.name}' has another shape or type")
            values[field.name] = array
        else:
            values[field.name] = type(before)(array.reshape(()).item())
    return dataclasses.replace(like, **values)  # type: ignore[type-var]
