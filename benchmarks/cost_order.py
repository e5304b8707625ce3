"""Where our cost model loses the order of blocks, and what moving answers to levels does to it.

    python -m benchmarks.cost_order [--split sequence-disjoint] [--seed 1]

Takes the predictions that ``benchmarks.cost_models`` kept of the model without its levels, and
prints: pairs of blocks in the wrong order by the distance of their labels; MAPE, median and
Kendall for several reaches of the levels; how far the labels of one and the same code scatter.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np

from benchmarks.cost_models import NO_LEVELS, Run
from nestor.cost.blocks import table
from nestor.cost.blocks.splits import split
from nestor.cost.judge import metrics
from nestor.cost.model import levels
from nestor.cost.settings import SPLITS

PAIRS = 4_000_000
EDGES = (0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 10)
REACHES = (0, 0.005, 0.01, 0.02, 0.03, 0.05)
PUSH = 0x68
"""The opcode of a push of a constant, five bytes long."""


def main() -> None:
    """Compute and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("--split", choices=SPLITS, default="random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path(".nestor/cost-models"))
    arguments = parser.parse_args()
    rows = table.named("zen5")
    parts = split(rows, arguments.split, arguments.seed)
    kept = np.load(Run(NO_LEVELS, arguments.split, arguments.seed).path(arguments.folder, ".npy"))
    usable = rows.stable[parts.test] & np.isfinite(kept[0])
    measured = rows.cycles[parts.test][usable]
    logs, predicted = np.log(measured), np.log(kept[0][usable])

    first, second = np.random.default_rng(0).integers(0, len(logs), (2, PAIRS))
    distance = np.abs(logs[first] - logs[second])
    wrong = (logs[first] - logs[second]) * (predicted[first] - predicted[second]) < 0
    print("labels apart by   of all pairs   wrong   of all wrong ones")
    for low, high in itertools.pairwise(EDGES):
        inside = (distance >= low) & (distance < high)
        share = wrong[inside].sum() / wrong.sum()
        print(f"{low:6.3f} to {high:6.3f} {inside.mean():13.1%} {wrong[inside].mean():8.1%}"
              f" {share:14.1%}")  # fmt: skip

    train = parts.train[rows.stable[parts.train]]
    levels_found = levels.levels_of(np.log(rows.cycles[train]))
    print(f"\n{len(levels_found)} levels\nreach   moved   MAPE %   median %   Kendall")
    for reach in REACHES:
        answers = levels.moved(predicted, levels_found, reach)
        found = metrics.quality(np.exp(answers), measured)
        print(f"{reach:5.3f} {np.mean(answers != predicted):7.1%} {found.mape:8.2f}"
              f" {found.median_ape:10.2f} {found.kendall:9.4f}")  # fmt: skip

    pushes = np.array([len(block) == 5 and block[0] == PUSH for block in rows.blocks])
    same = rows.cycles[pushes & rows.stable]
    scatter = (
        f"{same.min():.3f} to {same.max():.3f} cycles, deviation {same.std() / same.mean():.1%}"
    )
    print(f"\nstable labels of {len(same)} pushes of a constant: {scatter}")


if __name__ == "__main__":
    main()
