"""What a search finds beyond a policy: linked bytes against whole-program compiles.

    python -m benchmarks.search CORPUS WORK PROGRAM… [--policy NAME] [--compiles 25] [--mode gc]
        [--json FILE]

Each program is tuned with its summary, as ``nestor tune`` does: from the best of stock and the
packaged policies, or from a policy. A row shows linked bytes and code against stock after some
numbers of whole-program compiles. WORK keeps the searches, so a run that was stopped goes on.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import LINK, PROBLEM, local_pool, policy_named
from nestor.cli.setup import program_named, usual_policy
from nestor.corpus import store
from nestor.evaluate.groups import style_group
from nestor.evaluate.statistics import change_pct, geometric_mean_change_pct
from nestor.tune.search import Point, SearchSettings
from nestor.tune.session import TuneSettings, summary_for_search, tune

SHOWN = (1.0, 5.0, 10.0, 15.0, 25.0)
"""Whole-program compiles at which a curve is shown; the first ones build the starts."""


@dataclass(frozen=True)
class Row:
    """The search of one program."""

    program: str
    group: str
    stock: Point
    shown: tuple[Point, ...]
    """What was reached after each number of ``SHOWN``."""

    def changes(self) -> list[tuple[float, float]]:
        """Return the changes of linked bytes and of code against stock, in per cent."""
        return [
            (
                change_pct(self.stock.total, point.total),
                change_pct(self.stock.others["text"], point.others["text"]),
            )
            for point in self.shown
        ]


def at(curve: tuple[Point, ...], compiles: float) -> Point:
    """Return what a curve has reached after ``compiles``."""
    return [point for point in curve if point.compiles <= compiles][-1]


def means(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return the geometric means of the changes of several programs, in per cent."""
    return [
        (
            geometric_mean_change_pct(
                [row.stock.total for row in rows], [row.shown[place].total for row in rows]
            ),
            geometric_mean_change_pct(
                [row.stock.others["text"] for row in rows],
                [row.shown[place].others["text"] for row in rows],
            ),
        )
        for place in range(len(SHOWN))
    ]


def main() -> int:
    """Tune the programs one after the other and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("program", nargs="+")
    parser.add_argument("--policy", help="where to start; default: the best of several")
    parser.add_argument("--compiles", type=float, default=25.0)
    parser.add_argument("--mode", choices=LINK.modes, default="gc")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    policy = policy_named(options.policy or usual_policy(PROBLEM))
    further = PROBLEM.moves().policies if options.policy is None else ()
    settings = TuneSettings((options.mode,), policies=further)
    rows: list[Row] = []
    with local_pool(corpus) as pool:
        for name in options.program:
            program = program_named(corpus, name)
            result = tune(
                pool,
                LINK,
                program,
                policy,
                settings,
                SearchSettings(compiles=options.compiles),
                options.seed,
                options.work / program.name,
                summary=summary_for_search(pool, LINK, program, options.mode),
            )
            shown = tuple(at(result.curve, compiles) for compiles in SHOWN)
            row = Row(program.name, style_group(corpus, program), result.curve[0], shown)
            rows.append(row)
            cells = "  ".join(f"{linked:+6.2f}/{code:+6.2f}" for linked, code in row.changes())
            print(f"{row.program:32} {row.stock.total:>10,.0f}  {cells}", flush=True)
        machine = describe(pool.plugin.toolchain)
    cells_of_table: list[list[object]] = []
    for group in sorted({row.group for row in rows}):
        own = [row for row in rows if row.group == group]
        mean = means(own)
        linked, code = mean[-1]
        print(f"{group:32} {len(own):>3} programs  linked {linked:+.2f} %  text {code:+.2f} %")
        cells_of_table += [[row.program, group, *row.changes()] for row in own]
        cells_of_table.append(["**mean**", f"**{group}**", *mean])
    if options.json:
        start = options.policy or "the best of stock and the packaged policies"
        about = (
            f"What a search from {start} finds, link mode {options.mode}: linked bytes / code"
            " against stock, in per cent, after so many whole-program compiles."
        )
        columns = [("program", "{}"), ("style", "{}")]
        columns += [(f"{compiles:.0f}", "{:+.1f} / {:+.1f}") for compiles in SHOWN]
        tables = {"programs": record.table(columns, cells_of_table)}
        record.write(options.json, about, tables, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
