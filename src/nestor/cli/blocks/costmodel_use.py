"""``nestor costmodel predict`` and ``explain``: what code costs, and why."""

import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.blocks.costmodel import shown
from nestor.cli.console import print_json, stdout
from nestor.cli.remarks import remark

# Models take a second to import, so they are imported when a command runs.
if TYPE_CHECKING:
    from nestor.cost.contract import Prediction
    from nestor.cost.model.explain import Explanation
    from nestor.cost.predict.functions import FunctionCost
    from nestor.cost.predict.inputs import Code


@dataclass(frozen=True)
class Predict:
    """Predict the cycles of one pass through basic blocks, with a 90 % interval.

    Blocks are hexadecimal, one a word, or one a line in a text file or on standard input.
    Objects, programs, static libraries and assembly files (.s) give functions: the sum of frequency
    times cycles over their blocks, where every block runs once unless --frequencies says how
    often. The sum of functions is static: no cache misses, no mispredicted branches.

    Examples:
        nestor costmodel predict 4801d8480fafc3
        echo 4801d8480fafc3 | nestor costmodel predict --json
        nestor costmodel predict --assembly 'addq %rbx, %rax; imulq %rbx, %rax'
        nestor costmodel predict kernel.o --frequencies kernel.csv
        nestor costmodel predict kernel.s --list-blocks
    """

    code: tyro.conf.Positional[tuple[str, ...]] = ()
    """Blocks in hexadecimal, or files; nothing: standard input."""
    model: str = "shipped"
    """'shipped', a model file, 'llvm-mca' or 'bound'."""
    machine: str | None = None
    """The machine to predict for, of those in the model file."""
    assembly: str | None = None
    """Assembly text instead of files; instructions are parted by ';' or lines."""
    intel: bool = False
    """Assembly is in Intel's syntax."""
    frequencies: Path | None = None
    """How often each block of a function runs: CSV with the header function,block,count, where
    blocks are numbered from 0 as --list-blocks shows them."""
    list_blocks: bool = False
    """Show every block of the functions."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Predict and print; 1 if no block has an answer."""
        import numpy as np

        from nestor.cost.predict import functions
        from nestor.cost.registry import open_model

        model = open_model(self.model, self.machine)
        code = _code(self.code, self.assembly, self.intel)
        counts = functions.read_frequencies(self.frequencies) if self.frequencies else None
        if counts and (missing := functions.unmatched(counts, code.functions)):
            remark(f"{missing} of {len(counts)} blocks of the profile are not in this code")
        predicted = model.predict(code.blocks)
        costs = functions.predict(model, code.functions, counts)
        if self.json:
            print_json(
                {
                    "blocks": _blocks_json(code.blocks, predicted),
                    "functions": [self._function_json(cost) for cost in costs],
                }
            )
        else:
            if code.blocks:
                _show_blocks(code.blocks, predicted)
            if costs:
                self._show_functions(costs)
        answers = [predicted.cycles, *(cost.predicted.cycles for cost in costs)]
        return 0 if any(np.isfinite(cycles).any() for cycles in answers) else 1

    def _function_json(self, cost: "FunctionCost") -> dict[str, Any]:
        content: dict[str, Any] = {
            "function": cost.function.name,
            "source": cost.function.source,
            "blocks": len(cost.function.blocks),
            "failed": cost.failed,
            "cycles": _number(cost.cycles),
            "low": _number(cost.low),
            "high": _number(cost.high),
        }
        if self.list_blocks:
            listed = _blocks_json(cost.function.blocks, cost.predicted)
            content["block_list"] = [
                {"block": number, "frequency": frequency} | block
                for number, (frequency, block) in enumerate(
                    zip(cost.frequency, listed, strict=True)
                )
            ]
        return content

    def _show_functions(self, costs: "list[FunctionCost]") -> None:

        grid = Grid("function", "block")
        for name in ("frequency", "cycles", "90 % interval"):
            grid.add_column(name, justify="right")
        for cost in costs:
            failed = f" [red]{cost.failed} failed[/]" if cost.failed else ""
            name = escape(cost.function.name or "(no name)")
            total = [f"{cost.cycles:,.2f}", _range(cost.low, cost.high)]
            count = len(cost.function.blocks)
            size = f"{count} block{'s' if count > 1 else ''}{failed}"
            grid.add_row(name, size, "", *total)
            if self.list_blocks:
                for number, block in enumerate(cost.function.blocks):
                    grid.add_row(
                        "",
                        f"{number}  {shown(block)}",
                        f"{cost.frequency[number]:g}",
                        *_cells(cost.predicted, number),
                    )
        stdout.print(grid)


@dataclass(frozen=True)
class Explain:
    """Show what bounds a block (ports, longest chain or front end) and what the model adds.

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
        from nestor.cost.model.hybrid import HybridModel
        from nestor.cost.registry import open_model

        model = open_model(self.model, self.machine)
        if not isinstance(model, HybridModel):
            raise ModelError(
                f"Only our own kind of model can be explained, and '{self.model}' is another; name"
                " 'shipped' or a file of 'nestor costmodel train'."
            )
        code = _code(self.code, self.assembly, self.intel)
        blocks = [("", block) for block in code.blocks]
        blocks += [(f.name, block) for f in code.functions for block in f.blocks]
        found: list[tuple[str, bytes, Explanation | str]] = []
        for function, block in blocks:
            try:
                found.append((function, block, explain(model, block)))
            except ModelError as error:
                found.append((function, block, str(error)))
        if self.json:
            print_json([_explanation_json(*item) for item in found])
        else:
            for item in found:
                _show_explanation(*item)
        return 0 if any(not isinstance(what, str) for _, _, what in found) else 1


def _code(words: tuple[str, ...], assembly: str | None, intel: bool) -> "Code":
    """Return the code that the command line names, or that of standard input."""
    from nestor.cost.contract import ModelError
    from nestor.cost.predict import inputs

    if assembly is not None:
        if words:
            raise ModelError("Give either --assembly or code, not both.")
        return inputs.Code(functions=inputs.from_assembly(assembly, "--assembly", intel=intel))
    if words:
        return inputs.read(words, intel=intel)
    blocks = inputs.from_lines(sys.stdin.buffer.read().decode(errors="replace"))
    if not blocks:
        raise ModelError("There is no code on standard input; name blocks or files.")
    return inputs.Code(blocks)


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
    bounds = ", ".join(f"{name} {cycles:.2f}" for name, cycles in explanation.bounds if cycles > 0)
    memory = "".join(f"; {name}: {count:g}" for name, count in explanation.memory)
    stdout.print(
        f"{explanation.cycles:.2f} cycles ({_range(explanation.low, explanation.high)}), bound by"
        f" {' and '.join(explanation.limits)}\n"
        f"at least: {bounds}{memory}\n"
        f"simulated {explanation.simulated:.2f}, the learned part {explanation.learned:+.2f}",
        soft_wrap=True,
    )


def _blocks_json(blocks: tuple[bytes, ...], predicted: "Prediction") -> list[dict[str, Any]]:
    return [
        {
            "block_hex": block.hex(),
            "cycles": _number(predicted.cycles[i]),
            "low": _number(predicted.low[i]),
            "high": _number(predicted.high[i]),
        }
        for i, block in enumerate(blocks)
    ]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _show_blocks(blocks: tuple[bytes, ...], predicted: "Prediction") -> None:

    grid = Grid("block")
    for name in ("cycles", "90 % interval"):
        grid.add_column(name, justify="right")
    for i, block in enumerate(blocks):
        grid.add_row(shown(block), *_cells(predicted, i))
    stdout.print(grid)


def _cells(predicted: "Prediction", row: int) -> tuple[str, str]:
    if not math.isfinite(predicted.cycles[row]):
        return "[red]undecodable[/]", ""
    return f"{predicted.cycles[row]:,.2f}", _range(predicted.low[row], predicted.high[row])


def _range(low: float, high: float) -> str:
    return f"{low:,.2f} … {high:,.2f}" if math.isfinite(low) and math.isfinite(high) else "unknown"
