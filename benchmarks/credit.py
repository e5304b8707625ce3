"""The noise of each way of paying decisions, and how many compiles it costs.

    python -m benchmarks.credit CORPUS [--samples 10] [--modules 24] [--explore 0.05] [--json]

The same sampled compiles are paid in each way. Each compile then gives one estimate of the
gradient of a linear policy; of these estimates the mean and the variance are known. What is shown
is how many compiles a learner must average until the noise is no larger than the gradient
(variance over squared mean, corrected for the noise of the mean itself), and the cosine between
the mean gradient and that of the module's total: credit that leaves out what a decision does do
would point elsewhere.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from nestor.learn.experience import Tally, training_programs
from nestor.learn.features import CHEAP_FEATURES
from nestor.rollout.pool import Pool

from benchmarks.machine import describe
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings, pay
from nestor.learn.episodes import Episodes, draw
from nestor.learn.reference import reference
from nestor.learn.start import StartSettings, start
from nestor.policy.network import MlpPolicy
from nestor.progress import silent

F64 = npt.NDArray[np.float64]


def rewards(batch: Batch, averages: F64) -> dict[str, F64]:
    """Return each decision's reward in every way, all in bytes, ``[decisions]``."""
    clipped, _ = pay(CreditSettings(scheme="function"), batch, averages)
    shared, _ = pay(CreditSettings(scheme="share"), batch, averages)
    return {
        "the module's total against stock": (batch.stock - batch.total)[batch.episode],
        "the module's total against its average": (averages[batch.module] - batch.total)[
            batch.episode
        ],
        "the functions reached": -batch.change,
        "the functions reached, clipped": clipped,
        "a share of the functions reached": -batch.share,
        "a share of the functions reached, clipped": shared,
    }


def gradients(policy: MlpPolicy, batch: Batch, reward: F64) -> F64:
    """Return each episode's estimate of the gradient, ``[episodes, parameters]``."""
    z = np.concatenate([policy.normalise(batch.x), np.ones((len(batch.x), 1), np.float32)], axis=1)
    score = (batch.positive - policy.probabilities(batch.x))[:, None] * z
    sums = np.zeros((len(batch.module), z.shape[1]))
    np.add.at(sums, batch.episode, reward[:, None] * score)
    return sums


def compiles_needed(estimates: F64, gradient: F64) -> float:
    """Return how many ``estimates`` must be averaged until their error is as large as ``gradient``.

    :param estimates: one by compile, ``[compiles, parameters]``.
    :param gradient: ``[parameters]``, a mean over as many estimates, whose own noise is taken off.
    """
    error = float(((estimates - gradient) ** 2).sum(axis=1).mean())
    noise = float(estimates.var(axis=0, ddof=1).sum()) / len(estimates)
    squared = float(gradient @ gradient) - noise
    return error / squared if squared > 0 else float("inf")


def main() -> int:
    """Sample, pay, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--modules", type=int, default=24)
    parser.add_argument("--explore", type=float, default=0.05)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    corpus, plugin = store.load(options.corpus), ready_plugin(None, silent)
    with Pool(corpus, plugin) as pool:
        made = reference(pool, training_programs(corpus), CHEAP_FEATURES, Tally())
        policy = start(made, StartSettings(hidden=(), explore=options.explore), 0)
        episodes = Episodes(pool, made, Tally())
        modules = draw(0, 0, options.modules, len(made.stocks))
        batches = [episodes.sampled(policy, modules, 0, step) for step in range(options.samples)]
    averages = made.totals
    for module in modules:
        seen = [batch.total[batch.module == module] for batch in batches]
        if any(len(totals) for totals in seen):
            averages[module] = np.concatenate(seen).mean()
    found: dict[str, list[F64]] = {}
    for batch in batches:
        for name, reward in rewards(batch, averages).items():
            found.setdefault(name, []).append(gradients(policy, batch, reward))
    rows: list[dict[str, Any]] = []
    first: F64 | None = None
    for name, parts in found.items():
        own = np.concatenate(parts)
        mean = own.mean(axis=0)
        first = mean if first is None else first
        cosine = float(mean @ first / np.sqrt((mean @ mean) * (first @ first)))
        needed = compiles_needed(own, mean)
        rows.append({"credit": name, "compiles": needed, "cosine": cosine, "estimates": len(own)})
    if options.json:
        content = {"machine": describe(plugin.toolchain), "explore": options.explore, "rows": rows}
        json.dump(content, sys.stdout, indent=2)
        return 0
    for row in rows:
        print(
            f"{row['credit']:44} {row['compiles']:>10,.1f} compiles"
            f"  cosine {row['cosine']:+.2f}  ({row['estimates']} estimates)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
