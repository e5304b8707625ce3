"""Trials: what searches tried, as rows that a model of gains can learn from.

One row is one question of a move that was tried alone in its reach (``tune.search``). Its *gain* is
how much smaller the program's score is if the question is not answered as the default does; a move
of several questions divides its change among them.
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

from nestor.build.incremental import ProgramBuild
from nestor.errors import NestorError
from nestor.files import ReadError, read_regular, write_atomically
from nestor.tune.moves import Evidence, features
from nestor.tune.steps.findings import Trial

F64 = npt.NDArray[np.float64]

_LARGEST = 1 << 30
"""Bytes of a file of trials, at most."""
_LARGEST_GROUP = 60
"""Questions; what a move of more did says little about each."""


class TrialsError(NestorError):
    """A file that holds no trials."""


@dataclass(frozen=True)
class Trials:
    """Rows from searches of programs."""

    features: tuple[str, ...]
    programs: tuple[str, ...]
    score: F64
    """Each program's score where its search began, ``[programs]``."""
    x: F64
    """``[rows, features]``, as the compiler computed them."""
    gain: F64
    """What leaving the default saves of the score, ``[rows, modes]``."""
    modes: tuple[str, ...]
    """The modes of the build."""
    sharing: F64
    """How many questions shared the change, ``[rows]``."""
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
            raise TrialsError(
                f"The trials lack the features {', '.join(missing)}: leave them out of --features,"
                " or take another --trials."
            )
        return self.x[:, [self.features.index(name) for name in names]]


class Recorder:
    """Gathers the trials of one program's search; :meth:`observe` is a search's observer."""

    def __init__(self, program: str, score: float):
        """Prepare for the program of this name; ``score`` is its score where the search begins."""
        self._program = program
        self._score = np.array([score])
        self._features: tuple[str, ...] = ()
        self._modes: tuple[str, ...] = ()
        self._parts: list[tuple[F64, F64, F64, F64]] = []

    def __len__(self) -> int:
        """How many rows there are."""
        return sum(len(gain) for _, gain, _, _ in self._parts)

    def observe(self, build: ProgramBuild, evidence: Evidence, trials: Sequence[Trial]) -> None:
        """Add what ``trials`` found, with the features of ``build``."""
        alike = [t for t in trials if len(t.move.overrides) == 1]
        useful = [t for t in alike if len(t.move.questions) <= _LARGEST_GROUP]
        if not useful:
            return
        self._features = next(iter(build.trajectories.values())).features
        self._modes = tuple(build.columns)
        rows = [(question, t) for t in useful for question in t.move.questions]
        saved = np.array([[-t.change[mode] for mode in self._modes] for _, t in rows], float)
        sharing = np.array([float(len(t.move.questions)) for _, t in rows])
        leaves = np.array([t.move.answer != question.default for question, t in rows])
        self._parts.append(
            (
                features(build.trajectories, [question for question, _ in rows], self._features),
                np.where(leaves, 1.0, -1.0)[:, None] * saved / sharing[:, None],
                sharing,
                np.array([float(question.default) for question, _ in rows]),
            )
        )

    def trials(self) -> Trials:
        """Return everything so far; no rows if nothing was tried."""
        if not self._parts:
            none = np.empty(0)
            return Trials(
                (), (self._program,), self._score, np.empty((0, 0)), np.empty((0, 0)), (), none,
                none, np.empty(0, np.int64),
            )  # fmt: skip
        x, gain, sharing, default = (
            np.concatenate(part) for part in zip(*self._parts, strict=True)
        )
        program = np.zeros(len(gain), dtype=np.int64)
        return Trials(
            self._features,
            (self._program,),
            self._score,
            x,
            gain,
            self._modes,
            sharing,
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
        raise TrialsError("The trials differ in their features or modes: search again.")
    offsets = np.cumsum([0, *(len(part.programs) for part in parts)])
    return Trials(
        features=parts[0].features,
        programs=tuple(name for part in parts for name in part.programs),
        score=np.concatenate([part.score for part in parts]),
        x=np.concatenate([part.x for part in parts]),
        gain=np.concatenate([part.gain for part in parts]),
        modes=parts[0].modes,
        sharing=np.concatenate([part.sharing for part in parts]),
        default=np.concatenate([part.default for part in parts]),
        program=np.concatenate(
            [part.program + offset for part, offset in zip(parts, offsets, strict=False)]
        ),
    )


def write(trials: Trials, path: Path) -> None:
    """Write ``trials`` to ``path``, whole or not at all."""
    tensors: dict[str, npt.NDArray[Any]] = {
        "score": trials.score,
        "x": trials.x.astype(np.float32),
        "gain": trials.gain,
        "sharing": trials.sharing,
        "default": trials.default,
        "program": trials.program,
    }
    text = {
        "features": trials.features,
        "programs": trials.programs,
        "modes": trials.modes,
    }
    write_atomically(path, save(tensors, metadata={"trials": json.dumps(text)}))


def read(path: Path) -> Trials | None:
    """Read trials; None if there is no such file.

    :raises TrialsError: if the file is broken.
    """
    try:
        data = read_regular(path, "trials", limit=_LARGEST)
    except ReadError as error:
        if error.absent:
            return None
        raise TrialsError(str(error)) from None
    try:
        size = int.from_bytes(data[:8], "little")
        text = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["trials"])
        tensors = load(data)
        return Trials(
            features=tuple(map(str, text["features"])),
            programs=tuple(map(str, text["programs"])),
            score=tensors["score"],
            x=tensors["x"].astype(np.float64),
            gain=tensors["gain"],
            modes=tuple(text["modes"]),
            sharing=tensors["sharing"],
            default=tensors["default"],
            program=tensors["program"],
        )
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise TrialsError(f"{path} holds no trials ({error}): remove it.") from None
