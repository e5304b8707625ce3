"""``nestor costmodel penalties``: what a miss and a mispredicted branch cost on this machine."""

from dataclasses import asdict, dataclass

from rich.table import Table as Grid

from nestor.cli.console import print_json, stdout
from nestor.cli.options import OutputFile


@dataclass(frozen=True)
class Penalties:
    """Measure what mispredicted branches, misses and the like cost on this machine, in cycles.

    Microbenchmarks: chains of loads in pieces of memory of several sizes, branches that nothing can
    predict, stores that are loaded again. They run for about three seconds, pinned to one
    processor; the shortest of several rounds counts. Use a quiet machine. 'nestor costmodel
    program' takes the file with --penalties.

    Examples:
        nestor costmodel penalties
        nestor costmodel penalties --out here.json --core 1
    """

    out: OutputFile | None = None
    """Write them to this file."""
    core: int | None = None
    """The processor to run on (default: the last one that this process may use)."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Measure, write and print."""
        from nestor.program_cost import penalties

        found = penalties.measure(self.core)
        if self.out is not None:
            penalties.save(found, self.out)
        if self.json:
            print_json(asdict(found))
            return 0
        grid = Grid("penalty", title=f"cycles on {found.machine}")
        grid.add_column("cycles", justify="right")
        for name, cycles in asdict(found).items():
            if name != "machine":
                grid.add_row(name, f"{cycles:,.1f}")
        stdout.print(grid)
        return 0
