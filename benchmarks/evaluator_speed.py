"""
How long the plugin's policy evaluator takes for one decision, on features from a real corpus.

    python -m benchmarks.evaluator_speed CORPUS [--rounds N] [--json FILE]

Processor time of the evaluator alone (not of the features), a value per round over all logged
decisions of some modules.
"""

import argparse
import statistics
import subprocess
import tempfile
from pathlib import Path

import lightgbm
import numpy as np

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import PROBLEM, local_pool
from nestor.compiler.plugin import configure_and_build
from nestor.corpus import store
from nestor.policy import bundle
from nestor.policy.names import DEFAULT
from nestor.policy.network import LogNormalisation, build, initial_layers, squash
from nestor.policy.spec import F64, Policy
from nestor.policy.trees import from_lightgbm
from nestor.problem.rollout import Request

LIMITS_NS = {"network 38-64-64-1": 2000.0, "250 trees of 31 leaves": 5000.0}
"""Nanoseconds that a decision may take."""


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
    published = PROBLEM.builtins.resolve("mlgo2020")
    assert published is not None
    return {
        f"network {len(features)}-64-64-1": build(
            features, "decision", normalisation, layers, problem=PROBLEM.name
        ),
        "mlgo2020": published,
        "250 trees of 31 leaves": from_lightgbm(
            booster, features, "decision", problem=PROBLEM.name
        ),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--modules", type=int, default=5, help="the largest so many")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    arguments = parser.parse_args()

    corpus = store.load(arguments.corpus)
    modules = sorted(corpus.modules, key=lambda m: -corpus.bitcode(m).stat().st_size)
    with local_pool(corpus) as pool:
        requests = [Request(m, DEFAULT, log=True) for m in modules[: arguments.modules]]
        done = pool.run(requests)
        toolchain = pool.plugin.toolchain
    trajectories = []
    for rollout in done:
        assert rollout.trajectory is not None, rollout.failure
        trajectories.append(rollout.trajectory)
    features = trajectories[0].features
    logs = {n: np.concatenate([t.rows([n]) for t in trajectories]) for n in features}
    default = np.concatenate([t.default for t in trajectories]).astype(np.float64)
    x = np.concatenate([logs[name] for name in features], axis=1)

    machine = describe(toolchain)
    rows: list[list[object]] = []
    print(
        f"processor time of the policy evaluator per decision, {len(x)} decisions,"
        f" {arguments.rounds} rounds"
    )
    for key, value in machine.items():
        print(f"  {key}: {value}")
    print(f"{'policy':28} {'median':>9} {'min':>9} {'max':>9} {'limit':>9}  (ns)")
    with tempfile.TemporaryDirectory(prefix="nestor-speed-") as text:
        folder = Path(text)
        here = Path(__file__).resolve().parent / "native"
        definitions = ["-DNESTOR_BUILD_TESTS=ON", f"-DNESTOR_TESTS_DIR={here}"]
        configure_and_build(toolchain, folder / "build", definitions)
        for name, policy in policies(features, x, default).items():
            bundle.save(policy, folder / "policy.safetensors")
            inputs = np.concatenate([logs[feature] for feature in policy.features], axis=1)
            (folder / "inputs").write_bytes(np.ascontiguousarray(inputs, np.float64).tobytes())
            timed = subprocess.run(
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
            times = [float(line) for line in timed.stdout.split()]
            median = statistics.median(times)
            limit = f"{LIMITS_NS[name]:9.0f}" if name in LIMITS_NS else f"{'-':>9}"
            print(f"{name:28} {median:9.0f} {min(times):9.0f} {max(times):9.0f} {limit}")
            rows.append([name, median / 1000])
    if arguments.json:
        columns = [("policy", "{}"), ("time of one decision", "{:.1f} µs")]
        about = f"Processor time of the policy evaluator over {len(x)} decisions."
        record.write(arguments.json, about, {"decision": record.table(columns, rows)}, machine)


if __name__ == "__main__":
    main()
