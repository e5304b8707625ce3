"""``nestor blocks measure``: label blocks with the cycles that they take on this machine."""

import collections
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.console import print_json, progress, stdout
from nestor.cli.options import OutputFile, refuse_idle
from nestor.cost.measure.harness import HarnessSettings
from nestor.errors import NestorError

if TYPE_CHECKING:
    from nestor.cost.measure.backend import Backend
    from nestor.cost.measure.rows import Row
    from nestor.cost.measure.self_test import Agreement, SelfTest


@dataclass(frozen=True)
class Measure:
    """Measure how many cycles basic blocks take on this machine, in the steady state.

    The back end 'rdtsc' needs no performance counters and withstands any block: what faults,
    loops, calls the kernel or writes where it should not becomes a row with its status. OUT is
    a table that 'nestor costmodel' trains on; unstable blocks are marked in it. The same
    command goes on where it was stopped. docs/internals/measuring.md says what is measured, and
    how well.

    Examples:
        nestor blocks measure git.parquet --out git-here.parquet
        nestor blocks measure zen5 --out zen5-here.parquet --limit 5000
        nestor blocks measure git.parquet --out git-here.parquet --again
        nestor blocks measure --self-test
    """

    blocks: tyro.conf.Positional[str] = "zen5"
    """A table with the column block_hex ('nestor blocks extract' makes one), or a data set."""
    out: OutputFile | None = None
    """The parquet file for the labels; blocks that it has are not measured again."""
    self_test: bool = False
    """Measure a sample of the stable blocks twice and compare, also with the table's labels."""
    sample: int = 2000
    """Blocks of the self-test."""
    seed: int = 0
    """Seed of the sample."""
    limit: int | None = None
    """Measure only the first blocks of the table."""
    again: bool = False
    """Measure those blocks again that were unstable or disturbed."""
    backend: Literal["rdtsc", "exegesis"] = "rdtsc"
    """'exegesis' counts cycles by llvm-exegesis where the machine can."""
    passes: int = 3
    """Passes that make a label."""
    attempts: int = 10
    """Passes at most (rdtsc), when others disturb them."""
    harness: tyro.conf.OmitArgPrefixes[HarnessSettings] = field(default_factory=HarnessSettings)
    """How blocks are run."""
    llvm: str | None = None
    """LLVM of the back end 'exegesis': a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Measure, and print what became of the blocks."""
        from nestor.cost.blocks import table
        from nestor.cost.measure.self_test import rounded, self_test
        from nestor.cost.measure.session import measure
        from nestor.processor import this_machine

        if (self.out is None) != self.self_test:
            raise NestorError("Name a file for the labels by --out, or run --self-test.")
        if self.self_test:
            refuse_idle(self, "with --self-test", "again", "limit")
        else:
            refuse_idle(self, "without --self-test", "sample", "seed")
        if self.backend == "rdtsc":
            refuse_idle(self, "with the back end rdtsc", "llvm")
        else:
            refuse_idle(self, "with the back end exegesis", "attempts")
        blocks = table.named(self.blocks)
        machine = this_machine()
        with progress() as report:
            backend = self._backend()
            if self.out is None:
                result = self_test(
                    blocks,
                    backend,
                    machine,
                    sample=self.sample,
                    seed=self.seed,
                    progress=report,
                )
            else:
                wanted = blocks.blocks[: self.limit]
                rows = measure(
                    wanted, backend, machine, self.out, again=self.again, progress=report
                )
        if self.out is None:
            print_json(rounded(result)) if self.json else _show_test(result)
        else:
            content = _summary(rows, machine, self.out)
            print_json(content) if self.json else _show(content)
        return 0

    def _backend(self) -> "Backend":
        from nestor.compiler.toolchain import find
        from nestor.cost.llvm_tools.exegesis import ExegesisSettings, require_counters
        from nestor.cost.measure.exegesis_backend import Exegesis
        from nestor.cost.measure.harness import ensure_harness
        from nestor.cost.measure.rdtsc_backend import Rdtsc

        harness = ensure_harness()
        if self.backend == "rdtsc":
            return Rdtsc(harness, self.harness, self.passes, self.attempts)
        toolchain = find(self.llvm)
        require_counters(toolchain)
        return Exegesis(toolchain, harness, self.passes, ExegesisSettings(core=self.harness.core))


def _summary(rows: "list[Row]", machine: str, out: Path) -> dict[str, Any]:
    statuses = collections.Counter(row.measurement.status for row in rows)
    return {
        "out": str(out),
        "blocks": len(rows),
        "machine": rows[0].machine if rows else machine,
        "backend": rows[0].backend if rows else None,
        "statuses": dict(statuses.most_common()),
    }


def _show(content: dict[str, Any]) -> None:
    grid = Grid("status", "blocks", "share", box=None)
    for status, count in content["statuses"].items():
        grid.add_row(status, f"{count:,}", f"{100 * count / content['blocks']:.1f} %")
    stdout.print(grid)
    stdout.print(
        f"{content['blocks']:,} blocks on {escape(content['machine'])} by {content['backend']}:"
        f" {escape(content['out'])}",
        soft_wrap=True,
    )


def _show_test(result: "SelfTest") -> None:
    grid = Grid("", "blocks", "mean", "median", "95 %", "over 5 %", "ratio", "Kendall", box=None)
    grid.add_row("again, stable blocks", *_cells(result.repeated))
    grid.add_row("again, all blocks", *_cells(result.repeated_all))
    grid.add_row("against the table", *_cells(result.against_table))
    for name, group in result.against_table_by_length.items():
        grid.add_row(f"  {name} instructions", *_cells(group))
    stdout.print(grid)
    stdout.print(
        f"{result.sample:,} stable blocks of the table (seed {result.seed}) measured twice on"
        f" {escape(result.machine)} by {result.backend}: {result.stable:.1f} % stable both times",
        soft_wrap=True,
    )
    for name, statuses in result.statuses.items():
        counted = ", ".join(f"{status} {count:,}" for status, count in statuses.items())
        stdout.print(f"{name}: {escape(counted)}", soft_wrap=True)
    if result.table_machine != result.machine:
        stdout.print(
            f"The table's labels are of {escape(result.table_machine)}: they differ from this"
            " machine's by more than noise.",
            soft_wrap=True,
        )


def _cells(one: "Agreement") -> list[str]:
    numbers = (one.mean, one.median, one.p95, one.above_5)
    shown = ["–" if value is None else f"{value:.2f} %" for value in numbers]
    rest = ["–" if value is None else f"{value:.3f}" for value in (one.ratio, one.kendall)]
    return [f"{one.n:,}", *shown, *rest]
