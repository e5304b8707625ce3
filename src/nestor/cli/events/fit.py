"""``nestor costmodel cycles`` and ``fit-program``: measured runs, and weights fitted to them."""

from dataclasses import asdict, dataclass
from pathlib import Path

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.console import print_json, stdout
from nestor.cli.events.prices import prices
from nestor.cli.options import OutputFile
from nestor.cli.remarks import remark


@dataclass(frozen=True)
class Cycles:
    """Measure the cycles of whole runs of a program, and what two measurements differ by.

    CPU time by a clock that is calibrated around every run; the shortest of all runs counts. The
    program runs in turn with a second measurement of itself, the null: a difference that is not
    larger is none. Pinned to one processor. Choose an input with little work for the kernel, and a
    quiet machine; 'chrt -f 1 nestor costmodel cycles …' keeps others off the processor.

    Examples:
        nestor costmodel cycles ./bzip2 --stdin text -- -9 -c
        nestor costmodel cycles ./lua --rounds 8 --json -- bench.lua
    """

    program: tyro.conf.Positional[Path]
    """The program."""
    arguments: tyro.conf.Positional[tuple[str, ...]] = ()
    """Its arguments, after --."""
    stdin: Path | None = None
    """Its standard input; none without."""
    rounds: int = 4
    """Rounds of three runs."""
    core: int | None = None
    """The processor to run on (default: the last one that this process may use)."""
    seconds: float = 600.0
    """The longest time that three runs may take."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Measure and print."""
        from nestor.program_cost.machine import MachineError
        from nestor.program_cost.truth import Command, measure

        if not self.program.is_file():
            raise MachineError(f"There is no program '{self.program}'; name one by its path.")
        if self.rounds < 1:
            raise MachineError("Too few rounds: --rounds takes 1 or more.")
        command = Command(self.program, self.arguments, self.stdin)
        own, null = measure([command], self.rounds, self.core, self.seconds)
        if not own.runs or not null.runs:
            remark(
                "the core's clock changed in every run, so none was dropped: try it on a quieter"
                " machine"
            )
        if own.status:
            remark(f"the program ended with status {own.status}")
        noise = null.minimum / own.minimum - 1 if own.minimum else float("inf")
        if self.json:
            print_json({"cycles": asdict(own), "null": asdict(null), "noise": noise})
            return 0
        grid = Grid("", title=escape(str(self.program)))
        for name in ("minimum", "median", "runs", "dropped", "kernel"):
            grid.add_column(name, justify="right")
        for name, one in (("program", own), ("null", null)):
            grid.add_row(
                name,
                f"{one.minimum:,.0f}",
                f"{one.median:,.0f}",
                str(one.runs),
                str(one.dropped),
                f"{100 * one.system_share:.1f} %",
            )
        stdout.print(grid)
        stdout.print(f"two measurements of the same differ by {100 * noise:+.2f} %")
        return 0


@dataclass(frozen=True)
class Fit:
    """Fit the weights of events to measured runs, each weight drawn to a prior.

    RUNS is a CSV file with the header 'program,events,cycles': the name of the program, the table
    that 'nestor events' wrote, and the cycles that 'nestor costmodel cycles' measured. Each program
    is predicted by a fit without it, and that error is printed and kept in the file. With several
    runs of one program, as of several builds, the error of their ratios is measured too.

    Examples:
        nestor costmodel fit-program runs.csv --out weights.json
        nestor costmodel fit-program runs.csv --out weights.json --penalties here.json --json
    """

    runs: tyro.conf.Positional[Path]
    """The CSV file; tables are looked for beside it."""
    out: OutputFile
    """Where the weights go."""
    model: str = "shipped"
    """The model of blocks."""
    machine: str | None = None
    """The machine to predict blocks for, of those in the model file (default: that of the
    penalties, if the file has it)."""
    penalties: str | None = None
    """The file of a machine's penalties, or the name of one that comes with Nestor (default: this
    machine's)."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Fit, write and print."""
        from nestor.program_cost import runs, weights

        model, penalties = prices(self.model, self.machine, self.penalties)
        measured = runs.read(self.runs, model, penalties)
        fitted = weights.fit(measured, self.model, penalties.machine)
        weights.save(fitted, self.out)
        if self.json:
            print_json(asdict(fitted))
            return 0
        grid = Grid("run", title="errors of programs left out of the fit")
        grid.add_column("error", justify="right")
        for name, error in sorted(fitted.runs.items(), key=lambda pair: -abs(pair[1])):
            grid.add_row(escape(name), f"{100 * error:+.1f} %")
        stdout.print(grid)
        assert fitted.error is not None
        stdout.print(
            f"mean {100 * fitted.error:.1f} %; weights: "
            + ", ".join(f"{name} {value:.2f}" for name, value in fitted.values.items()),
            soft_wrap=True,
        )
        return 0
