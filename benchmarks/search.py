"""What a search finds beyond a policy: linked bytes against whole-program compiles.

    python -m benchmarks.search CORPUS WORK PROGRAM… [--policy NAME] [--compiles 25] [--mode gc]
        [--earlier FILE…] [--json FILE]

Programs are those of the tier ``bench``. Each is tuned with its summary, as ``nestor tune`` does:
from the best of stock and the packaged policies, or from a policy. A row shows linked bytes and
code against stock after some numbers of whole-program compiles. WORK keeps the searches, so a run
that was stopped goes on. ``--earlier`` adds the rows of result files that were written before, and
no program need be new.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import LINK, PROBLEM, local_pool, policy_named
from nestor.change import change_pct
from nestor.cli.setup import program_named, usual_policy
from nestor.corpus import store
from nestor.corpus.fetch.tiers import recipes
from nestor.tune.search import Point, SearchSettings
from nestor.tune.session import TuneSettings, summary_for_search, tune

SHOWN: Final = (1.0, 5.0, 10.0, 15.0, 25.0)
"""Whole-program compiles at which a curve is shown; the first ones build the starts."""
_MEAN: Final = "**mean**"


Changes = list[list[float]]
"""Of linked bytes and of code against stock, in per cent, after each number of ``SHOWN``."""


def changes(curve: tuple[Point, ...]) -> Changes:
    """Return what a curve has reached after each number of ``SHOWN``."""
    stock = curve[0]
    found = []
    for compiles in SHOWN:
        point = [point for point in curve if point.compiles <= compiles][-1]
        code = change_pct(stock.others["text"], point.others["text"])
        found.append([change_pct(stock.total, point.total), code])
    return found


def earlier(paths: Sequence[Path]) -> dict[str, Changes]:
    """Return the programs' rows in result files."""
    tables = [json.loads(path.read_text())["tables"]["programs"] for path in paths]
    rows = (row for table in tables for row in table["rows"])
    return {name: found for name, _, *found in rows if name != _MEAN}


def cells(found: Mapping[str, Changes]) -> list[list[object]]:
    """Return the table: the groups that goals are set for, most saved first, and their means."""
    styles = {recipe.project: recipe.style for recipe in recipes("bench")}
    groups: dict[str, list[str]] = {}
    for name in sorted(found, key=lambda name: found[name][-1]):
        kind = styles[name.partition("/")[0]].partition(":")[0]
        group = {"modern": "modern", "C": "C"}.get(kind, "other C++")
        groups.setdefault(group, []).append(name)
    rows: list[list[object]] = []
    for group in sorted(groups, key=("modern", "other C++", "C").index):
        rows += [[name, group, *found[name]] for name in groups[group]]
        columns = zip(*(found[name] for name in groups[group]), strict=True)
        rows.append([_MEAN, f"**{group}**", *map(record.mean_changes, columns)])
    return rows


def main() -> int:
    """Tune the programs one after the other and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("program", nargs="*")
    parser.add_argument("--policy", help="where to start; default: the best of several")
    parser.add_argument("--compiles", type=float, default=25.0)
    parser.add_argument("--mode", choices=LINK.modes, default="gc")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--earlier", type=Path, nargs="+", default=[], help="result files")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    policy = policy_named(options.policy or usual_policy(PROBLEM))
    further = PROBLEM.moves().policies if options.policy is None else ()
    settings = TuneSettings((options.mode,), policies=further)
    found = earlier(options.earlier)
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
            found[program.name] = changes(result.curve)
            print(program.name, f"{result.curve[0].total:,.0f} bytes", flush=True)
        machine = describe(pool.plugin.toolchain)
    columns = [("program", "{}"), ("style", "{}")]
    columns += [(f"{compiles:.0f}", "{:+.1f} / {:+.1f}") for compiles in SHOWN]
    tables = {"programs": record.table(columns, cells(found))}
    record.show(tables)
    if options.json:
        start = options.policy or "the best of stock and the packaged policies"
        about = (
            f"What a search from {start} finds, link mode {options.mode}: linked bytes / code"
            " against stock, in per cent, after so many whole-program compiles."
        )
        record.write(options.json, about, tables, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
