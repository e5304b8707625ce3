"""Verify and time kernels in a process of their own, within limits."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from nestor.compiler.process import Ending, Limits
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.processor import measuring_core
from nestor.schedules.language.text import ScheduleError
from nestor.schedules.payload.reading import Payload
from nestor.schedules.payload.reference import as_generics
from nestor.schedules.tools import Tools, run_limited
from nestor.temporary import temporary_folder

RUN_LIMITS: Final = Limits(seconds=60.0, memory_mib=8192)
"""What verifying and timing may use unless the caller says otherwise."""

_SOURCES: Final = Path(__file__).resolve().parents[3]
_START: Final = (
    # Threads are set before numpy is imported.
    "import os, sys; os.environ.update(dict.fromkeys("
    "('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'), sys.argv[2]),"
    # Threads of OpenBLAS that wait must not take the processors of the kernel's.
    " OPENBLAS_THREAD_TIMEOUT='16');"
    " sys.path.insert(0, sys.argv[1]);"
    " from nestor.schedules.kernel.worker import main; main(*sys.argv[3:])"
)
_REASONS: Final = {
    Ending.CRASHED: "the kernel crashes",
    Ending.TIMEOUT: "the kernel does not end within its limit",
    Ending.MEMORY: "the kernel needs more memory than its limit",
}


class RunError(ScheduleError):
    """Kernels could not be run to their end."""


@dataclass(frozen=True)
class Settings:
    """How kernels are timed."""

    rounds: int = 15
    """Repeats of each; 0: verify only."""
    seed: int = 0
    """Of the inputs."""
    core: int | None = None
    """The processor to pin the run to."""
    numpy: bool = True
    """Time numpy too."""
    threads: int = 1
    """Threads of the kernel, and of numpy."""

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        :raises NestorError: with the option's name.
        """
        least = {"rounds": 0, "seed": 0, "threads": 1}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise NestorError(f"--{name} is {bound} or more, not {getattr(self, name)}.")
        measuring_core(self.core)


@dataclass(frozen=True)
class Timing:
    """Seconds of one call."""

    rounds: tuple[float, ...]

    @property
    def least(self) -> float:
        """The shortest."""
        return min(self.rounds)

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.rounds)


@dataclass(frozen=True)
class Measured:
    """What became of some kernels."""

    verdicts: Mapping[str, Mapping[str, Any]]
    """By name: ``correct``, ``worst``, ``allowed``, ``reason``."""
    timings: Mapping[str, Timing] = field(default_factory=dict)
    """By name, of those that are correct, and of ``numpy``."""
    numpy: str = ""
    """numpy's version and BLAS."""


def measure(
    kernels: Mapping[str, Path],
    payload: Payload,
    tools: Tools,
    settings: Settings,
    limits: Limits = RUN_LIMITS,
    generics: str | None = None,
) -> Measured:
    """Verify kernels on fresh inputs, and time those that are right in turn.

    :param kernels: shared objects by name.
    :param generics: the payload for numpy, if it is at hand (``as_generics``).
    :raises RunError: if the process that runs them crashes or exceeds its limits.
    """
    with temporary_folder("run") as name:
        request, result = Path(name) / "request.json", Path(name) / "result.json"
        content = {
            "generics": generics or as_generics(payload, tools),
            "arguments": [str(kind) for kind in payload.arguments],
            "results": [str(kind) for kind in payload.results],
            "function": payload.name,
            "kernels": {name: str(path) for name, path in kernels.items()},
            "rounds": settings.rounds,
            "seed": settings.seed,
            "core": settings.core,
            "numpy": settings.numpy,
        }
        write_atomically(request, json.dumps(content))
        words: list[str | Path] = [_SOURCES, str(settings.threads), request, result]
        outcome = run_limited([sys.executable, "-c", _START, *words], limits)
        if not outcome.ok or not result.exists():
            raise RunError(_REASONS.get(outcome.ending, _last_line(outcome.stderr)) + ".")
        found = json.loads(result.read_text())
    return Measured(
        verdicts=found["verdicts"],
        timings={name: Timing(tuple(rounds)) for name, rounds in found["seconds"].items()},
        numpy=found["numpy"],
    )


def _last_line(stderr: str) -> str:
    """Return the message of the error that ended a Python process."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    last = (lines or ["the process that runs the kernel ends without a result"])[-1].rstrip(".")
    # Python writes the class in front: 'nestor.errors.NestorError: what is wrong'.
    return re.sub(r"^nestor\.[\w.]+: ", "", last)
