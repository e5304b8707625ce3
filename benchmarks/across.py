"""What a policy makes of training programs that it has not seen: predicted, and really built.

    python -m benchmarks.across CORPUS RUN [--language c] [--cautions 0.1 0.35 0.6] [--json]

RUN is the folder of a distillation. Its trials are divided by project into five parts; the programs
of each are built, with summaries, under a policy that was fitted to the other four. *Predicted* is
what the trials of the program add up to where the policy leaves the default: trials are moves made
one at a time, and the difference is what they do to each other.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ablation import trials_of
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.learn import gain_model
from nestor.learn.features import DISTIL_FEATURES
from nestor.learn.gain_model import Fit, GainSettings, Rows
from nestor.learn.gain_trees import Trees
from nestor.learn.searches import largest_programs
from nestor.policy import bundle
from nestor.progress import silent
from nestor.rollout.pool import Pool
from nestor.rollout.summaries import summaries
from nestor.tune.build import Builder

PARTS = 5


def linked(pool: Pool, program: Program, policy: Path | str, told: Path | None) -> int:
    """Return the loadable bytes of ``program`` under ``policy``."""
    builder = Builder(pool, program, policy, ("gc",), told)
    try:
        return builder.build({}).sizes["gc"].loadable
    finally:
        builder.close()


def measure(
    pool: Pool,
    programs: Mapping[int, Program],
    data: Rows,
    cautions: Sequence[float],
    folder: Path,
) -> list[dict[str, Any]]:
    """Return a row per caution and program; ``programs`` are by the number of their project."""
    kind, settings = Trees(), GainSettings(repeats=1)
    told = summaries(pool, list(programs.values()), ["gc"], folder)
    stock = {p.name: linked(pool, p, "default", None) for p in programs.values()}
    across = gain_model.predict_across(kind, data, settings, 0)
    with_summary = np.arange(len(data.y)) < len(data.y) // 2
    rows = []
    numbers = np.unique(data.project)
    np.random.default_rng(0).shuffle(numbers)  # the parts of gain_model.predict_across
    for part in np.array_split(numbers, PARTS):
        use = ~np.isin(data.project, part)
        seen = data.where(use)
        gain = kind.fit(seen.x, seen.y, seen.weight, 0, rough=False)
        off = np.abs(data.y - across[0])[use]
        spread = kind.fit(seen.x, off, seen.weight, 0, rough=True)
        for caution in cautions:
            cautious = replace(settings, caution=caution)
            policy = gain_model.policy(kind, Fit(gain, spread), seen, DISTIL_FEATURES, cautious)
            path = folder / "policy.safetensors"
            bundle.save(policy, path)
            for number in sorted(set(part.tolist()) & programs.keys()):
                program = programs[number]
                mine = with_summary & (data.project == number)
                logit = gain.predict(data.x[mine]) - caution * spread.predict(data.x[mine])
                follows = logit > settings.least
                built = linked(pool, program, path, told[program.name, "gc"])
                rows.append(
                    {
                        "program": program.name,
                        "caution": caution,
                        "predicted_pct": -200 * float(data.part[mine][follows].sum()),
                        "built_pct": 100 * (built / stock[program.name] - 1),
                    }
                )
    return rows


def main() -> int:
    """Print what was predicted and what was built, by caution and program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--language", choices=("c", "c++"), default="c")
    parser.add_argument("--cautions", type=float, nargs="+", default=[0.1, 0.35, 0.6])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    corpus, trials = store.load(options.corpus), trials_of(options.run)
    names = sorted({program.split("/", 1)[0] for program in trials.programs})
    programs = {
        names.index(program.project): program
        for program in largest_programs(corpus.programs_of("train"))
        if program.language == options.language and program.project in names
    }
    data = gain_model.rows(trials, DISTIL_FEATURES, GainSettings(), 0)
    with (
        Pool(corpus, ready_plugin(None, silent)) as pool,
        tempfile.TemporaryDirectory(prefix="nestor-across-") as folder,
    ):
        rows = measure(pool, programs, data, options.cautions, Path(folder))
    if options.json:
        json.dump(rows, sys.stdout, indent=2)
        return 0
    for caution in options.cautions:
        own = [row for row in rows if row["caution"] == caution]
        predicted, built = ([row[key] for row in own] for key in ("predicted_pct", "built_pct"))
        print(
            f"caution {caution}: {len(own)} programs, mean predicted {np.mean(predicted):+.2f} %,"
            f" built {np.mean(built):+.2f} % (median {np.median(built):+.2f} %)"
        )
        for row in sorted(own, key=lambda row: float(row["built_pct"])):
            print(f"  {row['program']:40} {row['predicted_pct']:+7.2f} {row['built_pct']:+7.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
