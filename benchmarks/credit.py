"""The noise of each credit scheme, as the number of compiles that averages it out.

    python -m benchmarks.credit CORPUS [--samples 10] [--modules 24] [--explore 0.05]
        [--json FILE]

The decisions of the same sampled compiles are rewarded by each scheme. Each compile then gives one
estimate of the gradient of a linear policy. Shown are how many compiles a learner must average
until the noise is no larger than the gradient (variance over squared mean, corrected for the noise
of the mean itself), and the cosine between the mean gradient and that of the module's total: credit
that leaves out effects of a decision would point elsewhere.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import PROBLEM, local_pool
from nestor.corpus import store
from nestor.learn import credit
from nestor.learn.accounting import Tally
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings
from nestor.learn.episodes import Episodes
from nestor.learn.programs import training_programs
from nestor.learn.reference import reference
from nestor.learn.start import StartSettings, start
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]


def rewards(batch: Batch, averages: F64) -> dict[str, F64]:
    """Return each decision's reward by every scheme, all in bytes, ``[decisions]``.

    :param averages: the mean score of each unit over the samples, ``[units]``.
    """
    clipped, _ = credit.rewards(CreditSettings(scheme="function"), batch, averages, PROBLEM)
    shared, _ = credit.rewards(CreditSettings(scheme="share"), batch, averages, PROBLEM)
    clip = f"clipped at {PROBLEM.credit_clip:g} bytes"
    return {
        "the module's total against stock": (batch.stock - batch.total)[batch.episode],
        "the module's total against its average": (averages[batch.unit] - batch.total)[
            batch.episode
        ],
        "the functions reached": -batch.change,
        f"the functions reached, {clip}": PROBLEM.credit_unit * clipped,
        "a share of the functions reached": -batch.share,
        f"the same, {clip} (the default)": PROBLEM.credit_unit * shared,
    }


def gradients(policy: MlpPolicy, batch: Batch, reward: F64) -> F64:
    """Return each episode's estimate of the gradient, ``[episodes, parameters]``.

    :param policy: linear.
    :param reward: of each decision, ``[decisions]``.
    """
    z = np.concatenate([policy.normalise(batch.x), np.ones((len(batch.x), 1), np.float32)], axis=1)
    score = (batch.action - policy.probabilities(batch.x))[:, None] * z
    sums = np.zeros((len(batch.unit), z.shape[1]))
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
    """Sample, reward, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--modules", type=int, default=24)
    parser.add_argument("--explore", type=float, default=0.05)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    with local_pool(corpus) as pool:
        stock = reference(pool, training_programs(corpus), PROBLEM.features.few, Tally())
        policy = start(stock, StartSettings(hidden=(), explore=options.explore), 0)
        episodes = Episodes(pool, stock, Tally())
        units = episodes.drawn(0, 0, options.modules)
        batches = [episodes.sampled(policy, units, 0, step) for step in range(options.samples)]
        machine = describe(pool.plugin.toolchain)
    averages = stock.totals
    for unit in units:
        seen = np.concatenate([batch.total[batch.unit == unit] for batch in batches])
        if len(seen):
            averages[unit] = seen.mean()
    found: dict[str, list[F64]] = {}
    for batch in batches:
        for name, reward in rewards(batch, averages).items():
            found.setdefault(name, []).append(gradients(policy, batch, reward))
    compiles = sum(len(batch.unit) for batch in batches)
    rows: list[list[object]] = []
    first: F64 | None = None
    for name, parts in found.items():
        own = np.concatenate(parts)
        mean = own.mean(axis=0)
        first = mean if first is None else first
        cosine = float(mean @ first / np.sqrt((mean @ mean) * (first @ first)))
        needed = compiles_needed(own, mean)
        print(f"{name:60} {needed:>10,.1f} compiles  cosine {cosine:+.2f}")
        too_many = f"more than {compiles} compiles can tell"
        rows.append([name, round(needed) if math.isfinite(needed) else too_many])
    print(f"from {compiles} sampled compiles")
    if options.json:
        columns = [("credit", "{}"), ("compiles", "{:,}")]
        about = (
            "How many sampled compiles must be averaged until the noise of a policy gradient is as"
            f" small as the gradient: {compiles} compiles, one answer in {1 / options.explore:.0f}"
            " not the default's."
        )
        record.write(options.json, about, {"schemes": record.table(columns, rows)}, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
