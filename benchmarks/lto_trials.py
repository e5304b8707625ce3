"""Where moves inside LTO save: by the size of the callee, predicted from other projects.

    python -m benchmarks.lto_trials TRIALS [--caution 0.35] [--json FILE]

TRIALS is the folder of a distillation's trials. Each is predicted by models that have not seen its
project; *followed* are those of which the policy would leave the default, before any bound on
size. Savings are per cent of a program's linked bytes, means over programs.
"""

import argparse
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import PROBLEM
from nestor.compiler import toolchain as toolchains
from nestor.learn.distil import gain_model
from nestor.learn.distil.gain_model import GainSettings
from nestor.learn.distil.gain_trees import Trees
from nestor.learn.distil.trials import join, read

SIZES: Final = (0, 10, 20, 40, 80, 1_000_000)
"""Bounds of ``callee_code_size``, in instructions of LLVM's IR."""
TREES: Final = Trees(rounds=80, coarse_rounds=40, leaves=15, least_rows=30)
"""As the packaged policy's."""


def main() -> int:
    """Print a row for each range of sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("trials", type=Path)
    parser.add_argument("--caution", type=float, default=0.35)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    files = [read(path) for path in sorted(options.trials.glob("*.safetensors"))]
    trials = join([each for each in files if each is not None])
    settings = GainSettings(caution=options.caution)
    doubled = gain_model.rows(trials, PROBLEM.features.unit, PROBLEM, settings, 0)
    data = doubled.where(np.arange(len(doubled.y)) < len(trials))  # there is no summary to lack
    across = gain_model.predict_across(TREES, data, settings, 0)
    off = replace(data, y=np.abs(data.y - across).mean(axis=0))
    spread = gain_model.predict_across(TREES, off, replace(settings, repeats=1), 0)[0]
    followed = across[0] - options.caution * spread - settings.least > 0
    saved = 100 * trials.gain[:, 0] / trials.score[trials.program] / len(trials.programs)
    size = trials.columns(["callee_code_size"])[:, 0]
    rows: list[list[Any]] = []
    for low, high in pairwise(SIZES):
        own = (size > low) & (size <= high)
        chosen = own & followed
        share = 100 * float((saved[chosen] > 0).mean()) if chosen.any() else None
        rows.append(
            [
                f"{low + 1} to {high}" if high < SIZES[-1] else f"above {low}",
                int(own.sum()),
                -float(saved[own & (saved > 0)].sum()),
                int(chosen.sum()),
                share,
                -float(saved[chosen].sum()),
            ]
        )
        print(rows[-1])
    columns = [
        ("callee, IR instructions", "{}"), ("trials", "{:,}"), ("all that save", "{:+.2f} %"),
        ("followed", "{:,}"), ("of them save", "{:.0f} %"), ("what that saves", "{:+.2f} %"),
    ]  # fmt: skip
    if options.json:
        about = "A policy and a search inside LTO against stock LTO at -Oz: linked bytes / code."
        tables = {"by_size": record.table(columns, rows)}
        record.write(options.json, about, tables, describe(toolchains.find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
