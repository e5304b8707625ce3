"""What it costs to train the policy ``distilled`` from nothing, and how much the seed matters.

    python -m benchmarks.training BENCH RUNS [--seeds 0 1 2] [--json FILE]

Each seed is one run of ``nestor train inlining-size`` in RUNS/SEED, searches and all, and one
evaluation on the held-out programs with the program's summary. A seed that is done is not run
again; one that was stopped goes on where it was, and its cost is that of what was left.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.machine import describe
from nestor.compiler.toolchain import find
from nestor.files import write_atomically

NESTOR = str(Path(sys.executable).with_name("nestor"))


def measured(command: Sequence[str], output: Path) -> dict[str, float]:
    """Run ``command`` into ``output`` and return its seconds, CPU seconds and peak memory."""
    start = time.monotonic()
    with output.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {
        "seconds": time.monotonic() - start,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mib": used.ru_maxrss / 1024,
    }


def one(corpus: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Return the row of one seed, from ``folder`` if it is there."""
    kept = folder / "benchmark.json"
    if kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    folder.mkdir(parents=True, exist_ok=True)
    where = ["--corpus", str(corpus), "--json"]
    trained, judged = folder / "trained.json", folder / "evaluated.json"
    train = [NESTOR, "train", "inlining-size", "--out", str(folder), "--seed", str(seed), *where]
    cost = measured(train, trained)
    policy = str(folder / "policy.safetensors")
    measured([NESTOR, "evaluate", "--policy", policy, "--summary", *where], judged)
    evaluation = json.loads(judged.read_text())
    result = json.loads(trained.read_text())
    programs = evaluation["evaluations"][0]["programs"]
    row = {
        "seed": seed,
        **cost,
        "validation_pct": 100 * result["metrics"]["validation change"],
        "groups": {
            g["group"]: [g["linked_geomean_pct"], g["text_geomean_pct"]]
            for g in evaluation["groups"]
        },
        "worst_pct": max(p["linked_change_pct"] for p in programs),
        "digest": result["digest"],
    }
    write_atomically(kept, json.dumps(row, indent=2))
    return row


def main() -> int:
    """Print a row per seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    rows = []
    for seed in options.seeds:
        row = one(options.corpus, options.runs / str(seed), seed)
        rows.append(row)
        means = ", ".join(f"{name} {a:+.2f}/{b:+.2f}" for name, (a, b) in row["groups"].items())
        print(
            f"seed {seed}: {row['seconds'] / 60:.1f} min,"
            f" {row['cpu_seconds'] / 60:.1f} CPU-min, {row['peak_mib']:.0f} MiB;"
            f" validation {row['validation_pct']:+.2f} %; {means};"
            f" worst {row['worst_pct']:+.2f} %",
            flush=True,
        )
    if options.json:
        groups = list(dict.fromkeys(name for row in rows for name in row["groups"]))
        columns = [("seed", "{}"), *((name, record.CHANGES) for name in groups),
                   ("worst program", "{:+.2f} %"), ("CPU-minutes", "{:.0f}"),
                   ("peak memory", "{:.0f} MiB")]  # fmt: skip
        cells = [
            [
                row["seed"],
                *(row["groups"].get(name) for name in groups),
                row["worst_pct"],
                row["cpu_seconds"] / 60,
                row["peak_mib"],
            ]
            for row in rows
        ]
        about = (
            "Training the policy distilled from nothing: held-out programs with summaries, linked"
            " bytes / code, and what a run costs."
        )
        tables = {"seeds": record.table(columns, cells)}
        record.write(options.json, about, tables, describe(find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
