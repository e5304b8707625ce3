"""``nestor schedule run``: compile a payload, verify it, and time it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.box import SIMPLE
from rich.table import Table

from nestor.cli.console import print_json, print_line, stdout
from nestor.cli.remarks import remark
from nestor.cli.schedule.common import open_payload, written


@dataclass(frozen=True)
class Run:
    """Compile a payload by a schedule, verify it against numpy on fresh inputs, then time it.

    The kernel runs in a process of its own, within limits. It is timed beside numpy in turns. A
    wrong result is an error and is not timed.

    Examples:
        nestor schedule run matmul.mlir
        nestor schedule run matmul.mlir --choice reg_m=8 tile_k=256 --rounds 30
        nestor schedule run matmul.mlir --target avx2 --json
    """

    payload: tyro.conf.Positional[Path]
    """The payload."""
    schedule: str | None = None
    """The schedule (default: the packaged one for such a payload)."""
    library: tuple[Path, ...] = ()
    """Files or folders with schedules of your own."""
    choice: tuple[str, ...] = ()
    """Answers to decisions, such as tile_m=64."""
    function: str | None = None
    """The function to lower, if the payload has several."""
    rounds: int = 15
    """Repeats of each call; 0 verifies only."""
    seed: int = 0
    """Of the inputs."""
    core: int | None = None
    """The processor to pin the run to."""
    threads: int = 1
    """Threads of the kernel; with more than one the outer loop is shared among them (OpenMP)."""
    target: str = "host"
    """The instruction set: host, or one that this machine has too: avx512, avx2, sse2."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Compile, verify, time and print; 1 if the result is wrong."""
        from nestor.schedules.kernel.measure import Settings
        from nestor.schedules.kernel.running import run_once
        from nestor.schedules.language.linking import link

        settings = Settings(
            self.rounds, self.seed, self.core, numpy=self.rounds > 0, threads=self.threads
        )
        opened = open_payload(
            self.payload, self.function, self.library, self.schedule, self.choice, self.target,
            self.llvm, runs=True, threads=self.threads,
        )  # fmt: skip
        linked = link(opened.library, opened.schedule, opened.choice)
        result: dict[str, Any] = {"schedule": opened.schedule, "choice": opened.choice}
        result |= run_once(opened.payload, linked, opened.target, opened.tools, settings)
        if result["threads"] < self.threads:
            remark("the outer loop has one tile under this choice: the kernel runs on one thread")
        if self.json:
            print_json(result)
        else:
            show(result)
        return 0 if result["verdict"]["correct"] else 1


def show(result: dict[str, Any]) -> None:
    """Print what a run came to."""
    verdict = result["verdict"]
    print_line(f"{result['function']}: {result['schedule']} {written(result['choice'])}")
    if not verdict["correct"]:
        stdout.print(f"[red]wrong[/]: {verdict['reason']}; not timed", soft_wrap=True)
        return
    stdout.print(
        f"[green]right[/]: off by at most {verdict['worst']:.1e} of the largest value"
        f" (allowed {verdict['allowed']:.1e})"
    )
    if result["seconds"]:
        table = Table("", "min, µs", "median, µs", "Gop/s at min", box=SIMPLE)
        for name, seconds in result["seconds"].items():
            label = result["numpy"] if name == "numpy" else name
            speed = result["operations"] / seconds["min"] / 1e9
            table.add_row(
                label, f"{seconds['min'] * 1e6:,.1f}", f"{seconds['median'] * 1e6:,.1f}",
                f"{speed:,.1f}",
            )  # fmt: skip
        stdout.print(table)
