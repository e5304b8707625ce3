"""``nestor blocks choose``: the blocks that are worth measuring on a new machine."""

from dataclasses import dataclass

import tyro
from rich.markup import escape

from nestor.cli.console import print_json, stdout
from nestor.cli.options import OutputFile


@dataclass(frozen=True)
class Choose:
    """Choose the blocks of a table whose labels say the most of a machine that is new.

    Four fifths are drawn at random, the others are chosen so that every kind of instruction is met,
    common ones more often. Labels of the table are not copied.

    Examples:
        nestor blocks choose zen5 --out chosen.parquet
        nestor blocks choose here.parquet --count 1000 --out chosen.parquet
        nestor blocks measure chosen.parquet --out chosen-here.parquet
    """

    blocks: tyro.conf.Positional[str]
    """A table with the column block_hex, or a data set: zen4, zen4-sweep, zen5."""
    out: OutputFile
    """The table to write."""
    count: int = 3000
    """Blocks to choose."""
    stable: bool = True
    """Only rows whose label is stable, if the table has labels: they can be measured."""
    seed: int = 0
    """Seed of the draw."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Choose and write the table."""
        import numpy as np

        from nestor.cost.blocks import table
        from nestor.cost.core.choice import ChoiceSettings, choose

        if self.count < 1:
            raise table.TableError(f"--count {self.count} is no number of blocks; name 1 or more.")
        rows = table.named(self.blocks)
        pool = np.arange(len(rows))
        if self.stable and rows.labelled.any():
            pool = np.flatnonzero(rows.stable)
        blocks = list(dict.fromkeys(rows.blocks[row] for row in pool.tolist()))
        chosen = choose(blocks, ChoiceSettings(self.count), self.seed)
        table.write(table.unlabelled([blocks[row] for row in chosen.tolist()]), self.out)
        if self.json:
            print_json({"blocks": len(chosen), "of": len(blocks), "table": str(self.out)})
        else:
            stdout.print(
                f"{len(chosen):,} of {len(blocks):,} blocks: {escape(str(self.out))}",
                soft_wrap=True,
            )
        return 0
