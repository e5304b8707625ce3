"""What predicted sizes are worth as a reward: credit from a size model beside that from code.

    python -m benchmarks.size_estimator CORPUS MODEL [--modules 16] [--samples 4] [--json FILE]

Modules of the corpus are compiled with one answer in twenty turned around, once with code, so that
the decisions of one compile are rewarded both ways: by the object's bytes, and by what MODEL says
of the IR (``nestor sizes``), as ``EstimatingPool`` does. Shown are the correlation of the rewards
of the decisions that left the default, how many compiles must be averaged until the noise of a
linear policy's gradient is as small as the gradient that code gives (``benchmarks.credit``), the
cosine between the two mean gradients, and the processor time of a compile with and without code.
Bytes are those of objects. Only modules of projects that MODEL was not trained on count.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import record
from benchmarks.credit import compiles_needed
from benchmarks.machine import describe
from benchmarks.pool import PROBLEM, local_pool
from nestor.compiler.objects import Measure
from nestor.corpus import store
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.rollout import Request
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.size.estimating_pool import EstimatingPool
from nestor.problems.inlining_size.size.examples import EXPLORE, compile_logged, exploring, seed_of
from nestor.problems.inlining_size.size.model import load

F64 = npt.NDArray[np.float64]

CLIP = PROBLEM.credit_clip
"""Bytes above which a change counts no more."""


def shares(before: tuple[Trajectory, Measure], after: tuple[Trajectory, Measure]) -> F64:
    """Return the credit of each decision of ``after``, in bytes of objects, ``[questions]``."""
    sizes = [{f.name: float(f.size) for f in measured.functions} for _, measured in (before, after)]
    return PROBLEM.credit((before[0], sizes[0]), (after[0], sizes[1])).share


def gradient(log: Trajectory, credit: F64) -> F64:
    """Return one compile's estimate of the gradient of a linear policy that explores."""
    x = log.rows(PROBLEM.features.few)
    z = np.concatenate([np.sign(x) * np.log2(1 + np.abs(x)), np.ones((len(x), 1))], axis=1)
    left = log.answer != log.default
    return np.asarray((-np.clip(credit, -CLIP, CLIP) * (left - EXPLORE)) @ z, dtype=np.float64)


def main() -> int:
    """Sample, take the credit both ways, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--modules", type=int, default=16)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    corpus, model = store.load(options.corpus), load(options.model)
    seen = set(model.provenance.get("projects", ()))
    unseen = [m for m in corpus.modules if m.project not in seen]
    if not unseen:
        parser.error("the model was trained on every project of the corpus")
    order = np.random.default_rng(0).permutation(len(unseen))[: options.modules]
    code, estimate, gradients = [], [], []
    seconds = np.zeros(2)
    policy = NamedPolicy.of(exploring(), "exploring")
    with local_pool(corpus) as pool:
        estimating = EstimatingPool(pool, model)
        machine = describe(pool.plugin.toolchain)
        for module in (unseen[place] for place in order):
            stock = compile_logged(Request(module, DEFAULT, log=True, names=True), pool)
            anchor = estimating.anchor(module)
            if stock is None or stock.trajectory is None or anchor is None:
                continue
            for sample in range(options.samples):
                request = Request(
                    module, policy, seed=seed_of(module) + sample, log=True, names=True
                )
                sampled = compile_logged(request, pool)
                if sampled is None or sampled.trajectory is None or not len(sampled.trajectory):
                    continue
                if sample == 0:
                    (without_code,) = estimating.run([request])
                    if without_code.ok:
                        seconds += sampled.cpu_seconds, without_code.cpu_seconds
                guessed = anchor.measure(sampled.log, model.sizes(sampled.log))
                before, log = (stock.trajectory, stock.sizes), sampled.trajectory
                both = [shares(before, (log, sizes)) for sizes in (sampled.sizes, guessed)]
                left = log.answer != log.default
                code.append(both[0][left])
                estimate.append(both[1][left])
                gradients.append([gradient(log, credit) for credit in both])
    credit = np.stack([np.concatenate(code), np.concatenate(estimate)])
    both_gradients = np.array(gradients)
    means = both_gradients.mean(axis=0)
    saves = credit < 0
    found = 100 * (saves[0] & saves[1]).sum()
    needed = [compiles_needed(both_gradients[:, way], means[0]) for way in (0, 1)]
    cosine = float(means[0] @ means[1] / np.sqrt((means**2).sum(axis=1).prod()))
    correlation = float(np.corrcoef(np.clip(credit, -CLIP, CLIP))[0, 1])
    error = float(np.abs(credit[0] - credit[1]).mean())
    found_true = f"{found / max(1, saves[0].sum()):.0f} %; {found / max(1, saves[1].sum()):.0f} %"
    rows: list[list[object]] = [
        ["compiles to average until the noise of a gradient is no larger than the gradient"
         " (`share` credit)", *(f"{count:.1f}" for count in needed)],
        ["cosine between the mean gradients", 1, cosine],
        ["correlation of the credit of decisions, clipped as learners do", 1, correlation],
        ["the same, not clipped", 1, float(np.corrcoef(credit)[0, 1])],
        ["mean error of the credit of a decision, bytes", 0, error],
        ["decisions that save bytes: share found; share true among those predicted to save",
         None, found_true],
        ["processor time of a compile", 1, float(seconds[1] / seconds[0])],
    ]  # fmt: skip
    print(f"{credit.shape[1]:,} decisions of {len(gradients)} compiles: by code, by the model")
    for name, *cells in rows:
        print(f"{name:100}", *(f"{_cell(value):>12}" for value in cells))
    if options.json:
        columns = [("quantity", "{}"), ("scored by code", "{:,}"),
                   ("scored by the model", "{:.3f}")]  # fmt: skip
        about = f"The same {len(gradients)} sampled compiles scored by code and by a size model."
        record.write(options.json, about, {"as_score": record.table(columns, rows)}, machine)
    return 0


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)


if __name__ == "__main__":
    sys.exit(main())
