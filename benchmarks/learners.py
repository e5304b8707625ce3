"""Every learner at equal budget: held-out linked bytes by learner, budget and seed.

    python -m benchmarks.learners CORPUS OUT [--minutes 5 15] [--seeds 0 1 2] [--only NAME …]
        [--sizes MODEL]

Trains what OUT does not hold yet (a killed run goes on where it was, a longer one where a shorter
one ended) and judges each policy on the largest program of every held-out project by linking it,
one compile a module. ``benchmarks.learner_references`` adds what to compare with, and
``benchmarks.learner_table`` prints and draws what OUT holds.
"""

import argparse
import contextlib
import io
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from benchmarks.pool import LINK, PROBLEM, local_pool, policy_named
from nestor.build.build import Built, Job
from nestor.cli import main as command_line
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.evaluate.compare_runs import EVALUATION
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.files import write_atomically
from nestor.learn.accounting import Tally
from nestor.learn.blackbox.comparison import ReusingPool
from nestor.learn.programs import default_rollouts, largest_programs, units_of
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.problem import Pool

SIZES: Final = "{sizes}"
"""Stands for the size model (``nestor sizes``)."""

SCORE: Final = PROBLEM.report.score
"""The column by which policies are judged: linked bytes."""

ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "reinforce": ("--learner", "reinforce"),
    "reinforce-module": ("--learner", "reinforce", "--reinforce.credit.scheme", "module"),
    "ppo": ("--learner", "ppo"),
    "ppo-function": ("--learner", "ppo", "--ppo.credit.scheme", "function"),
    "ppo-module": ("--learner", "ppo", "--ppo.credit.scheme", "module"),
    "ppo-stock": ("--learner", "ppo", "--ppo.credit.scheme", "stock"),
    "ppo-novelty": ("--learner", "ppo", "--ppo.novelty.weight", "0.3"),
    "ppo-mlgo": ("--learner", "ppo", "--ppo.preset", "mlgo"),
    "dqn": ("--learner", "dqn"),
    "dqn-epsilon": ("--learner", "dqn", "--dqn.explore", "epsilon"),
    "dqn-module": ("--learner", "dqn", "--dqn.credit.scheme", "module"),
    "best-of": ("--learner", "best-of"),
    "ars": ("--learner", "ars"),
    "cma": ("--learner", "cma"),
    "es": ("--learner", "es", "--es.steps", "1000"),
    "ppo-estimate": ("--learner", "ppo", "--estimate", SIZES),
    "dqn-estimate": ("--learner", "dqn", "--estimate", SIZES),
}
"""The options of each row; es starts from a clone of its seed."""


@dataclass(frozen=True)
class Run:
    """A run that OUT holds."""

    folder: Path
    row: str
    minutes: float
    seed: int

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return (self.folder / "result.json").exists()


def runs(out: Path) -> list[Run]:
    """Return the runs in ``out``."""
    found = []
    for folder in sorted(out.glob("*-*-*")):
        row, minutes, seed = folder.name.rsplit("-", 2)
        if row in ROWS and seed.isdigit():
            found.append(Run(folder, row, float(minutes), int(seed)))
    return found


def train(
    corpus: Path,
    out: Path,
    row: str,
    extra: Sequence[str],
    minutes: float,
    seed: int,
) -> Path:
    """Train what ``out`` does not hold; return the run's folder.

    A run goes on where the longest one with a smaller budget ended: it would have passed there.

    :param extra: the row's options.
    """
    folder = out / f"{row}-{minutes:g}-{seed}"
    earlier = [run for run in runs(out) if (run.row, run.seed) == (row, seed)]
    earlier = [run for run in earlier if run.minutes < minutes and run.done]
    if earlier and not folder.exists():
        copied = out / f"{folder.name}.partial"
        shutil.rmtree(copied, ignore_errors=True)
        left_out = shutil.ignore_patterns("result.json", EVALUATION, "policy.safetensors")
        shutil.copytree(max(earlier, key=lambda run: run.minutes).folder, copied, ignore=left_out)
        copied.rename(folder)
    words = ["train", PROBLEM.name, "--corpus", str(corpus), "--seed", str(seed), "--json"]
    extra = [*extra, "--budget.cpu-minutes", str(minutes)]
    if row == "es":
        clone = out / f"bc-{seed}"
        _run([*words, "--learner", "bc", "--out", str(clone)], clone)
        extra += ["--init", str(clone / "policy.safetensors")]
    _run([*words, *extra, "--out", str(folder)], folder)
    return folder


def _run(words: Sequence[str], folder: Path) -> None:
    if (folder / "result.json").exists():
        return
    with contextlib.redirect_stdout(io.StringIO()):
        status = command_line.main(words)
    if status != 0:
        raise NestorError(f"'nestor {' '.join(words)}' failed: see above.")


def judging_pool(pool: Pool, programs: Sequence[Program]) -> ReusingPool:
    """Return a pool for :func:`judge`: what stock does in ``programs`` is compiled once, here."""
    units = units_of(pool.corpus, programs)
    return ReusingPool(pool, default_rollouts(pool, units, Tally(), keep=True), Tally())


def judge(
    pool: ReusingPool, programs: Sequence[Program], policy: NamedPolicy
) -> list[dict[str, Any]]:
    """Return each program's linked bytes, stock and under ``policy``, as an evaluation has them.

    :param pool: of :func:`judging_pool`; modules that ``policy`` leaves as stock has them need no
        compile.
    """
    jobs = [Job(program, LINK.modes[0], side) for side in (DEFAULT, policy) for program in programs]
    built = LINK.run(pool, jobs)
    pool.release()
    return [
        {
            "name": program.name,
            "project": program.project,
            "stock": _columns(stock),
            "policy": _columns(under_policy),
        }
        for program, stock, under_policy in zip(
            programs, built[: len(programs)], built[len(programs) :], strict=True
        )
    ]


def _columns(built: Built) -> dict[str, float] | None:
    return None if built.columns is None else {SCORE: built.columns[SCORE]}


def geomean(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the geometric mean of the change of what both sides linked, in per cent."""
    both = [row for row in rows if row["stock"] and row["policy"]]
    if not both:
        return None
    before, after = ([float(row[s][SCORE]) for row in both] for s in ("stock", "policy"))
    return geometric_mean_change_pct(before, after)


def main() -> int:
    """Train and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 15.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--sizes", type=Path, help="the model of sizes, for rows that need one")
    options = parser.parse_args()
    needing = [row for row in options.only if SIZES in ROWS[row]]
    if needing and options.sizes is None:
        parser.error(f"{', '.join(needing)} need --sizes MODEL: see 'nestor sizes --help'")
    corpus = store.load(options.corpus)
    held_out = largest_programs(corpus.programs_of("test"))
    if not held_out:
        parser.error("the corpus has no programs in the split test")
    with local_pool(corpus) as pool:
        judging = judging_pool(pool, held_out)
        # Seed by seed: a table that is cut short is complete for the seeds it has.
        for seed, minutes, row in product(options.seeds, options.minutes, options.only):
            words = [word.format(sizes=options.sizes) for word in ROWS[row]]
            folder = train(options.corpus, options.out, row, words, minutes, seed)
            if not (folder / EVALUATION).exists():
                policy = policy_named(str(folder / "policy.safetensors"))
                rows = judge(judging, held_out, policy)
                failed = [r["name"] for r in rows if not (r["stock"] and r["policy"])]
                content = {"score": SCORE, "programs": rows, "failures": failed}
                write_atomically(folder / EVALUATION, json.dumps({"evaluations": [content]}))
            print(f"{folder.name} {geomean_of(folder):+.2f} %", flush=True)
    return 0


def geomean_of(folder: Path) -> float:
    """Return the change of a run that has been judged; 0 if nothing could be linked."""
    rows = json.loads((folder / EVALUATION).read_text())["evaluations"][0]["programs"]
    return geomean(rows) or 0.0


if __name__ == "__main__":
    sys.exit(main())
