"""``nestor costmodel train`` and ``evaluate``: models of what blocks cost."""

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.markup import escape
from rich.table import Table as Grid

from nestor.cli.console import print_json, progress, stdout
from nestor.cli.options import OutputFile, refuse_idle
from nestor.cli.remarks import remark
from nestor.cost.settings import Kind, SplitName, TrainerSettings

# Models take a second to import, so they are imported when a command runs.
if TYPE_CHECKING:
    from nestor.cost.blocks.table import Table
    from nestor.cost.judge.evaluate import Evaluation
    from nestor.cost.judge.metrics import Quality
    from nestor.cost.registry import Target

_SHOWN = 60
"""Characters of a block's assembly."""
_SHOWN_BYTES = 4096
_EXAMPLES_SHOWN = 5


@dataclass(frozen=True)
class Train:
    """Train a cost model on a table of measured blocks, and judge it by the rows it never saw.

    The kinds are our own model and published ones for comparison: llvm-mca and an analytical bound,
    both rescaled to the measurements, an LSTM in the way of Ithemal and a graph network in the way
    of GRANITE. Only rows with a stable label train. A network that is interrupted goes on when the
    same command is run again. MAPE and the other errors are in per cent.

    Examples:
        nestor costmodel train --out zen5.safetensors
        nestor costmodel train --blocks mine.parquet --out m.safetensors --split sequence-disjoint
        nestor costmodel train --kind lstm --minutes 12 --out lstm.safetensors --json
        nestor costmodel train --blocks mine.parquet --split none --out mine.safetensors
    """

    out: OutputFile
    """The model file to write."""
    blocks: tuple[str, ...] = ("zen5",)
    """Tables with the columns block_hex, cycles and spread, or data sets: zen4, zen4-sweep, zen5.
    The rows of several are joined."""
    borrow: tuple[str, ...] = ("zen4-sweep",)
    """Tables of another machine, for our own model: opcodes that --blocks lacks take their costs
    from there, with wider intervals; without any they get no answer."""
    kind: Kind = "own"
    """What to train."""
    split: SplitName | Literal["none"] = "random"
    """Rows held out to judge by: blocks drawn at random, whole opcode sequences, or none."""
    test: float = 0.2
    """The share held out."""
    seed: int = 0
    """Seed of the split and of the training."""
    trainer: tyro.conf.OmitArgPrefixes[TrainerSettings] = field(default_factory=TrainerSettings)
    """What only some kinds need."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Train, write the model, and print how good it is on the rows held out."""
        import numpy as np

        from nestor.cost.blocks import table
        from nestor.cost.blocks.splits import split
        from nestor.cost.contract import ModelError
        from nestor.cost.registry import save_model
        from nestor.cost.trainers import train, training_rows

        if not 0 < self.test < 1:
            raise ModelError(
                f"--test {self.test} is not a share of the rows; name one between 0 and 1."
            )
        kind = f"with the kind {self.kind}"
        if self.kind != "own":
            refuse_idle(self, kind, "borrow")
        if self.kind in ("own", "bound"):
            refuse_idle(self.trainer, kind)
        if self.split == "none":
            refuse_idle(self, "with --split none", "test")
        rows = table.joined(self.blocks)
        train_on, judge_by = np.arange(len(rows)), None
        if self.split != "none":
            parts = split(rows, self.split, self.seed, self.test)
            train_on, judge_by = parts.train, rows.select(parts.test)
        train_on = training_rows(rows, train_on)
        start = time.process_time()
        with progress() as report:
            model = train(
                self.kind,
                rows,
                train_on,
                self.trainer,
                self.seed,
                self.out.with_suffix(".checkpoint"),
                report,
                table.joined(self.borrow) if self.borrow else None,
            )
        seconds = time.process_time() - start
        save_model(model, self.out)
        results = {} if judge_by is None else by_machine(self.out, judge_by)
        content = {
            "model": str(self.out),
            "kind": self.kind,
            "split": self.split,
            "seed": self.seed,
            "trained_on": len(train_on),
            "cpu_seconds": seconds,
            "test": {machine: result.to_json() for machine, result in results.items()},
        }
        if self.json:
            print_json(content)
            return 0
        stdout.print(
            f"{self.kind} model trained on {len(train_on):,} blocks in {seconds:.0f} s of CPU time:"
            f" {escape(str(self.out))}",
            soft_wrap=True,
        )
        for machine, result in results.items():
            show_evaluation(result, machine)
        return 0


@dataclass(frozen=True)
class Join:
    """Write one file of our own models of several machines, each as good as it was alone.

    Other commands choose by --machine; without it they take the first machine of the first file.

    Examples:
        nestor costmodel join here.safetensors there.safetensors --out both.safetensors
        nestor costmodel predict 4801d8 --model both.safetensors --machine "AMD Zen 5"
    """

    models: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The model files."""
    out: OutputFile
    """The model file to write."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Write the file and name its machines."""
        from nestor.cost.model.model_file import join

        names = join(self.models, self.out)
        if self.json:
            print_json({"model": str(self.out), "machines": list(names)})
        else:
            stdout.print(escape(f"{self.out}: {', '.join(names)}"), soft_wrap=True)
        return 0


@dataclass(frozen=True)
class Evaluate:
    """Judge a cost model by measured blocks.

    mape and median_ape are in per cent of the measured cycles; kendall (tau-b) and spearman compare
    the order of the blocks. Blocks that the model cannot answer are counted as failed and are in no
    mean. stable_only judges by the rows whose spread is below 0.05 alone, as do the coverage of the
    90 % interval and the tables by length and category (by all rows if none is stable). Intervals
    are bootstraps over opcode sequences. blocks_per_second is per second of CPU time, in one batch,
    decoding included.

    A model is 'shipped', a file, or 'llvm-mca' or 'bound' as they are, not rescaled.

    Examples:
        nestor costmodel evaluate --model shipped --blocks fresh.parquet --json
        nestor costmodel evaluate --model llvm-mca --blocks fresh.parquet
        nestor costmodel evaluate --model zen5.safetensors --blocks fresh.parquet
    """

    blocks: str
    """A table with the columns block_hex, cycles and spread, or a data set: zen4, zen4-sweep,
    zen5."""
    model: str = "shipped"
    """The model to judge."""
    machine: str | None = None
    """Judge by the rows of this machine alone, and predict for it."""
    seed: int = 0
    """Seed of the bootstrap."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Evaluate and print."""
        from nestor.cost.blocks import table
        from nestor.cost.judge.evaluate import evaluate
        from nestor.cost.registry import open_model, target_of

        rows = table.named(self.blocks)
        if self.machine is not None:
            rows = _rows_of(rows, self.machine, f"The table {self.blocks}")
        model = open_model(self.model, self.machine)
        result = evaluate(model, rows, seed=self.seed)
        target = target_of(model)
        about = {
            "machine": target.machine or None,
            "label_method": target.method or None,
            "remark": _mismatch(rows, target),
        }
        if about["remark"]:
            remark(about["remark"])
        if self.json:
            print_json(result.to_json() | about)
        else:
            show_evaluation(result, target.machine)
        return 0


def _mismatch(rows: "Table", target: "Target") -> str | None:
    """Return what to know of labels that are not those which the model predicts; None if they are.

    A machine or method that the table or the model does not name says nothing.
    """
    parts = []
    for what, of_model, of_rows in (
        ("of", target.machine, rows.machine),
        ("measured by", target.method, rows.backend),
    ):
        others = sorted({name for name in of_rows or () if name and of_model} - {of_model})
        if others:
            parts.append(
                f"labels {what} {', '.join(others)} and a model of labels {what} {of_model}"
            )
    if not parts:
        return None
    return f"{'; '.join(parts)} do not compare: the errors say how the two differ, too"


def by_machine(model: Path, rows: "Table") -> "dict[str, Evaluation]":
    """Judge a model by the rows of each machine; the name is empty where the table has none."""
    from nestor.cost.judge.evaluate import evaluate
    from nestor.cost.registry import open_model

    if rows.machine is None:
        return {"": evaluate(open_model(model), rows)}
    names = sorted(set(rows.machine))
    return {
        name: evaluate(open_model(model, name), _rows_of(rows, name, "The table")) for name in names
    }


def _rows_of(rows: "Table", machine: str, table: str) -> "Table":
    import numpy as np

    from nestor.cost.contract import ModelError

    of_it = np.array([name == machine for name in rows.machine or ()], dtype=np.bool_)
    if not of_it.any():
        present = ", ".join(sorted(set(rows.machine or ()))) or "none"
        raise ModelError(f"{table} has no rows of the machine '{machine}'; it has {present}.")
    return rows.select(of_it)


def show_evaluation(result: "Evaluation", machine: str = "") -> None:
    """Print how good a model is on the rows of a machine."""
    where = f"a model of {escape(machine)}: " if machine else ""
    grid = Grid(title=f"{where}errors in per cent of the measured cycles")
    for name in ("rows", "n", "MAPE", "median", "Kendall", "Spearman"):
        grid.add_column(name, justify="left" if name == "rows" else "right")
    grid.add_row("stable", *_quality_cells(result.stable))
    grid.add_row("all", *_quality_cells(result.every), end_section=True)
    for name, quality in result.by_length.items():
        grid.add_row(f"{name} instructions", *_quality_cells(quality))
    grid.add_section()
    for name, quality in result.by_category.items():
        grid.add_row(name, *_quality_cells(quality))
    stdout.print(grid)
    interval, coverage = result.mape_interval, result.coverage
    inside = (
        f"90 % interval holds {coverage.share:.1f} %, mean width {coverage.width:.1f} %; "
        if coverage.share is not None and coverage.width is not None
        else ""
    )
    stdout.print(
        f"MAPE {interval.mean:.2f} % (95 % interval {interval.low:.2f} … {interval.high:.2f});"
        f" {inside}{result.failed:,} failed, {result.unlabelled:,} without a label;"
        f" {result.blocks_per_second:,.0f} blocks per CPU-second",
        soft_wrap=True,
    )
    stdout.print("the worst:")
    for worst in result.worst[:_EXAMPLES_SHOWN]:
        stdout.print(
            f"  measured {worst.measured:,.2f}, predicted {worst.predicted:,.2f}:"
            f" {shown(bytes.fromhex(worst.block_hex))}",
            soft_wrap=True,
        )


def _quality_cells(quality: "Quality") -> list[str]:
    values = asdict(quality)
    numbers = [values[name] for name in ("mape", "median_ape", "kendall", "spearman")]
    digits = (2, 2, 3, 3)
    cells = ["" if x is None else f"{x:.{d}f}" for x, d in zip(numbers, digits, strict=True)]
    return [f"{quality.n:,}", *cells]


def shown(block: bytes) -> str:
    """Return the block's assembly, or its bytes if they cannot be decoded, cut to one line."""
    from nestor.cost.isa.decoding import DecodeError, decode

    try:
        text = "; ".join(instruction.text for instruction in decode(block[:_SHOWN_BYTES]))
    except DecodeError:
        text = block[:_SHOWN_BYTES].hex()
    return escape(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
