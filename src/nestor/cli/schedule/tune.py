"""``nestor schedule tune``: search for the fastest choice."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from nestor.cli.console import print_json, print_line, progress, stdout
from nestor.cli.options import OutputFile, refuse_idle
from nestor.cli.remarks import remark
from nestor.cli.schedule.common import (
    database_at,
    open_library,
    schedule_for,
    shared_among,
    written,
)
from nestor.errors import NestorError
from nestor.schedules.tune.tuning import TuneSettings

if TYPE_CHECKING:
    from nestor.schedules.tune.tuning import Tuned


@dataclass(frozen=True)
class Tune:
    """Search for the choice by which a payload runs fastest, and write the schedule with it.

    Every evaluation lowers, compiles, verifies against numpy and times in processes with limits.
    What fails is a result and is counted. All results stay in a database, from which the search
    'learned' draws what it knows of other payloads; results of another LLVM are measured again.
    The same command goes on where it was interrupted.

    Examples:
        nestor schedule tune matmul.mlir --out matmul-schedule.mlir
        nestor schedule tune matmul.mlir --out tuned.mlir --search evolution --evaluations 100
        nestor schedule tune matmul.mlir --out tuned.mlir --policy kernels.safetensors
    """

    payload: tyro.conf.Positional[Path]
    """The payload."""
    out: OutputFile
    """Where to write the schedule with all decisions taken, as plain MLIR."""
    schedule: str | None = None
    """The schedule (default: the packaged one for such a payload)."""
    library: tuple[Path, ...] = ()
    """Files or folders with schedules of your own."""
    settings: tyro.conf.OmitArgPrefixes[TuneSettings] = field(default_factory=TuneSettings)
    """How to search."""
    policy: Path | None = None
    """The policy that 'learned' starts from (default: one trained on the database if that has
    results of 24 other payloads, else the packaged one)."""
    database: Path | None = None
    """The file of results (default: schedules.sqlite in the cache)."""
    rounds: int = 7
    """Repeats by which each choice is timed."""
    function: str | None = None
    """The function to tune, if the payload has several."""
    core: int | None = None
    """The processor to pin runs to."""
    threads: int = 1
    """Threads of the kernel; with more than one the outer loop is shared among them (OpenMP)."""
    target: str = "host"
    """The instruction set: host, or one that this machine has too: avx512, avx2, sse2."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Search, write and print; errors are raised."""
        from nestor.files import write_atomically
        from nestor.policy import bundle
        from nestor.schedules.kernel.evaluate import Task
        from nestor.schedules.kernel.measure import Settings
        from nestor.schedules.language.linking import decisions_of
        from nestor.schedules.payload.reading import read_payload
        from nestor.schedules.target import find_own_target
        from nestor.schedules.tools import find_tools
        from nestor.schedules.tune.tuning import resolved, tune

        if self.settings.evaluations < 1 or self.settings.finalists < 0 or self.rounds < 1:
            raise NestorError("--evaluations and --rounds are 1 or more, --finalists 0 or more.")
        if self.settings.search != "learned":
            refuse_idle(self, f"with the search {self.settings.search}", "policy")
        database = database_at(self.database)
        tools = find_tools(self.llvm)
        library = open_library(self.library)
        payload = read_payload(self.payload, tools, function=self.function)
        schedule = schedule_for(payload, library, self.schedule)
        task = Task(
            payload, library, schedule, find_own_target(self.target), tools,
            Settings(self.rounds, core=self.core, numpy=False, threads=self.threads),
            fixed=shared_among(self.threads, decisions_of(library, schedule)),
        )  # fmt: skip
        policy = bundle.load(self.policy) if self.policy else None
        with progress() as report:
            tuned = tune(task, self.settings, database, policy, report)
        write_atomically(self.out, resolved(task, tuned.best))
        if tuned.stale:
            remark(f"{tuned.stale} results of another LLVM or schedule do not count")
        if self.json:
            print_json(
                {
                    "function": payload.name,
                    "schedule": schedule,
                    "settings": asdict(self.settings),
                    "llvm": tools.version,
                    "target": task.target.describe(),
                    "best": asdict(tuned.best),
                    "first": asdict(tuned.first),
                    "history": [asdict(e) for e in tuned.history],
                    "reused": tuned.reused,
                    "stale": tuned.stale,
                    "failures": tuned.failures,
                    "out": str(self.out),
                }
            )
        else:
            _show(tuned, schedule, self.out)
        return 0


def _show(tuned: "Tuned", schedule: str, out: Path) -> None:
    micro = {
        name: "failed" if e.least is None else f"{e.least * 1e6:,.1f} µs"
        for name, e in (("first", tuned.first), ("best", tuned.best))
    }
    stdout.print(f"first guess  {micro['first']}")
    best: dict[str, Any] = dict(tuned.best.choice)
    stdout.print(f"best         {micro['best']}  {schedule} {written(best)}", soft_wrap=True)
    stdout.print(
        f"{len(tuned.history)} evaluations, {tuned.reused} of them from the database,"
        f" {tuned.failures} without a right kernel"
    )
    for reason in dict.fromkeys(e.reason for e in tuned.history if e.reason):
        print_line(f"  {reason}")
    print_line(f"written to {out}")
