"""``nestor schedule replay``: run a payload under a schedule that tuning wrote."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import print_json
from nestor.cli.remarks import remark
from nestor.cli.schedule.run import show


@dataclass(frozen=True)
class Replay:
    """Compile a payload by a schedule without open decisions, verify it, and time it.

    No tuner and no library is needed: the file is plain MLIR, and mlir-opt applies it as well.

    Examples:
        nestor schedule replay matmul.mlir matmul-schedule.mlir
        nestor schedule replay matmul.mlir matmul-schedule.mlir --rounds 0 --json
    """

    payload: tyro.conf.Positional[Path]
    """The payload."""
    schedule: tyro.conf.Positional[Path]
    """The schedule, as tuning or ``apply --resolved`` wrote it."""
    function: str | None = None
    """The function to lower, if the payload has several."""
    rounds: int = 15
    """Repeats of each call; 0 verifies only."""
    seed: int = 0
    """Of the inputs."""
    core: int | None = None
    """The processor to pin the run to."""
    threads: int = 1
    """Threads of the kernel, where the schedule shares a loop among threads."""
    target: str = "host"
    """The instruction set: host, or one that this machine has too: avx512, avx2, sse2."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Compile, verify, time and print; 1 if the result is wrong."""
        from nestor.schedules.compiling import read_resolved, tuned_for
        from nestor.schedules.kernel.measure import Settings
        from nestor.schedules.kernel.running import run_once
        from nestor.schedules.payload.reading import read_payload
        from nestor.schedules.target import find_own_target
        from nestor.schedules.tools import find_tools

        tools = find_tools(self.llvm)
        settings = Settings(
            self.rounds, self.seed, self.core, numpy=self.rounds > 0, threads=self.threads
        )
        payload = read_payload(self.payload, tools, function=self.function)
        schedule = read_resolved(self.schedule)
        if tuned_for(schedule) not in (None, payload.digest):
            remark(f"{self.schedule} was tuned for another payload: it may be slow for this one")
        result = run_once(payload, schedule, find_own_target(self.target), tools, settings)
        if result["threads"] < self.threads:
            remark(f"{self.schedule} shares no loop among threads: the kernel runs on one")
        result = {"schedule": str(self.schedule), "choice": {}} | result
        if self.json:
            print_json(result)
        else:
            show(result)
        return 0 if result["verdict"]["correct"] else 1
