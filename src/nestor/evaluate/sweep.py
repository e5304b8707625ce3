"""How long a corpus takes to compile stock: every module once, several at a time."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nestor.compiler.invocation import compile_command
from nestor.compiler.process import Outcome, run
from nestor.corpus.model import Module
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder


@dataclass(frozen=True)
class Sweep:
    """What one compilation of every module cost."""

    modules: int
    jobs: int
    failures: tuple[tuple[str, str], ...]
    """Module and reason."""
    cpu_seconds: float
    wall_seconds: float
    peak_mib: float
    """Of the compiler that used most."""
    slowest: tuple[tuple[str, float], ...]
    """The modules that took most CPU seconds."""

    @property
    def modules_per_second(self) -> float:
        """Throughput in wall-clock time."""
        return self.modules / self.wall_seconds if self.wall_seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return asdict(self) | {"modules_per_second": self.modules_per_second}


def sweep(pool: Pool, modules: tuple[Module, ...], progress: Progress = silent) -> Sweep:
    """Compile ``modules`` with the stock compiler, without the cache, and time it."""
    start = time.monotonic()
    outcomes = pool.map(lambda module: _compile(pool, module), modules, progress, "Compiling")
    wall = time.monotonic() - start
    costs = sorted(
        ((m.name, o.cpu_seconds) for m, o in zip(modules, outcomes, strict=True)),
        key=lambda item: (-item[1], item[0]),
    )
    return Sweep(
        modules=len(modules),
        jobs=pool.jobs,
        failures=tuple(
            (m.name, o.reason) for m, o in zip(modules, outcomes, strict=True) if not o.ok
        ),
        cpu_seconds=sum(o.cpu_seconds for o in outcomes),
        wall_seconds=wall,
        peak_mib=max((o.peak_mib for o in outcomes), default=0.0),
        slowest=tuple(costs[:5]),
    )


def _compile(pool: Pool, module: Module) -> Outcome:
    with temporary_folder("sweep") as folder:
        command = compile_command(
            pool.plugin.toolchain, module.options, pool.corpus.bitcode(module), Path(folder) / "o"
        )
        return run(command, pool.limits)
