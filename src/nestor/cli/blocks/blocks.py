"""``nestor blocks extract`` and ``info``: tables of basic blocks from real code."""

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.console import print_json, progress, stdout
from nestor.cli.options import OutputFile
from nestor.cost.sources.settings import (
    Columns,
    CompileSettings,
    ExtractSettings,
    Filter,
)

# What reads and writes blocks takes half a second to import, so it is imported when a command runs.
if TYPE_CHECKING:
    from nestor.cost.blocks.summary import Summary
    from nestor.cost.sources.collection import Collection

_FAILURES_SHOWN = 10


@dataclass(frozen=True)
class Extract:
    """Take the basic blocks out of code, each once, with its count and where it was met first.

    A source is an object, a program or a static library; a folder of these; a corpus, whose modules
    are compiled at -O2; assembly (.s); a block in hexadecimal, or a text with one in each line; a
    list (FILE.csv) of machine code in hexadecimal, such as BHive's; or ComPile's bitcode
    (FILE.parquet), which is compiled at -O2. Blocks of code end before the jump, call or return
    that leaves them. The table is parquet; docs/reference/blocks.md describes it.

    Examples:
        nestor blocks extract /usr/bin/git --out git.parquet
        nestor blocks extract corpus/bench --out bench.parquet --objects .nestor/objects
        nestor blocks extract corpus/bench --out lua.parquet --projects lua sed
        nestor blocks extract 4801d8480fafc3 kernel.s --out few.parquet
        nestor blocks extract bhive/skl.csv --out skl.parquet --cycles-column 1
        nestor blocks extract compile/c.parquet --out c.parquet --licences MIT Apache-2.0
    """

    sources: tyro.conf.Positional[tuple[str, ...]]
    """Files, folders, or blocks in hexadecimal."""
    out: OutputFile
    """The table to write."""
    assembly: str | None = None
    """Assembly text to read too; instructions are parted by ';' or lines."""
    intel: bool = False
    """Assembly is in Intel's syntax."""
    projects: tuple[str, ...] = ()
    """Projects of a corpus to use; none named: all."""
    compiling: tyro.conf.OmitArgPrefixes[CompileSettings] = field(default_factory=CompileSettings)
    """How modules are compiled."""
    columns: tyro.conf.OmitArgPrefixes[Columns] = field(default_factory=Columns)
    """What lists without headings hold."""
    wanted: tyro.conf.OmitArgPrefixes[Filter] = field(default_factory=Filter)
    """Which rows of ComPile's are used."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Extract, write and print the counts."""
        from nestor.compiler.toolchain import find
        from nestor.cost.blocks import table
        from nestor.cost.sources.extraction import SourceError, extract

        if not self.sources and self.assembly is None:
            raise SourceError("Name at least one file, folder, corpus or block in hexadecimal.")
        settings = ExtractSettings(
            self.projects, self.compiling, self.columns, self.wanted, self.assembly, self.intel
        )
        start = time.monotonic()
        with progress() as report:
            found = extract(self.sources, lambda: find(self.llvm), settings, report)
        if not len(found):
            reasons = "; ".join(found.failures) or "they hold no code"
            raise SourceError(f"No blocks were found ({reasons}), so no table was written.")
        table.write(found.table(), self.out)
        content = _counts(found) | {
            "seconds": round(time.monotonic() - start, 3),
            "table": str(self.out),
        }
        if self.json:
            print_json(content)
        else:
            _show(found, content)
        return 0


@dataclass(frozen=True)
class Info:
    """Show what a table of blocks holds.

    Rows and different blocks, labels and how many of them are stable, machines, and blocks by
    number of instructions, by category and by opcode.

    Examples:
        nestor blocks info zen5
        nestor blocks info git.parquet --json
    """

    table: tyro.conf.Positional[str]
    """A table, or the name of a data set: zen4, zen5."""
    opcodes: int = 20
    """Opcodes to list."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Count and print."""
        from nestor.cost.blocks import summary as summaries
        from nestor.cost.blocks import table

        content = table.named(self.table)
        with progress() as report:
            summary = summaries.summarise(content, self.opcodes, report)
        if self.json:
            print_json(asdict(summary) | {"duplicates": summary.duplicates})
        else:
            _describe(summary)
        return 0


def _counts(found: "Collection") -> dict[str, Any]:
    return {
        "blocks": len(found),
        "occurrences": found.occurrences,
        "files": found.files,
        "functions": found.functions,
        "mapped_functions": found.mapped,
        "dropped": {
            "empty": found.empty,
            "undecodable": found.undecodable,
            "oversized": found.oversized,
            "filtered_rows": found.filtered,
        },
        "failures": dict(found.failures.most_common()),
    }


def _show(found: "Collection", content: dict[str, Any]) -> None:

    stdout.print(
        f"{len(found):,} blocks, {found.occurrences:,.0f} occurrences; {found.files:,} files,"
        f" {found.functions:,} functions, {found.mapped:,} of them by an address map;"
        f" {content['seconds']:.1f} s",
        soft_wrap=True,
    )
    stdout.print(
        f"dropped: {found.empty:,} without an instruction, {found.undecodable:,} undecodable,"
        f" {found.oversized:,} oversized, {found.filtered:,} rows filtered",
        soft_wrap=True,
    )
    for reason, count in found.failures.most_common(_FAILURES_SHOWN):
        stdout.print(f"  [red]failed[/] {count:,} × {escape(reason)}", soft_wrap=True)
    if len(found.failures) > _FAILURES_SHOWN:
        stdout.print(f"  … and {len(found.failures) - _FAILURES_SHOWN:,} other reasons")
    stdout.print(f"table: {escape(content['table'])}", soft_wrap=True)


def _describe(summary: "Summary") -> None:

    stdout.print(
        f"{summary.rows:,} rows, {summary.distinct:,} different blocks"
        f" ({summary.duplicates:,} duplicates)"
    )
    if summary.occurrences is not None:
        stdout.print(f"{summary.occurrences:,.0f} occurrences in {summary.sources:,} sources")
    stdout.print(
        f"{summary.labelled:,} labelled, {summary.stable:,} of them stable;"
        f" {summary.undecodable:,} undecodable"
    )
    for name, count in summary.machines.items():
        stdout.print(f"machine {escape(name)}: {count:,}")
    for title, counts in (
        ("instructions", summary.instructions),
        ("category", summary.categories),
        ("opcode", summary.opcodes),
    ):
        grid = Grid(box=None, pad_edge=False)
        grid.add_column(title)
        grid.add_column("instructions" if title == "opcode" else "blocks", justify="right")
        for name, count in counts.items():
            grid.add_row(name, f"{count:,}")
        stdout.print(grid)
