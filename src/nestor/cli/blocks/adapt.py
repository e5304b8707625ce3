"""``nestor costmodel adapt``: a model of a new machine from a few labels and another's model."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.markup import escape

from nestor.cli.blocks.code import open_own
from nestor.cli.blocks.costmodel import by_machine, show_evaluation
from nestor.cli.console import print_json, progress, stdout
from nestor.cli.options import OutputFile
from nestor.cost.settings import FITS

if TYPE_CHECKING:
    from nestor.cost.blocks.table import Table
    from nestor.cost.model.hybrid import HybridModel


@dataclass(frozen=True)
class Adapt:
    """Make a model of a new machine from a few thousand labels and the model of another one.

    Fits of the core start from the two machines that are most like the new one, each twice, and
    find its settings anew; the model answers with the mean of the four, which errs less than each.
    3,000 blocks of 'nestor blocks choose' are enough for a first model; 'nestor costmodel train'
    is better from some ten thousand on, and its models are four times as fast.

    Examples:
        nestor costmodel adapt --blocks chosen-here.parquet --out here.safetensors
        nestor costmodel adapt --blocks few.parquet --machine "AMD Zen 5" --out here.safetensors
        nestor costmodel adapt --blocks few.parquet --judge more.parquet --out here.safetensors
    """

    blocks: tuple[str, ...]
    """Tables with the columns block_hex, cycles and spread."""
    out: OutputFile
    """The model file to write."""
    model: str = "shipped"
    """The model to start from: 'shipped' or a file of our own kind."""
    machine: str | None = None
    """The machine of that model to start from; the two most like the new one if none is named."""
    fits: int = FITS
    """Fits that the model is the mean of."""
    borrow: tuple[str, ...] = ("zen4-sweep",)
    """Tables of another machine: opcodes that --blocks lacks take their costs from there."""
    judge: str | None = None
    """A table of the new machine to judge the model by."""
    seed: int = 0
    """Seed of the training."""
    jobs: int = 2
    """Fits at the same time."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Adapt, write the model, and print how good it is."""
        import numpy as np

        from nestor.cost.blocks import table
        from nestor.cost.blocks.methods import require_one_method
        from nestor.cost.contract import ModelError
        from nestor.cost.registry import save_model
        from nestor.cost.trainers import training_rows
        from nestor.cost.training.adapt import adapt

        if self.fits < 1:
            raise ModelError(f"--fits {self.fits} is no number of fits; the least is 1.")
        rows = table.joined(self.blocks)
        judged = None if self.judge is None else table.named(self.judge)
        use = training_rows(rows, np.arange(len(rows)))
        labels = rows.select(use)
        require_one_method(labels)
        starts = self._starts(labels)
        start = time.process_time()
        with progress() as report:
            model = adapt(
                rows,
                use,
                list(starts.values()),
                fits=self.fits,
                seed=self.seed,
                jobs=self.jobs,
                borrowed=table.joined(self.borrow) if self.borrow else None,
                progress=report,
            )
        seconds = time.process_time() - start
        save_model(model, self.out)
        results = {} if judged is None else by_machine(self.out, judged)
        if self.json:
            print_json(
                {
                    "model": str(self.out),
                    "from": list(starts),
                    "fits": self.fits,
                    "trained_on": len(use),
                    "cpu_seconds": seconds,
                    "test": {machine: result.to_json() for machine, result in results.items()},
                }
            )
            return 0
        stdout.print(
            f"adapted from {escape(' and '.join(starts))} to {len(use):,} blocks in {seconds:.0f} s"
            f" of CPU time: {escape(str(self.out))}",
            soft_wrap=True,
        )
        for machine, result in results.items():
            show_evaluation(result, machine)
        return 0

    def _starts(self, labels: "Table") -> dict[str, "HybridModel"]:
        """Return the models of other machines that fits start from."""
        from nestor.cost.judge.closest import closest_first
        from nestor.cost.model.model_file import load_models, machines
        from nestor.cost.training.adapt import STARTS

        open_own(self.model, self.machine)  # or say why not
        if self.machine is not None:
            names = [self.machine]
        else:
            models = {name: open_own(self.model, name) for name in machines(self.model)}
            names = closest_first(models, labels)[:STARTS]
        return {name: load_models(self.model, name)[0] for name in names}
