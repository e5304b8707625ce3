"""``nestor costmodel audit``: where LLVM's scheduling model and measurements disagree."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.blocks.costmodel import shown
from nestor.cli.console import json_text, print_json, progress, stdout
from nestor.cli.options import OutputFile

if TYPE_CHECKING:
    from nestor.cost.blocks.table import Table
    from nestor.cost.judge.audit import Finding


@dataclass(frozen=True)
class Audit:
    """Show where LLVM's scheduling model and measured blocks disagree, the worst form first.

    llvm-mca estimates every stable block. A form (the encoding, mem if it has a memory operand) is
    blamed for the median error of its blocks once that of worse forms is taken out. 'ratio' is
    estimated by measured cycles of the blocks that have the form, 'factor' is what of it is the
    form's own: 2 means that llvm-mca says twice the cycles, 0.5 half. 'weight' is the sum of errors
    that the factor explains. Blocks that differ in registers and constants alone count once.

    Examples:
        nestor costmodel audit --cpu sapphirerapids --blocks here.parquet
        nestor costmodel audit --cpu znver5 --by instruction --json
        nestor costmodel audit --cpu sapphirerapids --blocks here.parquet --limit 10000
    """

    cpu: str
    """The processor whose scheduling model is judged, as LLVM names it."""
    blocks: str = "zen5"
    """A table of measured blocks, or a data set: zen4, zen4-sweep, zen5."""
    machine: str | None = None
    """Judge by the rows of this machine alone."""
    by: Literal["form", "instruction"] = "form"
    """What is blamed: encodings, or mnemonics."""
    limit: int = 0
    """Judge by so many stable blocks, drawn at random; 0: all."""
    top: int = 25
    """Findings to show."""
    out: OutputFile | None = None
    """Write all findings as JSON here too."""
    seed: int = 0
    """Seed of the draw."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Estimate, judge and print."""
        from nestor.cost.baselines import mca
        from nestor.cost.blocks import table
        from nestor.cost.contract import ModelError
        from nestor.cost.core.block_forms import forms_of
        from nestor.cost.judge.audit import audit
        from nestor.files import write_atomically

        rows = _judged(table.named(self.blocks), self.machine, self.limit, self.seed)
        if not len(rows):
            raise ModelError(f"{self.blocks} has no stable rows to judge by; measure them first.")
        with progress() as report:
            estimated = mca.estimate(rows.blocks, self.cpu, report)
        forms = forms_of(rows.blocks, by_mnemonic=self.by == "instruction")
        found = audit(forms.names, forms.keys, forms.lengths, estimated, rows.cycles)
        content = _content(self, rows, estimated, found)
        if self.out is not None:
            write_atomically(self.out, json_text(content) + "\n")
        if self.json:
            print_json(content)
        else:
            _show(content, self.top)
        return 0


def _judged(rows: "Table", machine: str | None, limit: int, seed: int) -> "Table":
    import numpy as np

    usable = rows.stable & (rows.cycles > 0)
    if machine is not None:
        usable &= np.array([name == machine for name in rows.machine or ("",) * len(rows)])
    chosen = np.flatnonzero(usable)
    if 0 < limit < len(chosen):
        chosen = np.sort(np.random.default_rng(seed).permutation(chosen)[:limit])
    return rows.select(chosen)


def _content(
    command: Audit, rows: "Table", estimated: Any, found: "tuple[Finding, ...]"
) -> dict[str, Any]:
    import numpy as np

    answered = np.isfinite(estimated)
    errors = 100 * np.abs(estimated[answered] / rows.cycles[answered] - 1)
    return {
        "cpu": command.cpu,
        "machine": sorted(set(rows.machine or ())),
        "by": command.by,
        "blocks": len(rows),
        "without_estimate": int((~answered).sum()),
        "mape": float(errors.mean()) if len(errors) else None,
        "median_ape": float(np.median(errors)) if len(errors) else None,
        "findings": [
            {
                "name": str(one.name),
                "blocks": one.blocks,
                "ratio": one.ratio,
                "factor": one.factor,
                "weight": one.saved,
                "agreeing": one.agreeing,
                "examples": [
                    {
                        "block_hex": rows.blocks[row].hex(),
                        "measured": float(rows.cycles[row]),
                        "estimated": float(estimated[row]),
                    }
                    for row in one.examples
                ],
            }
            for one in found
        ],
    }


def _show(content: dict[str, Any], top: int) -> None:
    grid = Grid(title=f"llvm-mca -mcpu={escape(content['cpu'])} by measured blocks")
    for name in (content["by"], "blocks", "ratio", "factor", "weight", "measured", "llvm-mca"):
        grid.add_column(name, justify="left" if name == content["by"] else "right")
    grid.add_column("block")
    for one in content["findings"][:top]:
        cells = [escape(one["name"]), f"{one['blocks']:,}", f"{one['ratio']:.2f}"]
        cells += [f"{one['factor']:.2f}", f"{one['weight']:.0f}"]
        for number, example in enumerate(one["examples"]):
            texts = [f"{example['measured']:.2f}", f"{example['estimated']:.2f}"]
            texts.append(shown(bytes.fromhex(example["block_hex"])))
            grid.add_row(*(cells if not number else [""] * len(cells)), *texts)
    stdout.print(grid)
    if content["mape"] is not None:
        stdout.print(
            f"{content['blocks']:,} blocks, {content['without_estimate']:,} without an estimate;"
            f" MAPE {content['mape']:.1f} %, median {content['median_ape']:.1f} %, not rescaled;"
            f" {len(content['findings']):,} findings",
            soft_wrap=True,
        )
