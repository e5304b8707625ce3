"""``nestor costmodel functions``: what one call of each function is expected to cost."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.blocks.code import about, about_json
from nestor.cli.console import print_json, stdout

# Models take a second to import, so they are imported when a command runs.
if TYPE_CHECKING:
    from nestor.cost.predict.expected import ExpectedCost


@dataclass(frozen=True)
class Functions:
    """Show what one call of each function costs, by the block frequencies in its object.

    The object must be compiled with '-fbasic-block-address-map -mllvm
    -pgo-analysis-map=func-entry-count,bb-freq,br-prob', which adds sections and changes no
    instruction: LLVM then writes down how often it expects each block to run, from a profile where
    there is one. Two costs are summed over the blocks, each times its frequency: 'cycles', as the
    model predicts them, and 'static', which is instructions plus instructions that read memory plus
    instructions that write it. Neither counts cache misses or mispredicted branches. 'cycles' are
    those of a single pass: a block that does not jump back to its own beginning waits for no
    register of its own last pass. 'repeated_cycles', in JSON, are the model's own answers.

    With a profile the totals of a file weight each function by how often it was entered; without
    one they are null.

    Examples:
        nestor costmodel functions kernel.o
        nestor costmodel functions a.o b.o --json
        nestor costmodel functions kernel.o --model llvm-mca
    """

    objects: tyro.conf.Positional[tuple[Path, ...]]
    """Objects or programs, x86-64."""
    model: str = "shipped"
    """'shipped', a model file, 'llvm-mca' or 'bound'."""
    machine: str | None = None
    """The machine to predict for, of those in the model file."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Sum and print; 1 if no function was found."""
        from nestor.cost.elf import mapped
        from nestor.cost.predict.expected import expected_costs
        from nestor.cost.registry import open_model, target_of

        model = open_model(self.model, self.machine)
        target = target_of(model)
        found = {
            str(path): expected_costs(mapped.read(path, frequencies=True), model)
            for path in self.objects
        }
        if self.json:
            print_json(
                about_json(target)
                | {"objects": [_object_json(path, costs) for path, costs in found.items()]}
            )
        else:
            for path, costs in found.items():
                _show(path, costs)
            stdout.print(escape(about(target)), soft_wrap=True)
        return 0 if any(found.values()) else 1


def _object_json(path: str, costs: "list[ExpectedCost]") -> dict[str, Any]:
    return {
        "object": path,
        "total_cycles": _weighted([(c, c.cycles.cycles) for c in costs]),
        "total_static": _weighted([(c, c.static.total) for c in costs]),
        "functions": [
            {
                "function": cost.function.name,
                "names": list(cost.function.names),
                "entry_count": cost.function.entry_count,
                "blocks": len(cost.function.blocks),
                "cycles": cost.cycles.cycles,
                "repeated_cycles": cost.cycles.repeated,
                "unanswered": cost.cycles.unanswered,
                "static": cost.static.total,
                "instructions": cost.static.instructions,
                "reads": cost.static.reads,
                "writes": cost.static.writes,
                "updates": cost.static.updates,
                "undecodable": cost.static.undecodable,
            }
            for cost in costs
        ],
    }


def _weighted(values: "list[tuple[ExpectedCost, float]]") -> float | None:
    """Return the sum weighted by entry counts; None without a profile."""
    counts = [cost.function.entry_count or 0 for cost, _ in values]
    if not any(counts):
        return None
    return math.fsum(count * value for count, (_, value) in zip(counts, values, strict=True))


def _show(path: str, costs: "list[ExpectedCost]") -> None:
    grid = Grid(title=f"{escape(path)}: expected cost of one call")
    grid.add_column("function")
    for name in ("entered", "blocks", "cycles", "static", "instructions", "reads", "writes"):
        grid.add_column(name, justify="right")
    for cost in sorted(costs, key=lambda c: -c.static.total):
        missing = cost.cycles.unanswered
        unanswered = f" [red]({missing} without an answer)[/]" if missing else ""
        static = cost.static
        grid.add_row(
            escape(cost.function.name or "(no name)"),
            f"{cost.function.entry_count:,}" if cost.function.entry_count else "",
            f"{len(cost.function.blocks):,}{unanswered}",
            *(f"{value:,.2f}" for value in (cost.cycles.cycles, static.total)),
            *(f"{value:,.2f}" for value in (static.instructions, static.reads, static.writes)),
        )
    stdout.print(grid)
