"""``nestor costmodel explain``: how the model comes to its answer."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.blocks.code import about, about_json, interval, open_explainable, read_code
from nestor.cli.blocks.costmodel import shown
from nestor.cli.console import print_json, stdout

if TYPE_CHECKING:
    from nestor.cost.model.explain import Explanation


@dataclass(frozen=True)
class Explain:
    """Show how the model comes to its answer: the simulated core, and what was learned of it.

    The simulated core says how many cycles each resource (ports, longest chain, front end) keeps it
    busy, and which of them limits it. The learned correction is what labels of like code differ
    from the simulation by; it may go below any of these, since the labels do (repetitions of a
    block overlap while they are measured). Cycles are those of the simulation plus the correction.

    Code is named as for 'nestor costmodel predict'.

    Examples:
        nestor costmodel explain 4801d8480fafc3
        nestor costmodel explain --assembly 'mulsd %xmm1, %xmm0; addsd %xmm2, %xmm0'
        nestor costmodel explain kernel.s --json
    """

    code: tyro.conf.Positional[tuple[str, ...]] = ()
    """Blocks in hexadecimal, or files; nothing: standard input."""
    model: str = "shipped"
    """'shipped' or a file of our own kind of model."""
    machine: str | None = None
    """The machine to predict for, of those in the model file."""
    assembly: str | None = None
    """Assembly text instead of files; instructions are parted by ';' or lines."""
    intel: bool = False
    """Assembly is in Intel's syntax."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Explain every block and print; 1 if none is code."""
        from nestor.cost.contract import ModelError
        from nestor.cost.model.explain import explain
        from nestor.cost.registry import target_of

        model = open_explainable(self.model, self.machine)
        code = read_code(self.code, self.assembly, self.intel)
        blocks = [("", block) for block in code.blocks]
        blocks += [(f.name, block) for f in code.functions for block in f.blocks]
        found: list[tuple[str, bytes, Explanation | str]] = []
        for function, block in blocks:
            try:
                found.append((function, block, explain(model, block)))
            except ModelError as error:
                found.append((function, block, str(error)))
        if self.json:
            print_json([_explanation_json(*item) | about_json(target_of(model)) for item in found])
        else:
            for item in found:
                _show_explanation(*item)
            stdout.print(escape(about(target_of(model))), soft_wrap=True)
        return 0 if any(not isinstance(what, str) for _, _, what in found) else 1


def _explanation_json(
    function: str, block: bytes, explanation: "Explanation | str"
) -> dict[str, Any]:
    content: dict[str, Any] = {"function": function, "block_hex": block.hex()}
    if isinstance(explanation, str):
        return content | {"error": explanation}
    return content | asdict(explanation) | {"learned": explanation.learned}


def _show_explanation(function: str, block: bytes, explanation: "Explanation | str") -> None:

    if isinstance(explanation, str):
        stdout.print(f"[red]{shown(block)}[/]: {escape(explanation)}", soft_wrap=True)
        return
    grid = Grid(title=escape(function) or None)
    for name in ("instruction", "slots", "latency", "ports", "on the chain"):
        grid.add_column(name, justify="right" if name in ("slots", "latency") else "left")
    for row in explanation.instructions:
        chained = "yes" if row.on_chain else ""
        cells = (f"{row.slots}", f"{row.latency}", escape(row.ports), chained)
        grid.add_row(escape(row.text), *cells)
    stdout.print(grid)
    resources = ", ".join(
        f"{name} {cycles:.2f}" for name, cycles in explanation.simulated_resources if cycles > 0
    )
    memory = "".join(f"; {name}: {count:g}" for name, count in explanation.memory)
    stdout.print(
        f"{explanation.cycles:.2f} cycles ({interval(explanation.low, explanation.high)}) ="
        f" {explanation.simulated:.2f} simulated {explanation.learned:+.2f} learned from labels of"
        f" like code\n"
        f"the simulated core is limited by {' and '.join(explanation.limits)}; cycles by resource:"
        f" {resources}{memory}",
        soft_wrap=True,
    )
    if explanation.untrained:
        names = escape("; ".join(explanation.untrained))
        stdout.print(f"opcode not in training: {names}", soft_wrap=True)
