"""``nestor costmodel adapt``: a model of a new machine from a few labels and another's model."""

import time
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from nestor.cli.blocks.costmodel import by_machine, show_evaluation
from nestor.cli.console import print_json, progress, stdout


@dataclass(frozen=True)
class Adapt:
    """Make a model of a new machine from a few thousand labels and the model of another one.

    The fit of the core starts from the other machine's, and its settings are found anew. 3,000
    blocks of 'nestor blocks choose' are enough for a first model; 'nestor costmodel train' is
    better from some ten thousand on.

    Examples:
        nestor costmodel adapt --blocks chosen-here.parquet --out here.safetensors
        nestor costmodel adapt --blocks few.parquet --machine "AMD Zen 5" --out here.safetensors
        nestor costmodel adapt --blocks few.parquet --judge more.parquet --out here.safetensors
    """

    blocks: tuple[str, ...]
    """Tables with the columns block_hex, cycles and spread."""
    out: Path
    """The model file to write."""
    model: str = "shipped"
    """The model to start from: 'shipped' or a file of our own kind."""
    machine: str | None = None
    """The machine of that model to start from; the one most like the new one if none is named."""
    borrow: tuple[str, ...] = ("zen4-sweep",)
    """Tables of another machine: opcodes that --blocks lacks take their costs from there."""
    judge: str | None = None
    """A table of the new machine to judge the model by."""
    seed: int = 0
    """Seed of the training."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Adapt, write the model, and print how good it is."""
        import numpy as np

        from nestor.cli.blocks.code import open_explainable
        from nestor.cost.blocks import table
        from nestor.cost.blocks.methods import require_one_method
        from nestor.cost.judge.closest import closest
        from nestor.cost.model.model_file import machines
        from nestor.cost.registry import save_model
        from nestor.cost.trainers import prepare_folder, training_rows
        from nestor.cost.training.settings import ADAPTING
        from nestor.cost.training.train import train

        prepare_folder(self.out)
        source = open_explainable(self.model, self.machine)
        rows = table.joined(self.blocks)
        judged = None if self.judge is None else table.named(self.judge)
        use = training_rows(rows, np.arange(len(rows)))
        labels = rows.select(use)
        require_one_method(labels)
        if self.machine is None:
            others = {name: open_explainable(self.model, name) for name in machines(self.model)}
            source = others[closest(others, labels)]
        start = time.process_time()
        with progress() as report:
            borrowed = table.joined(self.borrow) if self.borrow else None
            model = train(rows, use, ADAPTING, self.seed, report, borrowed, source)
        seconds = time.process_time() - start
        save_model(model, self.out)
        results = {} if judged is None else by_machine(self.out, judged)
        if self.json:
            print_json(
                {
                    "model": str(self.out),
                    "from": source.machine,
                    "trained_on": len(use),
                    "cpu_seconds": seconds,
                    "test": {machine: result.to_json() for machine, result in results.items()},
                }
            )
            return 0
        stdout.print(
            f"adapted from {escape(source.machine)} to {len(use):,} blocks in {seconds:.0f} s of"
            f" CPU time: {escape(str(self.out))}",
            soft_wrap=True,
        )
        for machine, result in results.items():
            show_evaluation(result, machine)
        return 0
