"""``nestor blocks sweep``: blocks of every instruction that the decoder knows."""

from dataclasses import dataclass

from rich.markup import escape

from nestor.cli.console import print_json, stdout
from nestor.cli.options import OutputFile


@dataclass(frozen=True)
class Sweep:
    """Make blocks of every instruction that the decoder knows, to be measured and trained on.

    Each instruction stands alone, in four copies that write different registers, and in a chain
    that reads its own result; with a register and with a memory operand; with lock and rep where
    these make another operation of it. Left out is what a block cannot hold or has no throughput:
    control flow, privileged instructions, and what waits for something outside of the core
    (docs/reference/blocks.md). 'nestor blocks measure' screens those that this machine lacks.

    Examples:
        nestor blocks sweep --out sweep.parquet
        nestor blocks measure sweep.parquet --out sweep-here.parquet
        nestor blocks sweep --lacking zen5 --out new.parquet
    """

    out: OutputFile
    """The table to write."""
    lacking: str | None = None
    """Only opcodes that no stable row of this table or data set has."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Make the blocks and write the table."""
        from nestor.cost.blocks import table
        from nestor.cost.sweep.rows import opcodes_in, sweep_table

        left_out = frozenset[str]()
        if self.lacking is not None:
            rows = table.named(self.lacking)
            left_out = opcodes_in(rows.select(rows.stable))
        found, opcodes = sweep_table(left_out)
        table.write(found, self.out)
        content = {"blocks": len(found), "opcodes": opcodes, "table": str(self.out)}
        if self.json:
            print_json(content)
        else:
            stdout.print(
                f"{len(found):,} blocks of {opcodes:,} opcodes: {escape(str(self.out))}",
                soft_wrap=True,
            )
        return 0
