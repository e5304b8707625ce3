"""Every learner at equal budget: held-out linked bytes by learner, budget and seed.

    python -m benchmarks.learners CORPUS OUT [--minutes 5 15] [--seeds 0 1 2] [--only NAME …]
        [--references] [--json]

Trains what OUT does not hold yet (a killed run goes on where it was), judges each policy on the
largest program of every held-out project by linking it, one compile a module, and prints a table
and what it all cost. ``--references`` adds the default, packaged policies, random and greedy
search and ``nestor tune``; the searches get each budget for the held-out programs together.
"""

import argparse
import contextlib
import io
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from benchmarks.baseline_searches import Kind, climb
from benchmarks.machine import describe
from nestor.cli import main as command_line
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.evaluate.compare_runs import EVALUATION, compare, read_run, to_json
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.learn.experience import Tally, modules_of
from nestor.learn.reference import Reference, reference
from nestor.learn.searches import largest_programs
from nestor.learn.start import CHEAP_FEATURES, SITE_FEATURES
from nestor.progress import silent
from nestor.rewards.linked_size import link
from nestor.rollout.cache import baselines
from nestor.rollout.policy_file import PolicyFile, policy_file
from nestor.rollout.pool import Pool
from nestor.rollout.program import CompileError, compile_program
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune

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
}
"""The options of each row; es starts from a clone of its seed."""

PACKAGED: Final = ("shipped", "mlgo2020", "threshold:15")
"""Policies that reference lines are drawn for."""

LONG_TUNE: Final = 25.0
"""Whole-program compiles of the searches that show what there is to find."""


def train(
    corpus: Path, out: Path, row: str, minutes: float, seed: int, shorter: Sequence[float]
) -> Path:
    """Train what ``out`` does not hold; return the run's folder.

    A run goes on where the longest of the ``shorter`` ones that is there ended: it would have
    passed there anyhow.
    """
    folder = out / f"{row}-{minutes:g}-{seed}"
    earlier = [out / f"{row}-{less:g}-{seed}" for less in sorted(shorter) if less < minutes]
    if earlier and not folder.exists() and (earlier[-1] / "result.json").exists():
        copied = out / f"{folder.name}.partial"
        shutil.rmtree(copied, ignore_errors=True)
        left_out = shutil.ignore_patterns("result.json", EVALUATION, "policy.safetensors")
        shutil.copytree(earlier[-1], copied, ignore=left_out)
        copied.rename(folder)
    words = ["train", "inlining-size", "--corpus", str(corpus), "--seed", str(seed), "--json"]
    extra = [*ROWS[row], "--budget.cpu-minutes", str(minutes)]
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


def references(
    pool: Pool,
    programs: Sequence[Program],
    asked: Reference,
    minutes: Sequence[float],
    seeds: Sequence[int],
    path: Path,
) -> list[dict[str, Any]]:
    """Return the reference lines: packaged policies, and searches of the programs themselves.

    :param path: keeps each line as soon as it is known.
    """
    lines: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []

    def add(key: Mapping[str, Any], make: Callable[[], float | None]) -> None:
        if not any(all(line.get(k) == v for k, v in key.items()) for line in lines):
            lines.append({**key, "change_pct": make()})
            path.write_text(json.dumps(lines, indent=2))

    for name in PACKAGED:
        key: dict[str, Any] = {"name": name, "minutes": None}
        add(key, lambda name=name: geomean(judge(pool, programs, policy_file(name))))  # type: ignore[misc]
    prices = asked.prices()
    names = [name for p in programs for name in (*p.modules, p.name)]
    sweep = sum(prices.get(name, 0.0) for name in names)
    for budget in (*minutes, LONG_TUNE * sweep / 60):
        compiles = 60 * budget / sweep
        for kind in get_args(Kind):
            for seed in seeds[:1] if kind == "greedy" else seeds:
                key = {"name": f"{kind} search", "minutes": budget, "seed": seed}
                add(key, partial(_climbed, pool, programs, kind, compiles, seed))
        key = {"name": "nestor tune", "minutes": budget}
        add(key, partial(_tuned, pool, programs, compiles))
    return lines


def _climbed(
    pool: Pool, programs: Sequence[Program], kind: Kind, compiles: float, seed: int
) -> float:
    found = [climb(pool, program, kind, compiles, seed) for program in programs]
    return geometric_mean_change_pct([s for s, _ in found], [b for _, b in found])


def _tuned(pool: Pool, programs: Sequence[Program], compiles: float) -> float:
    before, after = [], []
    for program in programs:
        with tempfile.TemporaryDirectory(prefix="nestor-learners-") as folder:
            result = tune(
                pool,
                program,
                policy_file("default"),
                TuneSettings(),
                SearchSettings(compiles=compiles),
                0,
                Path(folder),
            )
        before.append(float(result.stock.sizes["gc"].loadable))
        after.append(float(result.best.sizes["gc"].loadable))
    return geometric_mean_change_pct(before, after)


def main() -> int:
    """Train, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 15.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--references", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    started, used = time.monotonic(), time.process_time()
    corpus = store.load(options.corpus)
    held_out = largest_programs(corpus.programs_of("test"))
    plugin = ready_plugin(None, silent)
    runs = []
    features = tuple(dict.fromkeys((*SITE_FEATURES, *CHEAP_FEATURES)))
    with Pool(corpus, plugin) as pool:
        asked = reference(pool, held_out, features, Tally())
    # Seed by seed: a table that is cut short is complete for the seeds it has.
    for seed in options.seeds:
        for minutes in options.minutes:
            for row in options.only:
                folder = train(options.corpus, options.out, row, minutes, seed, options.minutes)
                if not (folder / EVALUATION).exists():
                    with Pool(corpus, plugin) as pool:
                        policy = policy_file(str(folder / "policy.safetensors"))
                        rows = judge(pool, held_out, policy, asked)
                    failed = [r["name"] for r in rows if not (r["stock"] and r["policy"])]
                    content = {"programs": rows, "failures": failed}
                    (folder / EVALUATION).write_text(json.dumps({"evaluations": [content]}))
                runs.append(read_run(folder))
                print(f"{folder.name} {geomean_of(folder):+.2f} %", file=sys.stderr, flush=True)
    lines: list[dict[str, Any]] = []
    if options.references:
        with Pool(corpus, plugin) as pool:
            path = options.out / "references.json"
            lines = references(pool, held_out, asked, options.minutes, options.seeds, path)
    learners = compare(runs)
    table = {
        "machine": describe(plugin.toolchain),
        "corpus": corpus.digest,
        "programs": [program.name for program in held_out],
        "learners": to_json(learners),
        "references": lines,
        "training_cpu_minutes": sum(row.measured_minutes * len(row.seeds) for row in learners),
        "this_call": {
            "wall_minutes": (time.monotonic() - started) / 60,
            "own_cpu_minutes": (time.process_time() - used) / 60,
        },
    }
    (options.out / "table.json").write_text(json.dumps(table, indent=2))
    if options.json:
        json.dump(table, sys.stdout, indent=2)
        return 0
    for row in learners:
        low, high = row.interval or (float("nan"), float("nan"))
        worst = f"worst {row.worst[1]:+.2f} {row.worst[0]}" if row.worst else ""
        print(
            f"{row.name:60} {row.change_pct or 0.0:+7.2f} % ({low:+.2f} … {high:+.2f})"
            f" seeds {len(row.seeds)}  compiles {row.compiles:,.0f}"
            f"  CPU-min {row.cpu_minutes or 0.0:.1f}  own {row.overhead_pct:.0f} %  {worst}"
        )
    for line in lines:
        cost = f"{line['minutes']:.1f} CPU-min" if line["minutes"] else ""
        print(f"{line['name']:60} {line['change_pct'] or 0.0:+7.2f} %  {cost}")
    print(f"training took {table['training_cpu_minutes']:.1f} CPU-minutes in all")
    return 0


def geomean_of(folder: Path) -> float:
    """Return the change of a run that has been judged; 0 if nothing could be linked."""
    rows = json.loads((folder / EVALUATION).read_text())["evaluations"][0]["programs"]
    return geomean(rows) or 0.0


if __name__ == "__main__":
    sys.exit(main())
