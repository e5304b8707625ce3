"""Trials: what searches tried, as rows that a model of gains can learn from.

One row is one call site at which a move was tried alone in its reach (``tune.search``). Its
*gain* is what leaving the default there saves in linked bytes; a move of several sites divides
its bytes among them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.tune.build import Build
from nestor.tune.moves import features
from nestor.tune.search import Trial

F64 = npt.NDArray[np.float64]

_LARGEST_GROUP = 60
"""Sites; what a move of more did says little about each."""


class TrialsError(NestorError):
    """A file that holds no trials."""


@dataclass(frozen=True)
class Trials:
    """Rows from searches of programs."""

    features: tuple[str, ...]
    programs: tuple[str, ...]
    bytes: F64
    """Linked bytes where each program's search began, ``[programs]``."""
    x: F64
    """``[rows, features]``, as the compiler gave them."""
    gain: F64
    """Linked bytes saved by leaving the default, ``[rows, modes]``."""
    modes: tuple[LinkMode, ...]
    sites: F64
    """How many sites shared the bytes, ``[rows]``."""
    default: F64
    """The default heuristic's answer, ``[rows]``, 0 or 1."""
    program: npt.NDArray[np.int64]
    """Index into ``programs``, ``[rows]``."""

    def __len__(self) -> int:
        return len(self.gain)

    def projects(self) -> npt.NDArray[np.int64]:
        """Return a number per row that is the same for programs of one project."""
        return self.projects_of_programs()[self.program]

    def projects_of_programs(self) -> npt.NDArray[np.int64]:
        """Return the number of each program's project."""
        names = [program.split("/", 1)[0] for program in self.programs]
        order = sorted(set(names))
        return np.array([order.index(name) for name in names], dtype=np.int64)

    def columns(self, names: Sequence[str]) -> F64:
        """Return the features ``names``, ``[rows, names]``.

        :raises TrialsError: if one was not recorded.
        """
        missing = [name for name in names if name not in self.features]
        if missing:
            raise TrialsError(f"The trials lack the features {', '.join(missing)}.")
        return self.x[:, [self.features.index(name) for name in names]]


class Recorder:
    """Gathers the trials of one program's search; :meth:`observe` is a search's observer."""

    def __init__(self, program: str, size: float):
        """Prepare for the program of this name, of ``size`` linked bytes."""
        self._program = program
        self._size = np.array([size])
        self._features: tuple[str, ...] = ()
        self._modes: tuple[LinkMode, ...] = ()
        self._parts: list[tuple[F64, F64, F64, F64]] = []

    def __len__(self) -> int:
        """How many rows there are."""
        return sum(len(gain) for _, gain, _, _ in self._parts)

    def observe(self, build: Build, trials: Sequence[Trial]) -> None:
        """Take note of what ``trials`` found, with the features of ``build``."""
        useful = [t for t in trials if len(t.move.sites) <= _LARGEST_GROUP]
        if not useful:
            return
        self._features = next(iter(build.trajectories.values())).features
        self._modes = tuple(build.sizes)
        rows = [(site, t) for t in useful for site in t.move.sites]
        saved = np.array([[-t.bytes[mode] for mode in self._modes] for _, t in rows], float)
        sites = np.array([float(len(t.move.sites)) for _, t in rows])
        leaves = np.array([t.move.answer != site.default for site, t in rows])
        self._parts.append(
            (
                features(build.trajectories, [site for site, _ in rows], self._features),
                np.where(leaves, 1.0, -1.0)[:, None] * saved / sites[:, None],
                sites,
                np.array([float(site.default) for site, _ in rows]),
            )
        )

    def trials(self) -> Trials:
        """Return everything so far; no rows if nothing was tried."""
        if not self._parts:
            none = np.empty(0)
            return Trials(
                (), (self._program,), self._size, np.empty((0, 0)), np.empty((0, 0)), (), none,
                none, np.empty(0, np.int64),
            )  # fmt: skip
        x, gain, sites, default = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        program = np.zeros(len(gain), dtype=np.int64)
        return Trials(
            self._features,
            (self._program,),
            self._size,
            x,
            gain,
            self._modes,
            sites,
            default,
            program,
        )


def join(parts: Iterable[Trials]) -> Trials:
    """Return all rows of ``parts`` in order; parts without rows are left out.

    :raises TrialsError: if there are none, or their features differ.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        raise TrialsError("There are no trials to learn from: no search tried anything.")
    if len({(part.features, part.modes) for part in parts}) > 1:
        raise TrialsError("The trials differ in their features or link modes: search again.")
    offsets = np.cumsum([0, *(len(part.programs) for part in parts)])
    return Trials(
        features=parts[0].features,
        programs=tuple(name for part in parts for name in part.programs),
        bytes=np.concatenate([part.bytes for part in parts]),
        x=np.concatenate([part.x for part in parts]),
        gain=np.concatenate([part.gain for part in parts]),
        modes=parts[0].modes,
        sites=np.concatenate([part.sites for part in parts]),
        default=np.concatenate([part.default for part in parts]),
        program=np.concatenate(
            [part.program + offset for part, offset in zip(parts, offsets, strict=False)]
        ),
    )


def write(trials: Trials, path: Path) -> None:
    """Write ``trials`` to ``path`` at once."""
    tensors: dict[str, npt.NDArray[Any]] = {
        "bytes": trials.bytes,
        "x": trials.x.astype(np.float32),
        "gain": trials.gain,
        "sites": trials.sites,
        "default": trials.default,
        "program": trials.program,
    }
    text = {
        "features": trials.features,
        "programs": trials.programs,
        "modes": trials.modes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(save(tensors, metadata={"trials": json.dumps(text)}))
    partial.replace(path)


def read(path: Path) -> Trials | None:
    """Read trials; None if there is no such file.

    :raises TrialsError: if the file is broken.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        size = int.from_bytes(data[:8], "little")
        text = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["trials"])
        tensors = load(data)
        return Trials(
            features=tuple(map(str, text["features"])),
            programs=tuple(map(str, text["programs"])),
            bytes=tensors["bytes"],
            x=tensors["x"].astype(np.float64),
            gain=tensors["gain"],
            modes=tuple(text["modes"]),
            sites=tensors["sites"],
            default=tensors["default"],
            program=tensors["program"],
        )
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise TrialsError(f"{path} holds no trials ({error}): remove it.") from None
