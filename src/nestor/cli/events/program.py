"""``nestor costmodel program``: predicted cycles of a whole run, and of two builds."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.console import print_json, stdout
from nestor.cli.events.prices import prices
from nestor.cli.remarks import remark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nestor.events.table import EventTable
    from nestor.program_cost.compare import Comparison
    from nestor.program_cost.estimate import Estimate, Share
    from nestor.program_cost.weights import Weights


@dataclass(frozen=True)
class Program:
    """Predict the cycles of a run from its events: executions × throughput + events × penalties.

    Blocks are priced by a model of blocks, those that nearly always run one after the other as one
    piece. Events cost what they cost on the machine, times a weight that says how much of it is not
    hidden by other work; the weights were fitted to measured runs, each drawn to a prior. Printed
    are the total, what bounds each function or block, and how sure this is.

    With --against, the events of another build of the same program with the same input: which of
    the two is faster, by how much, and whether the model can tell. What blocks compute is in
    proportion to instructions there. Where J (instructions + reads + writes) has the other order,
    that is said.

    Examples:
        nestor costmodel program bzip2.parquet
        nestor costmodel program new.parquet --against old.parquet --json
        nestor costmodel program profile.parquet --predict-mispredictions --predict-misses
        nestor costmodel program bzip2.parquet --model llvm-mca --penalties here.json --by-block
    """

    events: tyro.conf.Positional[Path]
    """A table that 'nestor events' wrote."""
    against: Path | None = None
    """That of another build of the program."""
    model: str = "shipped"
    """The model of blocks: 'shipped', a model file, 'llvm-mca' or 'bound'."""
    machine: str | None = None
    """The machine to predict blocks for, of those in the model file (default: that of the
    penalties, if the file has it)."""
    penalties: str | None = None
    """The file of a machine's penalties, or the name of one that comes with Nestor (default: this
    machine's)."""
    weights: Path | None = None
    """Weights that 'nestor costmodel fit-program' wrote (default: those that come with Nestor for
    the machine of the penalties, or else those of an Intel Xeon)."""
    predict_mispredictions: bool = False
    """Predict how often branches are mispredicted, from executions, edges and code, in the place of
    what the source counted: as a compiler with a profile has to."""
    predict_misses: bool = False
    """Predict how often blocks miss the caches for data, likewise: from where accesses go from turn
    to turn and how many bytes loops, functions and the run touch. Misses of code and page walks
    cost nothing then."""
    top: int = 20
    """How many functions or blocks to print."""
    by_block: bool = False
    """Print blocks instead of functions."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Predict and print."""
        from nestor.cost.registry import target_of
        from nestor.events import table as tables
        from nestor.events.errors import EventsError
        from nestor.program_cost import weights as fitted
        from nestor.program_cost.compare import compare
        from nestor.program_cost.estimate import by_block, by_function, estimate
        from nestor.program_cost.quantities import quantities

        own_table = tables.read(self.events)
        other_table = None if self.against is None else tables.read(self.against)
        if other_table is not None and other_table.about.source != own_table.about.source:
            raise EventsError(
                f"The events of '{self.events}' and '{self.against}' were counted in different"
                " ways; collect both in one way."
            )
        uncounted = self._uncounted(own_table)
        _remark(uncounted, own_table, other_table)
        own_table = self._predicted(own_table)
        other_table = None if other_table is None else self._predicted(other_table)
        model, penalties = prices(self.model, self.machine, self.penalties)
        weights = (
            fitted.packaged(penalties.machine)
            if self.weights is None
            else fitted.load(self.weights)
        )
        predicts = self.predict_mispredictions or self.predict_misses
        if predicts:  # the error of the fit is that of counted events
            weights = replace(weights, error=None)
        own = quantities(own_table, model, penalties)
        result = estimate(own, weights)
        compared = None
        if other_table is not None:
            other = estimate(quantities(other_table, model, penalties), weights)
            compared = compare(result, other, weights)
        shares = (by_block if self.by_block else by_function)(own, weights)[: self.top]
        if self.json:
            print_json(
                {
                    "penalties": penalties.machine,
                    "blocks_machine": target_of(model).machine or None,
                    "weights": _weights_json(weights),
                    "estimate": _finite(asdict(result)),
                    "uncounted": uncounted,
                    "against": None if compared is None else _finite(asdict(compared)),
                    "blocks" if self.by_block else "functions": [asdict(one) for one in shares],
                }
            )
        else:
            _show(result, shares, self.by_block)
            of_blocks = target_of(model).machine or self.model
            said = _sure(result, weights, penalties.machine, of_blocks, self.model)
            said += _error(weights, predicts=predicts)
            stdout.print(escape(said), soft_wrap=True)
            if compared is not None:
                stdout.print(escape(_said(compared)), soft_wrap=True)
        return 0

    def _predicted(self, table: "EventTable") -> "EventTable":
        """Return the table with predictions in the place of what the source counted."""
        if self.predict_mispredictions:
            from nestor.program_cost.mispredictions import model as mispredictions

            table = mispredictions.with_predicted(table, mispredictions.packaged())
        if self.predict_misses:
            from nestor.events.simulated.caches import caches_of
            from nestor.program_cost.misses import model as misses

            caches = caches_of(table.about.settings)
            table = misses.with_predicted(table, misses.packaged(), caches)
        return table

    def _uncounted(self, table: "EventTable") -> list[str]:
        """Return what the source of a table does not count and nothing predicts."""
        from nestor.program_cost.quantities import uncounted

        predicted = {"mispredict"} if self.predict_mispredictions else set[str]()
        if self.predict_misses:
            predicted |= {"l1", "llc"}
        return [name for name in uncounted(table) if name not in predicted]


def _remark(uncounted: "Sequence[str]", own: "EventTable", other: "EventTable | None") -> None:
    """Say what the tables lack, and where they are of two programs."""
    if uncounted:
        remark(_without(uncounted))
    if other is not None and other.about.program != own.about.program:
        remark(
            f"these are runs of '{own.about.program}' and of '{other.about.program}': --against"
            " compares builds of one program, with the same input"
        )


def _without(names: "Sequence[str]") -> str:
    from nestor.program_cost.estimate import BOUNDS

    missing = ", ".join(BOUNDS[name] for name in names)
    return (
        f"the source of these events does not count {missing}: they cost nothing here, and the"
        " cycles are too few"
    )


def _weights_json(weights: "Weights") -> dict[str, Any]:
    return _finite(asdict(weights)) | {"fitted": bool(weights.runs)}


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping with None for numbers that are none."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def _show(result: "Estimate", shares: "list[Share]", blocks: bool) -> None:
    from nestor.program_cost.estimate import BOUNDS

    grid = Grid()
    grid.add_column("block" if blocks else "function", overflow="fold")
    for name in ("Mcycles", "share"):
        grid.add_column(name, justify="right")
    grid.add_column("bound by")
    largest = max(result.by_quantity, key=lambda name: result.by_quantity[name])
    grid.add_row("[bold]all[/]", f"{result.cycles / 1e6:,.2f}", "", BOUNDS[largest])
    for one in shares:
        name = one.function or Path(one.object).name or "(no name)"
        if one.address is not None:
            name += f" {one.address:#x}"
        grid.add_row(
            escape(name),
            f"{one.cycles / 1e6:,.2f}",
            f"{100 * one.cycles / result.cycles:.1f} %",
            BOUNDS[one.bound],
        )
    stdout.print(grid)


def _sure(result: "Estimate", weights: "Weights", machine: str, of_blocks: str, model: str) -> str:
    text = f"cycles on {machine}"
    if of_blocks != machine:
        text = f"cycles with the penalties of {machine} and blocks as {of_blocks} has them"
    if weights.machine not in ("", machine):
        text += f"; weights that were fitted on {weights.machine}"
    if weights.model not in ("", model):
        text += f"; weights that were fitted with the blocks of '{weights.model}'"
    if result.unanswered > 0.001:
        text += f"; {100 * result.unanswered:.1f} % of instructions have no answer of the model"
    return text


def _error(weights: "Weights", *, predicts: bool) -> str:
    if predicts:
        return "; events are predicted, so the error is larger than that of counted ones"
    if weights.error is None:
        return "; weights are the prior and not fitted, so the error is not measured"
    return f"; mean error of programs left out of the fit {100 * weights.error:.1f} %"


def _said(compared: "Comparison") -> str:
    by_j = (
        f", J {100 * (compared.executed_ratio - 1):+.2f} %"
        if math.isfinite(compared.executed_ratio)
        else ""
    )
    text = f"against the other build: {100 * (compared.ratio - 1):+.2f} % cycles{by_j}: "
    limit = f"{100 * compared.error:.1f} %"
    return (
        text
        + {
            "faster": f"faster, beyond the error of {limit}",
            "slower": f"slower, beyond the error of {limit}",
            "too close to tell": f"too close to tell, within the error of {limit}",
            "disagree": "the two disagree on the order; rely on J's",
        }[compared.verdict]
    )
