"""What a policy makes of training programs that it has not seen: predicted, and really built.

    python -m benchmarks.across CORPUS RUN [--language c] [--cautions 0.1 0.35 0.6] [--json FILE]

RUN is the folder of a distillation. Its trials are divided by project into five parts; the programs
of each are built, with summaries, under a policy that was fitted to the other four. *Predicted* is
what the trials of the program add up to where the policy leaves the default: trials are moves made
one at a time, and the difference is what they do to each other.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import record
from benchmarks.ablation import FEATURES, trials_of
from benchmarks.machine import describe
from benchmarks.pool import LINK, PROBLEM, local_pool
from nestor.build.build import BuildError, Job
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.learn.distil import gain_model
from nestor.learn.distil.gain_model import Fit, GainSettings, Rows
from nestor.learn.distil.gain_trees import Trees
from nestor.learn.programs import largest_programs
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool


@dataclass(frozen=True)
class Change:
    """What one program became under a policy that has not seen its project, in per cent."""

    program: str
    caution: float
    predicted_pct: float
    built_pct: float


def linked(pool: Pool, jobs: Sequence[Job]) -> list[float]:
    """Return the loadable bytes of each job's program.

    :raises BuildError: if one cannot be built.
    """
    found = []
    for built in LINK.run(pool, jobs):
        if built.columns is None:
            raise BuildError(f"{built.job.program.name}: {built.failure}.")
        found.append(built.columns["linked"])
    return found


def measure(
    pool: Pool, programs: Mapping[int, Program], data: Rows, cautions: Sequence[float]
) -> list[Change]:
    """Return a row per caution and program; ``programs`` are by the number of their project."""
    kind, settings = Trees(), GainSettings(repeats=1)
    summaries = PROBLEM.summaries(pool, list(programs.values()), ["gc"])
    before = linked(pool, [Job(program, "gc") for program in programs.values()])
    stock = dict(zip(programs, before, strict=True))
    across = gain_model.predict_across(kind, data, settings, 0)
    with_summary = np.arange(len(data.y)) < len(data.y) // 2
    rows = []
    for held_out in gain_model.parts_of_projects(data.project, settings.folds, 0):
        use = ~held_out
        seen = data.where(use)
        gain = kind.fit(seen.x, seen.y, seen.weight, 0, coarse=False)
        off = np.abs(data.y - across[0])[use]
        spread = kind.fit(seen.x, off, seen.weight, 0, coarse=True)
        own = sorted(set(data.project[held_out].tolist()) & programs.keys())
        for caution in cautions:
            cautious = replace(settings, caution=caution)
            fitted = Fit(gain, spread)
            policy = NamedPolicy.of(
                gain_model.policy(kind, fitted, seen, FEATURES, PROBLEM, cautious)
            )
            jobs = [
                Job(program, "gc", policy, summary=summaries.get((program.name, "gc")))
                for program in (programs[number] for number in own)
            ]
            for number, after in zip(own, linked(pool, jobs), strict=True):
                mine = with_summary & (data.project == number)
                logit = gain.predict(data.x[mine]) - caution * spread.predict(data.x[mine])
                predicted = -200 * float(data.part[mine][logit > settings.least].sum())
                built = 100 * (after / stock[number] - 1)
                rows.append(Change(programs[number].name, caution, predicted, built))
    return rows


def main() -> int:
    """Print what was predicted and what was built, by caution and program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--language", choices=("c", "c++"), default="c")
    parser.add_argument("--cautions", type=float, nargs="+", default=[0.1, 0.35, 0.6])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    corpus, trials = store.load(options.corpus), trials_of(options.run)
    names = sorted({program.split("/", 1)[0] for program in trials.programs})
    programs = {
        names.index(program.project): program
        for program in largest_programs(corpus.programs_of("train"))
        if program.language == options.language and program.project in names
    }
    data = gain_model.rows(trials, FEATURES, PROBLEM, GainSettings(), 0)
    with local_pool(corpus) as pool:
        rows = measure(pool, programs, data, options.cautions)
        machine = describe(pool.plugin.toolchain)
    for caution in options.cautions:
        own = [row for row in rows if row.caution == caution]
        predicted, built = [row.predicted_pct for row in own], [row.built_pct for row in own]
        print(
            f"caution {caution}: {len(own)} programs, mean predicted {np.mean(predicted):+.2f} %,"
            f" built {np.mean(built):+.2f} % (median {np.median(built):+.2f} %)"
        )
        for row in sorted(own, key=lambda row: row.built_pct):
            print(f"  {row.program:40} {row.predicted_pct:+7.2f} {row.built_pct:+7.2f}")
    if options.json:
        columns = [("program", "{}"), ("caution", "{}"), ("predicted", "{:+.2f} %"),
                   ("built", "{:+.2f} %")]  # fmt: skip
        cells = [[r.program, r.caution, r.predicted_pct, r.built_pct] for r in rows]
        about = "Linked bytes of training programs under policies that have not seen their project."
        record.write(options.json, about, {"programs": record.table(columns, cells)}, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
