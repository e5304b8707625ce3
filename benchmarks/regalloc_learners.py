"""Learners of register allocation at equal budget: static cost of held-out programs, by seed.

    python -m benchmarks.regalloc_learners CORPUS OUT [--problem NAME] [--minutes M]
        [--seeds 0 1 2] [--only NAME …] [--jobs N] [--json benchmarks/results/regalloc.json]

CORPUS is a codegen corpus of the tier speed. Trains what OUT does not hold yet: a run that was
stopped goes on where it was. Then every held-out module is compiled once with all policies as
alternatives, which tells what each of its functions would cost under each of them. Columns: the
mean change of the programs' static cost where a policy decides alone, and where the compiler keeps
it only in functions that get cheaper; for a portfolio only the second can be.
"""

import argparse
import contextlib
import io
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import machine, record
from benchmarks.regalloc_hot import Hot, compile_only, hot_functions, open_pool, stock_costs
from nestor.cli import main as command_line
from nestor.corpus import store
from nestor.errors import NestorError
from nestor.policy import bundle
from nestor.policy.portfolio import PortfolioPolicy
from nestor.policy.spec import F64
from nestor.rollout.local_pool import LocalPool

ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "portfolio": ("--learner", "portfolio"),
    "cma": ("--learner", "cma"),
    "ppo": ("--learner", "ppo"),
    "ppo-mlgo": ("--learner", "ppo", "--ppo.preset", "mlgo"),
    "best-of": ("--learner", "best-of"),
}
"""The options of each learner."""

_ALTERNATIVES: Final = 60
"""Policies that one compile tries."""


@dataclass(frozen=True)
class Run:
    """A policy that was trained, and the alternatives that it takes in a compile."""

    row: str
    seed: int
    path: Path
    members: int


def train(words: Sequence[str], row: str, seed: int, folder: Path) -> Run:
    """Train what ``folder`` does not hold.

    :raises NestorError: if the command fails.
    """
    path = folder / "policy.safetensors"
    if not (folder / "result.json").exists():
        own = [*words, *ROWS[row], "--seed", str(seed), "--out", str(folder), "--json"]
        with contextlib.redirect_stdout(io.StringIO()):
            status = command_line.main(own)
        if status != 0:
            raise NestorError(f"'nestor {' '.join(own)}' failed: see above.")
    policy = bundle.load(path)
    members = len(policy.members()) if isinstance(policy, PortfolioPolicy) else 1
    return Run(row, seed, path, members)


def judge(
    pool: LocalPool, runs: Sequence[Run], decision: str
) -> dict[tuple[str, int], tuple[list[float], list[float]]]:
    """Return the changes of the programs' cost in per cent, alone and kept where better."""
    programs = pool.corpus.programs_of("test")
    costs = stock_costs(pool, programs)
    hot = {program.name: hot_functions(program, costs) for program in programs}
    wanted: dict[str, set[int]] = {}
    for each in (one for own in hot.values() for one in own):
        wanted.setdefault(each.unit, set()).add(each.function.id)
    words = ["-nestor-best", *(f"-nestor-{decision}={run.path}" for run in runs)]

    def ratios(unit: str) -> dict[tuple[str, int], F64]:
        done = compile_only(pool.place, pool.corpus.module(unit), costs[unit], wanted[unit], words)
        return {(unit, i): np.array(f.tried) for i, f in done.functions.items() if f.tried}

    tried: dict[tuple[str, int], F64] = {}
    with ThreadPoolExecutor(pool.jobs) as workers:
        for found in workers.map(ratios, wanted):
            tried |= found
    result = {}
    first = 1
    for run in runs:
        own = slice(first, first + run.members)
        first = own.stop
        result[run.row, run.seed] = (
            [_change(hot[p.name], tried, own, kept=False) for p in programs],
            [_change(hot[p.name], tried, own, kept=True) for p in programs],
        )
    return result


def _change(
    hot: Sequence[Hot], tried: Mapping[tuple[str, int], F64], own: slice, *, kept: bool
) -> float:
    change = 0.0
    for each in hot:
        ratios = tried.get((each.unit, each.function.id))
        if ratios is not None:
            least = float(ratios[own].min())
            change += each.share * (min(least, 1.0) - 1 if kept else least - 1)
    return 100 * change


def main() -> None:
    """Train, judge, print and record."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--problem", default="regalloc-eviction")
    parser.add_argument("--minutes", type=float, default=5.0, help="CPU minutes by the price list")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    words = ["train", options.problem, "--corpus", str(options.corpus)]
    words += ["--jobs", str(options.jobs), "--budget.cpu-minutes", str(options.minutes)]
    runs = [
        train(words, row, seed, options.out / f"{row}-{options.minutes:g}-{seed}")
        for seed in options.seeds
        for row in options.only
    ]
    if sum(run.members for run in runs) > _ALTERNATIVES:
        parser.error(f"these are more than {_ALTERNATIVES} policies: use --only or fewer --seeds")
    decision = options.problem.rpartition("-")[2]
    with open_pool(store.load(options.corpus), options.problem, options.jobs) as pool:
        judged = judge(pool, runs, decision)
        toolchain = pool.plugin.toolchain
    columns = [("learner", "{}"), ("policies", "{}"), ("programs", "{}")]
    columns += [(f"{how}, by seed", "{}") for how in ("alone", "kept where better")]
    columns += [(f"worst program {how}", "{:+.2f} %") for how in ("alone", "kept")]
    rows = []
    for row in options.only:
        own = [run for run in runs if run.row == row]
        sides = [[judged[row, run.seed][side] for run in own] for side in (0, 1)]
        single = all(run.members == 1 for run in own)
        means = [" ".join(f"{statistics.mean(seed):+.2f}" for seed in side) for side in sides]
        worst = [max(map(max, side)) for side in sides]
        rows.append([
            row, " ".join(str(run.members) for run in own), len(sides[0][0]),
            means[0] if single else "–", means[1], worst[0] if single else None, worst[1],
        ])  # fmt: skip
    print(" | ".join(title for title, _ in columns))
    for cells in rows:
        shown = (
            "–" if c is None else f.format(c) for c, (_, f) in zip(cells, columns, strict=True)
        )
        print(" | ".join(shown))
    if options.json:
        table = record.table(columns, rows)
        about = "What the plugin does to register allocation."
        record.write(
            options.json, about, {f"learners_{decision}": table}, machine.describe(toolchain)
        )


if __name__ == "__main__":
    main()
