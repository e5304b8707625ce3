"""Files of our own models: of one, or of several, each for its own machines.

Where several models of a file are for the same machine, its answers are their mean
(:mod:`nestor.cost.model.mean`).
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from nestor.cost.contract import ModelError
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.mean import MeanModel, OwnModel
from nestor.cost.model.model_content import (
    FORMAT,
    content_of,
    header_of,
    parts_of,
    typed,
    with_header,
)
from nestor.files import ReadError, read_regular, write_atomically

SHIPPED: Final = Path(__file__).parents[1] / "data" / "shipped.safetensors"
"""The model that comes with the package."""

Content = TypeVar("Content")

_KIND_OF_SEVERAL: Final = "nestor cost models"
"""A file that holds the files of several models as they are."""
_MOST_BYTES: Final = 64 << 20
_DAMAGED: Final = (
    SafetensorError, KeyError, ValueError, TypeError, IndexError, OverflowError, AttributeError,
    RecursionError,
)  # fmt: skip
"""What reading a damaged file may raise."""


def load(name_or_path: str | Path, machine: str | None = None) -> OwnModel:
    """Return ``shipped``, or the model in a file.

    :param machine: the machine to predict for, by its name in the training table; the file's
        first if None.
    :raises ModelError: if there is no such file, it is damaged, or it has no such machine.
    """
    models = load_models(name_or_path, machine)
    return models[0] if len(models) == 1 else MeanModel(models)


def load_models(name_or_path: str | Path, machine: str | None = None) -> tuple[HybridModel, ...]:
    """Return the models whose mean :func:`load` returns; mostly it is one.

    :raises ModelError: as :func:`load` does.
    """
    path = _path(name_or_path)
    data = _bytes_of(path)
    return _of_version(
        path,
        lambda: tuple(HybridModel(parts_of(own), machine) for own in _for_machine(data, machine)),
    )


def machines(name_or_path: str | Path) -> tuple[str, ...]:
    """Return the machines that ``shipped``, or the models in a file, predict for, the first first.

    :raises ModelError: if there is no such file, or it is damaged.
    """
    path = _path(name_or_path)
    return _named(name for data in _single_files(_bytes_of(path)) for name in _names(path, data))


def save(model: OwnModel, path: Path) -> None:
    """Write ``model`` at once or not at all; the bytes depend on the model alone.

    :raises ModelError: if the file cannot be written.
    """
    if isinstance(model, HybridModel):
        _write(content_of(model.parts), path)
    else:
        _write(_content_of_several([content_of(one.parts) for one in model.models], path), path)


def join(paths: Sequence[Path], out: Path) -> tuple[str, ...]:
    """Write one file of the models in ``paths``, each for its own machines; return their names.

    The first machine of the first model is the one that is used if none is named.

    :raises ModelError: if a file is no such model, two files have one machine, or it cannot be
        written.
    """
    found: list[bytes] = []
    names: list[str] = []
    for path in map(_path, paths):
        own = _single_files(_bytes_of(path))
        machines_here = _named(name for data in own for name in _names(path, data))
        if taken := set(names) & set(machines_here):
            raise ModelError(
                f"Two of the models are for '{min(taken)}'; name one model for each machine."
            )
        names += machines_here
        found += own
    _write(_content_of_several(found, out), out)
    return tuple(names)


def _content_of_several(files: Sequence[bytes], path: Path) -> bytes:
    tensors: dict[str, NDArray[Any]] = {
        f"model{number}": np.frombuffer(data, dtype=np.uint8) for number, data in enumerate(files)
    }
    of_each = [_names(path, data) for data in files]
    return with_header(tensors, {"kind": _KIND_OF_SEVERAL, "format": FORMAT, "machines": of_each})


def _write(data: bytes, path: Path) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        raise ModelError(f"Cannot write '{path}': {error.strerror}.") from error


def _path(name_or_path: str | Path) -> Path:
    return SHIPPED if str(name_or_path) == "shipped" else Path(name_or_path)


def _names(path: Path, data: bytes) -> list[str]:
    return [part.name for part in _of_version(path, lambda: parts_of(data)).machines]


def _named(names: Iterable[str]) -> tuple[str, ...]:
    """Return each of ``names`` once."""
    return tuple(dict.fromkeys(names))


def _single_files(data: bytes) -> list[bytes]:
    """Return the files of single models in a file, which may be one itself."""
    try:
        if header_of(data)["kind"] != _KIND_OF_SEVERAL:
            return [data]
        tensors = load_tensors(data)
        names = [f"model{number}" for number in range(len(tensors))]
        return [typed(tensors, name, np.uint8, 1).tobytes() for name in names]
    except _DAMAGED:
        return [data]


def _for_machine(data: bytes, machine: str | None) -> list[bytes]:
    """Return the single models in a file that predict for ``machine``; its first if None."""
    header = header_of(data)
    if header["kind"] != _KIND_OF_SEVERAL:
        return [data]
    names = [[str(name) for name in own] for own in header["machines"]]
    wanted = names[0][0] if machine is None else machine
    tensors = load_tensors(data)
    found = [
        typed(tensors, f"model{number}", np.uint8, 1).tobytes()
        for number, own in enumerate(names)
        if wanted in own
    ]
    if not found:
        every = ", ".join(_named(name for own in names for name in own))
        raise ModelError(f"The model has no machine '{machine}'; name one of: {every}.")
    return found


def _bytes_of(path: Path) -> bytes:
    try:
        return read_regular(path, "a cost model", limit=_MOST_BYTES)
    except ReadError as error:
        raise ModelError(str(error)) from None


def _of_version(path: Path, make: Callable[[], Content]) -> Content:
    """Return what ``make`` makes of a file.

    :raises ModelError: if the file is of another kind or damaged.
    """
    try:
        return make()
    except _DAMAGED as error:
        raise ModelError(
            f"'{path}' is not a cost model of this version, or is damaged; train it again."
        ) from error
