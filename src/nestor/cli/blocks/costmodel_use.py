"""``nestor costmodel predict``: what code costs."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.blocks.code import about, about_json, interval, read_code
from nestor.cli.blocks.costmodel import shown
from nestor.cli.console import print_json, stdout
from nestor.cli.remarks import remark

# Models take a second to import, so they are imported when a command runs.
if TYPE_CHECKING:
    from nestor.cost.contract import Prediction
    from nestor.cost.predict.functions import FunctionCost


@dataclass(frozen=True)
class Predict:
    """Predict the cycles of one pass through basic blocks, with a 90 % interval.

    Blocks are hexadecimal, one a word, or one a line in a text file or on standard input.
    Objects, programs, static libraries and assembly files (.s) give functions: the sum of frequency
    times cycles over their blocks, where every block runs once unless --frequencies says how
    often. The sum of functions is static: no cache misses, no mispredicted branches.

    The last line names the machine that the model predicts for. Blocks that the model cannot know
    get no answer, with the reason: what leaves the block, runs in the kernel or waits for something
    outside of the core, and opcodes that were never measured. An opcode that was measured on
    another machine alone is named, and the interval is wider.

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
        from nestor.cost.predict.answers import answers
        from nestor.cost.registry import open_model, target_of

        model = open_model(self.model, self.machine)
        code = read_code(self.code, self.assembly, self.intel)
        counts = functions.read_frequencies(self.frequencies) if self.frequencies else None
        if counts and (missing := functions.unmatched(counts, code.functions)):
            remark(f"{missing} of {len(counts)} blocks of the profile are not in this code")
        target = target_of(model)
        predicted = answers(model, code.blocks)
        costs = functions.predict(model, code.functions, counts)
        if self.json:
            print_json(
                about_json(target)
                | {
                    "blocks": _blocks_json(code.blocks, predicted),
                    "functions": [self._function_json(cost) for cost in costs],
                }
            )
        else:
            if code.blocks:
                _show_blocks(code.blocks, predicted)
            if costs:
                self._show_functions(costs)
            for line in _notes([predicted, *(cost.predicted for cost in costs)]):
                stdout.print(escape(line), soft_wrap=True)
            stdout.print(escape(about(target)), soft_wrap=True)
        found = [predicted.cycles, *(cost.predicted.cycles for cost in costs)]
        return 0 if any(np.isfinite(cycles).any() for cycles in found) else 1

    def _function_json(self, cost: "FunctionCost") -> dict[str, Any]:
        content: dict[str, Any] = {
            "function": cost.function.name,
            "source": cost.function.source,
            "blocks": len(cost.function.blocks),
            "failed": cost.failed,
            "reasons": list(cost.reasons),
            "not_in_training": list(cost.untrained),
            "cycles": float(cost.cycles),
            "low": float(cost.low),
            "high": float(cost.high),
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
            failed = f", [red]{cost.failed} without an answer[/]" if cost.failed else ""
            name = escape(cost.function.name or "(no name)")
            answered = math.isfinite(cost.cycles)
            total = [f"{cost.cycles:,.2f}", interval(cost.low, cost.high)] if answered else []
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


def _blocks_json(blocks: tuple[bytes, ...], predicted: "Prediction") -> list[dict[str, Any]]:
    return [
        {
            "block_hex": block.hex(),
            "cycles": float(predicted.cycles[i]),
            "low": float(predicted.low[i]),
            "high": float(predicted.high[i]),
            "reason": _reason(predicted, i),
            "not_in_training": list(predicted.untrained.get(i, ())),
        }
        for i, block in enumerate(blocks)
    ]


def _reason(predicted: "Prediction", row: int) -> str | None:
    """Return why a block has no answer; None if it has one."""
    if math.isfinite(predicted.cycles[row]):
        return None
    return predicted.refused.get(row, "it cannot be decoded, or the model has no answer for it")


def _notes(found: "list[Prediction]") -> list[str]:
    """Return what to know of the answers, each line once: reasons, and opcodes not in training."""
    reasons = dict.fromkeys(text for one in found for text in one.refused.values())
    opcodes = dict.fromkeys(
        name for one in found for names in one.untrained.values() for name in names
    )
    lines = [f"no answer: {reason}" for reason in reasons]
    if opcodes:
        lines.append(
            f"opcode not in training: {'; '.join(opcodes)} (measured on another machine alone, so"
            " the interval is wider)"
        )
    return lines


def _show_blocks(blocks: tuple[bytes, ...], predicted: "Prediction") -> None:

    grid = Grid("block")
    for name in ("cycles", "90 % interval"):
        grid.add_column(name, justify="right")
    for i, block in enumerate(blocks):
        grid.add_row(shown(block), *_cells(predicted, i))
    stdout.print(grid)


def _cells(predicted: "Prediction", row: int) -> tuple[str, str]:
    if not math.isfinite(predicted.cycles[row]):
        return "[red]no answer[/]" if row in predicted.refused else "[red]undecodable[/]", ""
    return f"{predicted.cycles[row]:,.2f}", interval(predicted.low[row], predicted.high[row])
