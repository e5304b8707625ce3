"""Our cost model on other machines: trained on all labels, and adapted from another's to a few.

    python -m benchmarks.cost_machines LABELS.parquet --splits random sequence-disjoint --seeds 0 21
    python -m benchmarks.cost_machines zen4 --few 3000 --source "AMD Zen 5"

Prints a line of JSON for each run: errors on stable rows of the held-out fifth in per cent, CPU
seconds of the training on one thread. ``--few`` chooses so many blocks of the training side as
``nestor blocks choose`` does and starts from ``--source`` of ``shipped``, which has never seen the
machine that is judged; without it, all rows of the training side train.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

from nestor.cost.blocks import table
from nestor.cost.blocks.splits import split
from nestor.cost.blocks.table import Table
from nestor.cost.core.choice import ChoiceSettings, choose
from nestor.cost.judge.evaluate import evaluate
from nestor.cost.model.model_file import load
from nestor.cost.settings import SPLITS, SplitName
from nestor.cost.training.settings import ADAPTING, TrainingSettings
from nestor.cost.training.train import train


def measured(
    rows: Table, name: SplitName, seed: int, few: int = 0, source: str | None = None
) -> dict[str, Any]:
    """Train on one side of a split and judge by the other.

    :param few: labels to train on; 0: all of that side.
    :param source: the machine of ``shipped`` to start from; None: from no model.
    """
    sides = split(rows, name, seed)
    training = rows.select(sides.train)
    training = training.select(training.stable)
    index = np.arange(len(training))
    if few:
        index = choose(training.blocks, ChoiceSettings(few), seed)
    settings = replace(ADAPTING if few else TrainingSettings(), threads=1)
    start = time.process_time()
    model = train(
        training,
        index,
        settings,
        borrowed=table.named("zen4-sweep"),
        source=None if source is None else load("shipped", source),
    )
    seconds = time.process_time() - start
    result = evaluate(model, rows.select(sides.test))
    stable = result.stable
    return {
        "machine": model.machine,
        "split": name,
        "seed": seed,
        "labels": len(index),
        "source": source,
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
    parser.add_argument("--source", help="the machine of shipped to start from")
    arguments = parser.parse_args()
    rows = table.named(arguments.blocks)
    for name in arguments.splits:
        for seed in arguments.seeds:
            found = measured(rows, name, seed, arguments.few, arguments.source)
            print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
