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
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from nestor.learn.experience import Tally, modules_of
from nestor.learn.features import MODULE_FEATURES
from nestor.learn.searches import largest_programs
from nestor.rewards.linked_size import link
from nestor.rollout.policy_file import PolicyFile, policy_file
from nestor.rollout.pool import Pool
from nestor.rollout.program import CompileError, compile_program

from nestor.cli import main as command_line
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.evaluate.compare_runs import EVALUATION
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.learn.reference import Reference, reference
from nestor.progress import silent
from nestor.rollout.cache import baselines

SIZES: Final = "{sizes}"
"""Stands for the model of sizes (``nestor sizes``)."""

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
    words = ["train", "inlining-size", "--corpus", str(corpus), "--seed", str(seed), "--json"]
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


def judge(
    pool: Pool, programs: Sequence[Program], policy: PolicyFile, asked: Reference | None = None
) -> list[dict[str, Any]]:
    """Return each program's linked bytes, stock and under ``policy``, as an evaluation has them.

    :param asked: what stock decides in these programs. Modules that ``policy`` leaves as they are
        need no compile then.
    """
    stock = baselines(pool, modules_of(pool.corpus, programs), None)
    same = _unchanged(policy, asked) if asked else set()
    rows = []
    for program in programs:
        sides: list[dict[str, int] | None] = []
        with tempfile.TemporaryDirectory(prefix="nestor-learners-") as text:
            for side, kept in ((None, stock.keys()), (policy, same)):
                known = {name: stock[name] for name in kept if name in stock}
                try:
                    objects = compile_program(pool, program, side, Path(text), known=known)
                except CompileError:
                    sides.append(None)
                    continue
                made = link(pool.plugin.toolchain, pool.corpus, program, objects).measure
                sides.append({"linked": made.loadable} if made else None)
        project = program.project
        rows.append(
            {"name": program.name, "project": project, "stock": sides[0], "policy": sides[1]}
        )
    return rows


def _unchanged(policy: PolicyFile, asked: Reference) -> set[str]:
    """Return the modules whose objects under ``policy`` are stock's."""
    made = policy.policy
    if made is None or not set(made.features) <= set(asked.features):
        return set()
    return {stock.module.name for stock in asked.stocks if stock.unchanged_by(made)}


def geomean(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the geometric mean of the change of what both sides linked, in per cent."""
    both = [row for row in rows if row["stock"] and row["policy"]]
    if not both:
        return None
    before, after = ([float(row[s]["linked"]) for row in both] for s in ("stock", "policy"))
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
    plugin = ready_plugin(None, silent)
    with Pool(corpus, plugin) as pool:
        asked = reference(pool, held_out, MODULE_FEATURES, Tally())
    # Seed by seed: a table that is cut short is complete for the seeds it has.
    for seed, minutes, row in product(options.seeds, options.minutes, options.only):
        words = [word.format(sizes=options.sizes) for word in ROWS[row]]
        folder = train(options.corpus, options.out, row, words, minutes, seed)
        if not (folder / EVALUATION).exists():
            with Pool(corpus, plugin) as pool:
                policy = policy_file(str(folder / "policy.safetensors"))
                rows = judge(pool, held_out, policy, asked)
            failed = [r["name"] for r in rows if not (r["stock"] and r["policy"])]
            content = {"programs": rows, "failures": failed}
            (folder / EVALUATION).write_text(json.dumps({"evaluations": [content]}))
        print(f"{folder.name} {geomean_of(folder):+.2f} %", flush=True)
    return 0


def geomean_of(folder: Path) -> float:
    """Return the change of a run that has been judged; 0 if nothing could be linked."""
    rows = json.loads((folder / EVALUATION).read_text())["evaluations"][0]["programs"]
    return geomean(rows) or 0.0


if __name__ == "__main__":
    sys.exit(main())
