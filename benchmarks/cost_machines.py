"""Our cost model on other machines: trained on all labels, and adapted from another's to a few.

    python -m benchmarks.cost_machines LABELS.parquet --splits random sequence-disjoint --seeds 0 21
    python -m benchmarks.cost_machines zen4 --few 3000 --from "AMD Zen 5" "Intel Redwood Cove"

Prints a line of JSON for each run: errors on stable rows of the held-out fifth in per cent, CPU
seconds of the training. ``--few`` chooses so many blocks of the training side as ``nestor blocks
choose`` does and adapts the models of the machines ``--from`` of ``shipped``, which have never seen
the machine that is judged, as ``nestor costmodel adapt`` does; without it, all rows of the training
side train.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from nestor.cost.blocks import table
from nestor.cost.blocks.splits import split
from nestor.cost.blocks.table import Table
from nestor.cost.core.choice import ChoiceSettings, choose
from nestor.cost.judge.evaluate import evaluate
from nestor.cost.model.mean import OwnModel
from nestor.cost.model.model_file import load_models
from nestor.cost.settings import FITS, SPLITS, SplitName
from nestor.cost.training.adapt import adapt
from nestor.cost.training.settings import TrainingSettings
from nestor.cost.training.train import train


def measured(
    rows: Table,
    name: SplitName,
    seed: int,
    few: int = 0,
    machines: Sequence[str] = (),
    fits: int = FITS,
    jobs: int = 1,
) -> dict[str, Any]:
    """Train on one side of a split and judge by the other.

    :param few: labels to train on; 0: all of that side.
    :param machines: those of ``shipped`` to start from, where labels are few.
    :param fits: the model is the mean of so many then.
    """
    sides = split(rows, name, seed)
    training = rows.select(sides.train)
    training = training.select(training.stable)
    index = np.arange(len(training))
    borrowed = table.named("zen4-sweep")
    start = time.process_time()
    model: OwnModel
    if few:
        index = choose(training.blocks, ChoiceSettings(few), seed)
        starts = [load_models("shipped", machine)[0] for machine in machines]
        model = adapt(training, index, starts, fits=fits, seed=seed, jobs=jobs, borrowed=borrowed)
    else:
        model = train(training, index, TrainingSettings(threads=jobs), borrowed=borrowed)
    seconds = time.process_time() - start
    result = evaluate(model, rows.select(sides.test))
    stable = result.stable
    return {
        "machine": model.machine,
        "split": name,
        "seed": seed,
        "labels": len(index),
        "from": list(machines),
        "fits": fits if few else 1,
        "n": stable.n,
        "mape": stable.mape,
        "interval": [result.mape_interval.low, result.mape_interval.high],
        "median": stable.median_ape,
        "kendall": stable.kendall,
        "coverage": result.coverage.share,
        "blocks_per_second": result.blocks_per_second,
        "cpu_seconds": seconds,
    }


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("blocks", help="a table, or a data set's name")
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=["random"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--few", type=int, default=0, help="labels to adapt to; 0: train on all")
    parser.add_argument("--from", nargs="+", dest="machines", default=[], metavar="MACHINE")
    parser.add_argument("--fits", type=int, default=FITS, help="fits to the labels of --few")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    arguments = parser.parse_args()
    if bool(arguments.few) != bool(arguments.machines):
        parser.error("--few and --from go together.")
    rows = table.named(arguments.blocks)
    for name in arguments.splits:
        for seed in arguments.seeds:
            found = measured(
                rows,
                name,
                seed,
                arguments.few,
                arguments.machines,
                arguments.fits,
                arguments.jobs,
            )
            print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
