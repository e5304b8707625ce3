"""``nestor costmodel report``: a page of predicted cycles, and how each comes about."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.markup import escape

from nestor.cli.blocks.code import about, interval, open_explainable, read_code
from nestor.cli.console import print_json, stdout
from nestor.cli.options import OutputFile
from nestor.files import write_atomically
from nestor.report.sheet import Bar, Bars, Cell, Column, Section, Table, Text, sheet

if TYPE_CHECKING:
    from nestor.cost.model.explain import Explanation


@dataclass(frozen=True)
class CostPage:
    """Write a page that shows predicted cycles by function and block, and how each comes about.

    One HTML file that needs no server and no network. Of each block it shows the instructions with
    their slots, latencies and ports, which of them are on the longest chain, how long each resource
    of the simulated core is busy, what labels of like code add, and the interval that holds 90 % of
    measurements.

    Code is named as for 'nestor costmodel predict'.

    Examples:
        nestor costmodel report kernel.o --out kernel.html
        nestor costmodel report 4801d8480fafc3 --out block.html
        nestor costmodel report --assembly 'mulsd %xmm1, %xmm0' --out block.html
    """

    code: tyro.conf.Positional[tuple[str, ...]] = ()
    """Blocks in hexadecimal, or files; nothing: standard input."""
    out: OutputFile = Path("cost.html")
    """The page to write."""
    model: str = "shipped"
    """'shipped' or a file of our own kind of model."""
    machine: str | None = None
    """The machine to predict for, of those in the model file."""
    assembly: str | None = None
    """Assembly text instead of files; instructions are parted by ';' or lines."""
    intel: bool = False
    """Assembly is in Intel's syntax."""
    blocks: int = 2000
    """Explain at most so many blocks: of each function the first, functions in order."""
    json: bool = False
    """Print JSON about the page."""

    def run(self) -> int:
        """Explain every block and write the page; 1 if none is code."""
        from nestor.cost.contract import ModelError
        from nestor.cost.model.explain import explain
        from nestor.cost.registry import target_of

        model = open_explainable(self.model, self.machine)
        code = read_code(self.code, self.assembly, self.intel)
        blocks = [("", number, block) for number, block in enumerate(code.blocks)]
        blocks += [(f.name, n, b) for f in code.functions for n, b in enumerate(f.blocks)]
        found: list[tuple[str, int, Explanation]] = []
        refused: list[tuple[str, int, str]] = []
        for function, number, block in blocks[: self.blocks]:
            try:
                found.append((function, number, explain(model, block)))
            except ModelError as error:
                refused.append((function, number, str(error)))
        title = ", ".join(Path(word).name for word in self.code[:3]) or "blocks"
        text = sheet(title, about(target_of(model)), _sections(found, refused, len(blocks)))
        write_atomically(self.out, text)
        if self.json:
            content = {"out": str(self.out), "bytes": len(text.encode())}
            print_json(content | {"blocks": len(found), "refused": len(refused)})
        else:
            stdout.print(
                f"{escape(str(self.out))}: {len(found):,} blocks, {len(text.encode()):,} bytes",
                soft_wrap=True,
            )
        return 0 if found else 1


def _sections(
    found: "list[tuple[str, int, Explanation]]", refused: list[tuple[str, int, str]], blocks: int
) -> list[Section]:
    sections: list[Section] = [
        Text(
            "Cycles of one pass of a block that repeats. They are what the simulated core says plus"
            " what labels of like code differ from it by; the interval is to hold 90 % of"
            " measurements. No cache misses and no mispredicted branches are in it."
        )
    ]
    if len(found) + len(refused) < blocks:
        sections.append(Text(f"{len(found) + len(refused):,} of {blocks:,} blocks are explained."))
    if any(name for name, *_ in found):
        sections.append(_functions(found))
    sections.append(_blocks(found))
    if refused:
        columns = (Column("function"), Column("block", numeric=True), Column("reason"))
        sections.append(Table("Blocks without an answer", columns, tuple(refused)))
    return sections


def _functions(found: "list[tuple[str, int, Explanation]]") -> Table:
    sums: dict[str, list[float]] = {}
    for name, _, explanation in found:
        own = sums.setdefault(name, [0.0] * 4)
        for n, value in enumerate((1, explanation.cycles, explanation.low, explanation.high)):
            own[n] += value
    columns = (
        Column("function"),
        Column("blocks", numeric=True),
        Column("cycles", numeric=True, hint="if every block runs once"),
        Column("low", numeric=True),
        Column("high", numeric=True),
    )
    names = sorted(sums, key=lambda name: -sums[name][1])
    return Table("Functions", columns, tuple((name, *sums[name]) for name in names))


def _blocks(found: "list[tuple[str, int, Explanation]]") -> Table:
    found = sorted(found, key=lambda item: -item[2].cycles)
    columns = (
        Column("function"),
        Column("block", numeric=True),
        Column("first instruction"),
        Column("length", numeric=True, hint="instructions"),
        Column("cycles", numeric=True),
        Column("low", numeric=True),
        Column("high", numeric=True),
        Column("simulated", numeric=True, hint="what the simulated core alone says"),
        Column("limited by"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            number,
            e.instructions[0].text if e.instructions else "",
            len(e.instructions),
            e.cycles,
            e.low,
            e.high,
            e.simulated,
            " and ".join(e.limits),
        )
        for name, number, e in found
    ]
    return Table("Blocks", columns, tuple(rows), tuple(_details(e) for *_, e in found))


def _details(explanation: "Explanation") -> tuple[Section, ...]:
    e = explanation
    columns = (
        Column("instruction"),
        Column("slots", numeric=True),
        Column("latency", numeric=True),
        Column("ports"),
        Column("chain", hint="whether it is on the longest chain"),
    )
    rows = tuple(
        (i.text, i.slots, i.latency, i.ports, "on it" if i.on_chain else "", i.on_chain)
        for i in e.instructions
    )
    cycles = (
        Bar("predicted", e.cycles, e.low, e.high),
        Bar("simulated core", e.simulated),
        *(Bar(name, value) for name, value in e.simulated_resources if value > 0),
    )
    memory = "".join(f"; {name}: {count:g}" for name, count in e.memory)
    untrained = "; ".join(e.untrained)
    more = f" Opcodes not in training: {untrained}." if untrained else ""
    return (
        Bars("Cycles, and how long each resource is busy", "cycles", cycles, plain=True),
        Text(
            f"{e.cycles:.2f} cycles ({interval(e.low, e.high)}) = {e.simulated:.2f} simulated"
            f" {e.learned:+.2f} learned; limited by {' and '.join(e.limits)}{memory}.{more}"
        ),
        Table("Instructions", columns, rows),
    )
