"""``nestor events``: run-time events of a program, by basic block."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.console import print_json, stdout
from nestor.cli.options import OutputFile, refuse_idle
from nestor.cli.remarks import remark
from nestor.events.simulated.caches import Caches

if TYPE_CHECKING:  # pyarrow takes a while to import
    from nestor.events.table import EventTable

_SHOWN = (
    ("mispredicts", "mispredicts"),
    ("indirect_mispredicts", "indirect"),
    ("l1_misses", "L1d misses"),
    ("l2_misses", "L2 misses"),
    ("llc_misses", "LLC misses"),
    ("tlb_misses", "TLB misses"),
)


@dataclass(frozen=True)
class Events:
    """Count what a program executes and what a recent core would mispredict or miss, by block.

    The program runs under a tool of valgrind that Nestor builds on first use, 40 to 70 times as
    slowly as without. Simulated are branch predictors (TAGE, targets by history, a return stack),
    three levels of caches with prefetchers, and a TLB; equal runs give equal counts. The run has a
    fixed environment; processes that the program starts are not counted.

    With --callgrind or --perf nothing is run: the events come from a file of callgrind, whose
    predictors and caches are crude, or from samples of the processor's own counters. Record those
    with 'perf record -e cycles:u,branch-misses:u,LLC-load-misses:u -b -c 200003 -- PROGRAM', and
    print them with 'perf script --show-mmap-events -F pid,tid,time,event,period,ip,brstack'.

    Examples:
        nestor events ./bzip2 --stdin text --out bzip2.parquet -- -9 -c
        nestor events ./server --by-block --top 30 --json -- --selftest
        nestor events ./bzip2 --callgrind callgrind.out.4711 --out bzip2.parquet
        nestor events ./bzip2 --perf samples.txt --out bzip2.parquet
    """

    program: tyro.conf.Positional[Path]
    """The program, x86-64; with --callgrind or --perf the one that was run."""
    arguments: tyro.conf.Positional[tuple[str, ...]] = ()
    """Its arguments, after --."""
    out: OutputFile | None = None
    """Write the blocks to this parquet file, and the edges beside it (NAME.edges.parquet)."""
    stdin: Path | None = None
    """The program's standard input; none without."""
    stdout: Path | None = None
    """Where the program's output goes; it is dropped without."""
    seconds: float = 3600.0
    """The longest time that the run may take."""
    callgrind: Path | None = None
    """Read this file of callgrind instead. Write it with --dump-instr=yes --collect-jumps=yes
    --skip-plt=no --cache-sim=yes --branch-sim=yes."""
    perf: Path | None = None
    """Read this text of perf script instead."""
    caches: tyro.conf.OmitArgPrefixes[Caches] = field(default_factory=Caches)
    """What is simulated."""
    top: int = 20
    """How many functions or blocks to print."""
    by_block: bool = False
    """Print blocks instead of functions."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Collect, write and print."""
        from nestor.events import table as tables
        from nestor.events.block_map import with_map_blocks

        if self.out is not None:
            tables.check_name(self.out)  # before the run, which may be long
        table = with_map_blocks(self._table(), self.program)
        if self.out is not None:
            tables.write(table, self.out)
        if self.json:
            print_json(self._json(table))
        else:
            self._show(table)
        return 0

    def _table(self) -> "EventTable":
        from nestor.events.errors import EventsError

        if self.callgrind is not None and self.perf is not None:
            raise EventsError("Name --callgrind or --perf, not both.")
        if self.callgrind is not None or self.perf is not None:
            if self.arguments or self.stdin is not None or self.stdout is not None:
                raise EventsError(
                    "Nothing is run with --callgrind or --perf; leave out the program's arguments,"
                    " --stdin and --stdout."
                )
            refuse_idle(self, "with --callgrind or --perf", "seconds")
            refuse_idle(self.caches, "with --callgrind or --perf")
            if not self.program.is_file():
                raise EventsError(f"There is no program '{self.program}'; name one by its path.")
        if self.callgrind is not None:
            from nestor.events import callgrind

            return callgrind.read(self.callgrind, self.program)
        if self.perf is not None:
            from nestor.events.perf import samples

            return samples.read(self.perf, self.program)
        from nestor.events.simulated.collect import RunSettings, collect

        settings = RunSettings(
            stdin=self.stdin, stdout=self.stdout, seconds=self.seconds, caches=self.caches
        )
        collected = collect(self.program, self.arguments, settings)
        if collected.exit_status:
            remark(f"the program ended with status {collected.exit_status}")
        return collected.table

    def _json(self, table: "EventTable") -> dict[str, Any]:
        from nestor.events.summary import by_function, totals

        shown: dict[str, Any] = (
            {"blocks": _hot_blocks(table, self.top)}
            if self.by_block
            else {"functions": [asdict(one) for one in by_function(table)[: self.top]]}
        )
        return {
            "out": None if self.out is None else str(self.out),
            "about": asdict(table.about),
            "blocks_executed": len(table),
            "edges": table.edges.num_rows,
            "totals": totals(table),
        } | shown

    def _show(self, table: "EventTable") -> None:
        from nestor.events.summary import by_function, totals

        grid = Grid(title=escape(f"{table.about.program}: {_source(table)}"))
        grid.add_column("block" if self.by_block else "function", overflow="fold")
        for name in ("instructions", *(title for _, title in _SHOWN)):
            grid.add_column(name, justify="right")
        whole = totals(table)
        grid.add_row(
            "[bold]all[/]", _number(whole["instructions"]), *(_number(whole[n]) for n, _ in _SHOWN)
        )
        if self.by_block:
            for block in _hot_blocks(table, self.top):
                name = f"{block['function'] or block['object']} {block['address']:#x}"
                cells = (_number(block[column]) for column, _ in _SHOWN)
                executed = block["executions"] * block["instructions"] + (block["rep_turns"] or 0)
                grid.add_row(escape(name), _number(executed), *cells)
        else:
            for one in by_function(table)[: self.top]:
                cells = (_number(one.events[column]) for column, _ in _SHOWN)
                name = one.function or f"(no name, {Path(one.object).name or 'no file'})"
                grid.add_row(escape(name), _number(one.instructions), *cells)
        stdout.print(grid)


def _source(table: "EventTable") -> str:
    if table.about.source == "perf":
        return f"sampled on {table.about.machine}, at most {table.about.period:,} events a sample"
    return "counted by callgrind (crude events)" if table.about.crude else "simulated events"


def _hot_blocks(table: "EventTable", count: int) -> list[dict[str, Any]]:
    """Return the blocks that execute the most instructions."""
    import numpy as np

    order = np.argsort(-table.instructions_by_block(), kind="stable")
    rows: list[dict[str, Any]] = table.blocks.take(order[:count]).to_pylist()
    return [row | {"code": row["code"].hex()} for row in rows]


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
