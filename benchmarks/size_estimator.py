"""What predicted sizes are worth as a reward: credit from a size model beside that from code.

    python -m benchmarks.size_estimator CORPUS MODEL [--modules 16] [--samples 4] [--json]

Modules of the corpus are compiled with one answer in twenty turned around, once with code, so that
the same compile is paid both ways: by the object's bytes, and by what MODEL says of the IR
(``nestor sizes``), as ``nestor.size.estimating_pool`` does. Shown are the correlation of what each
decision that left the default is paid, how many compiles must be averaged until the noise of a
linear policy's gradient is as small as the gradient that code gives (``benchmarks.credit``), the
cosine between the two mean gradients, and the processor time of a compile with and without code.
Bytes are those of objects. Only modules of projects that MODEL was not trained on count.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.credit import compiles_needed
from benchmarks.machine import describe
from nestor.cli.setup import ready_plugin
from nestor.compiler.objects import Measure
from nestor.compiler.trajectory_log import Trajectory
from nestor.corpus import store
from nestor.learn.credit import CreditSettings, reached_changes
from nestor.learn.features import CHEAP_FEATURES
from nestor.policy import bundle
from nestor.progress import silent
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request
from nestor.size.estimating_pool import EstimatingPool
from nestor.size.examples import EXPLORE, compile_logged, exploring, seed_of
from nestor.size.model import load

F64 = npt.NDArray[np.float64]

CLIP = CreditSettings().most
"""Bytes above which a change counts no more."""


def shares(before: tuple[Trajectory, Measure], after: tuple[Trajectory, Measure]) -> F64:
    """Return what each decision of ``after`` is paid, in bytes of objects."""
    sizes = [{f.name: float(f.size) for f in measured.functions} for _, measured in (before, after)]
    return reached_changes((before[0], sizes[0]), (after[0], sizes[1]))[1]


def gradient(log: Trajectory, paid: F64) -> F64:
    """Return one compile's estimate of the gradient of a linear policy that explores."""
    x = log.matrix(CHEAP_FEATURES)
    z = np.concatenate([np.sign(x) * np.log2(1 + np.abs(x)), np.ones((len(x), 1))], axis=1)
    left = log.records["answer"] != log.records["inlining_default"]
    return np.asarray((-np.clip(paid, -CLIP, CLIP) * (left - EXPLORE)) @ z, dtype=np.float64)


def main() -> int:
    """Sample, pay both ways, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--modules", type=int, default=16)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    corpus, model = store.load(options.corpus), load(options.model)
    plugin = ready_plugin(None, silent)
    known = set(model.provenance.get("projects", ()))
    unseen = [m for m in corpus.modules if m.project not in known]
    order = np.random.default_rng(0).permutation(len(unseen))[: options.modules]
    code, estimate, gradients = [], [], []
    seconds = np.zeros(2)
    with (
        tempfile.TemporaryDirectory(prefix="nestor-estimator-") as text,
        Pool(corpus, plugin) as pool,
        EstimatingPool(pool, model) as estimating,
    ):
        policy = Path(text) / "exploring.safetensors"
        bundle.save(exploring(), policy)
        for module in (unseen[place] for place in order):
            stock = compile_logged(Request(module, "default", log=True, names=True), pool)
            anchor = estimating.anchor(module)
            if stock is None or stock.trajectory is None or anchor is None:
                continue
            for sample in range(options.samples):
                request = Request(
                    module, policy, seed=seed_of(module) + sample, log=True, names=True
                )
                made = compile_logged(request, pool)
                if made is None or made.trajectory is None or not len(made.trajectory):
                    continue
                (cheap,) = estimating.run([request]) if sample == 0 else (None,)
                if cheap is not None and cheap.ok:
                    seconds += made.cpu_seconds, cheap.cpu_seconds
                guessed = anchor.measure(made.log, model.sizes(made.log))
                before = (stock.trajectory, stock.sizes)
                both = [shares(before, (made.trajectory, s)) for s in (made.sizes, guessed)]
                records = made.trajectory.records
                left = records["answer"] != records["inlining_default"]
                code.append(both[0][left])
                estimate.append(both[1][left])
                gradients.append([gradient(made.trajectory, paid) for paid in both])
    paid = np.stack([np.concatenate(code), np.concatenate(estimate)])
    clipped = np.clip(paid, -CLIP, CLIP)
    both_gradients = np.array(gradients)
    means = both_gradients.mean(axis=0)
    saves = paid < 0
    row: dict[str, Any] = {
        "decisions": paid.shape[1],
        "compiles": len(gradients),
        "credit_correlation": float(np.corrcoef(paid)[0, 1]),
        "credit_correlation_clipped": float(np.corrcoef(clipped)[0, 1]),
        "credit_mean_error_bytes": float(np.abs(paid[0] - paid[1]).mean()),
        "savings_found_pct": float(100 * (saves[0] & saves[1]).sum() / max(1, saves[0].sum())),
        "savings_true_pct": float(100 * (saves[0] & saves[1]).sum() / max(1, saves[1].sum())),
        "gradient_cosine": float(means[0] @ means[1] / np.sqrt((means**2).sum(axis=1).prod())),
        "compiles_needed_code": compiles_needed(both_gradients[:, 0], means[0]),
        "compiles_needed_estimate": compiles_needed(both_gradients[:, 1], means[0]),
        "cpu_with_code": float(seconds[0]),
        "cpu_without_code": float(seconds[1]),
    }
    if options.json:
        content = {"machine": describe(plugin.toolchain), "model": str(options.model), "row": row}
        json.dump(content, sys.stdout, indent=2)
        return 0
    for name, value in row.items():
        print(f"{name:28} {value:>10,.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
