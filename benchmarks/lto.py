"""Inside LTO: what a policy and a search save beyond stock LTO.

    python -m benchmarks.lto CORPUS PROGRAM… [--lto full] [--policy distilled] [--compiles 13]
        [--json FILE]

A row is a program: linked bytes of stock ``-Oz`` without and with LTO, then what the policy and a
search from it (``--compiles 0``: none) make of the latter, in per cent of bytes / code, and the CPU
time of a link under the policy over that of a stock one. Failures are named in the row.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import LINK, PROBLEM, local_pool, policy_named
from nestor.build.build import Build, Job
from nestor.cli.policies.builds import lto_build
from nestor.cli.setup import program_named
from nestor.compiler.lto import LtoKind
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.evaluate.compare import evaluate
from nestor.evaluate.statistics import change_pct, geometric_mean_change_pct
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool
from nestor.rollout.local_pool import PoolSettings
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, tune

Pair = tuple[float, float]
"""Linked bytes and code."""


@dataclass(frozen=True)
class Row:
    """One program; None is what failed or was not wanted."""

    program: str
    plain: float | None
    """Linked bytes of the stock program without LTO."""
    stock: Pair | None
    policy: Pair | None
    search: Pair | None
    cpu: float | None
    """CPU time of a link under the policy over that of a stock one."""
    failures: tuple[str, ...]


def measure(
    pool: Pool, build: Build, program: Program, policy: NamedPolicy, compiles: float, folder: Path
) -> Row:
    """Measure one program.

    :param folder: where the search is kept.
    """
    (used,) = evaluate(pool, build, [program], [policy])
    (plain,) = LINK.run(pool, [Job(program, "gc")])
    stock = after = searched = None
    for _, before, made in used.compared():
        stock, after = (before["linked"], before["text"]), (made["linked"], made["text"])
    if compiles and stock is not None:
        settings, budget = TuneSettings(modes=build.modes[:1]), SearchSettings(compiles=compiles)
        tuned = tune(pool, build, program, policy, settings, budget, 0, folder)
        columns = tuned.best.columns[build.modes[0]]
        searched = (columns["linked"], columns["text"])
    return Row(
        program.name,
        None if plain.columns is None else plain.columns["linked"],
        stock,
        after,
        searched,
        used.compile_cpu_ratio,
        tuple(f"{failure.side}: {failure.reason}" for failure in used.failures),
    )


def change(before: Pair | None, after: Pair | None) -> Pair | None:
    """Return the changes of both numbers, in per cent."""
    if before is None or after is None:
        return None
    return change_pct(before[0], after[0]), change_pct(before[1], after[1])


def mean(pairs: Sequence[tuple[Pair | None, Pair | None]]) -> Pair | None:
    """Return the geometric means of the changes of those that are there on both sides."""
    both = [(before, after) for before, after in pairs if before and after]
    if not both:
        return None
    linked, code = (
        geometric_mean_change_pct([a[i] for a, _ in both], [b[i] for _, b in both]) for i in (0, 1)
    )
    return linked, code


def _cell(changes: Pair | None) -> str:
    return f"{'—':>15}" if changes is None else f"{changes[0]:+6.2f} /{changes[1]:+6.2f}"


def main() -> int:
    """Measure the programs one after the other and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("program", nargs="+")
    parser.add_argument("--lto", choices=get_args(LtoKind), default="full")
    parser.add_argument("--policy", default="distilled")
    parser.add_argument("--compiles", type=float, default=13.0)
    parser.add_argument("--out", type=Path, help="keep the searches here, to go on from")
    parser.add_argument("--jobs", type=int, default=PoolSettings().jobs)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    corpus, policy = store.load(options.corpus), policy_named(options.policy)
    build = PROBLEM.builds()[lto_build(options.lto)]
    rows = []
    with (
        local_pool(corpus, PoolSettings(jobs=options.jobs)) as pool,
        tempfile.TemporaryDirectory(prefix="nestor-lto-") as text,
    ):
        for name in options.program:
            program = program_named(corpus, name)
            folder = (options.out or Path(text)) / program.name.replace("/", "-")
            row = measure(pool, build, program, policy, options.compiles, folder)
            rows.append(row)
            stock = row.stock[0] if row.stock else 0
            print(
                f"{row.program:28} {row.plain or 0:>9,.0f} {stock:>9,.0f}"
                f"  {_cell(change(row.stock, row.policy))}"
                f"  {_cell(change(row.stock, row.search))}  {row.cpu or 0:.2f}",
                *row.failures,
                flush=True,
            )
        machine = describe(pool.plugin.toolchain)
    by_policy = mean([(row.stock, row.policy) for row in rows])
    by_search = mean([(row.stock, row.search) for row in rows])
    print(f"{'geometric mean':48}  {_cell(by_policy)}  {_cell(by_search)}")
    if options.json:
        columns = [
            ("held-out program", "{}"), (f"stock {options.lto} LTO", "{:,.0f}"),
            ("LTO policy", record.CHANGES),
            (f"search, {options.compiles:g} compiles", record.CHANGES), ("CPU of a link", "{:.2f}"),
        ]  # fmt: skip
        cells: list[list[object]] = [
            [
                row.program,
                row.stock and row.stock[0],
                change(row.stock, row.policy),
                change(row.stock, row.search),
                row.cpu,
            ]
            for row in rows
        ]
        cells.append(["**mean**", None, by_policy, by_search, None])
        about = (
            "A policy distilled inside LTO, and a search, against stock LTO at -Oz, link mode gc:"
            " linked bytes / code."
        )
        record.write(options.json, about, {options.lto: record.table(columns, cells)}, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
