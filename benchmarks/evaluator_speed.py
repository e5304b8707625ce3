"""
How long the plugin's policy evaluator takes for one decision, on features from a real corpus.

    python -m benchmarks.evaluator_speed CORPUS [--rounds N] [--json]

Processor time of the evaluator alone (not of the features), a value per round over all logged
decisions of some modules.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import lightgbm
import numpy as np
from nestor.rollout.rollout import Request, rollout

from benchmarks.machine import describe
from nestor.compiler.plugin import configure_and_build, ensure_plugin
from nestor.compiler.process import Limits
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.policy import builtin, bundle
from nestor.policy.network import LogNormalisation, build, initial_layers, squash
from nestor.policy.spec import F64, Policy
from nestor.policy.trees import from_lightgbm

LIMITS_NS = {"MLP 38-64-64-1": 2000.0, "LightGBM 250 x 31 leaves": 5000.0}


def policies(features: tuple[str, ...], x: F64, y: F64) -> dict[str, Policy]:
    """Return what is measured, fitted or normalised to the logged decisions ``x``, ``y``."""
    z = squash(x)
    normalisation = LogNormalisation(z.mean(axis=0), 1 / (z.std(axis=0) + 1e-3))
    layers = initial_layers((len(features), 64, 64, 1), np.random.default_rng(0))
    parameters = {
        "objective": "regression",
        "num_leaves": 31,
        "min_data_in_leaf": 2,
        "use_missing": False,
        "num_threads": 1,
        "verbose": -1,
    }
    noisy = y + np.random.default_rng(0).normal(0, 0.5, len(y))
    booster = lightgbm.train(parameters, lightgbm.Dataset(x, noisy), 250)
    published = builtin.resolve("mlgo2020")
    assert published is not None
    return {
        f"MLP {len(features)}-64-64-1": build(
            features, "decision", normalisation, layers, problem="inlining-size"
        ),
        "mlgo2020": published,
        "LightGBM 250 x 31 leaves": from_lightgbm(
            booster, features, "decision", problem="inlining-size"
        ),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--modules", type=int, default=5, help="the largest so many")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    toolchain = find()
    plugin, corpus = ensure_plugin(toolchain), store.load(arguments.corpus)
    modules = sorted(corpus.modules, key=lambda m: -corpus.bitcode(m).stat().st_size)
    trajectories = []
    for module in modules[: arguments.modules]:
        result = rollout(Request(module, "default", log=True), corpus, plugin, Limits())
        assert result.trajectory is not None, result.failure
        trajectories.append(result.trajectory)
    features = trajectories[0].features
    logs = {n: np.concatenate([t.matrix([n]) for t in trajectories]) for n in features}
    default = np.concatenate([t.matrix(["inlining_default"]) for t in trajectories])[:, 0]
    x = np.concatenate([logs[name] for name in features], axis=1)

    rows = []
    with tempfile.TemporaryDirectory(prefix="nestor-speed-") as text:
        folder = Path(text)
        here = Path(__file__).resolve().parent / "native"
        definitions = ["-DNESTOR_BUILD_TESTS=ON", f"-DNESTOR_TESTS_DIR={here}"]
        configure_and_build(toolchain, folder / "build", definitions)
        for name, policy in policies(features, x, default).items():
            bundle.save(policy, folder / "policy.safetensors")
            inputs = np.concatenate([logs[feature] for feature in policy.features], axis=1)
            (folder / "inputs").write_bytes(np.ascontiguousarray(inputs, np.float64).tobytes())
            done = subprocess.run(
                [
                    str(folder / "build" / "tests" / "evaluator-speed"),
                    str(folder / "policy.safetensors"),
                    str(folder / "inputs"),
                    str(arguments.rounds),
                ],
                capture_output=True,
                text=True,
                check=True,
            )
            times = [float(line) for line in done.stdout.split()]
            rows.append(
                {
                    "policy": name,
                    "median_ns": statistics.median(times),
                    "min_ns": min(times),
                    "max_ns": max(times),
                    "limit_ns": LIMITS_NS.get(name),
                }
            )
    report = {
        "measured": "processor time of the policy evaluator per decision",
        "decisions": len(x),
        "rounds": arguments.rounds,
        "corpus": corpus.digest,
        "machine": describe(toolchain),
        "policies": rows,
    }
    if arguments.json:
        print(json.dumps(report, indent=1))
        return
    print(f"{report['measured']}, {len(x)} decisions, {arguments.rounds} rounds")
    for key, value in describe(toolchain).items():
        print(f"  {key}: {value}")
    print(f"{'policy':28} {'median':>9} {'min':>9} {'max':>9} {'limit':>9}  (ns)")
    for row in rows:
        limit = f"{row['limit_ns']:9.0f}" if row["limit_ns"] else f"{'-':>9}"
        print(
            f"{row['policy']:28} {row['median_ns']:9.0f} {row['min_ns']:9.0f}"
            f" {row['max_ns']:9.0f} {limit}"
        )


if __name__ == "__main__":
    main()
