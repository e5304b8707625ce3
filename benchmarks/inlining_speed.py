"""What searches for speed found, program by program, on the searched input and on another one.

    nestor tune lz4 --corpus SPEED --out TUNED/lz4 --problem inlining-speed --json
        > lz4.json
    python -m benchmarks.inlining_speed lz4.json lua.json … [--table tuned] [--kept FILE]
        [--several several/lua.json …]
        [--json benchmarks/results/inlining_speed.json]

Rows are worst first by J on the input `measure`, which no search has seen. ``--kept`` is a file
with a line for each search, to which those named are added, each in the place of an earlier one of
its program: so that the searches of a table can be made in several sessions, and on several
machines, since each is compared with its own stock. ``--several`` names searches of some of these
programs by more runs, and sets the two side by side in a table of its own, with the mean of all
programs where these take the place of the others.
"""

import argparse
import datetime
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import machine, record
from benchmarks.record import table
from nestor.compiler.toolchain import find
from nestor.files import write_atomically

COLUMNS: Final = [
    ("program", "{}"),
    ("J, unseen input", "{:+.2f} %"),
    ("J, searched input", "{:+.2f} %"),
    ("code", "{:+.2f} %"),
    ("sites", "{}"),
    ("compiles", "{:.1f}"),
]
SEVERAL: Final = [
    ("program", "{}"),
    ("one input searched: J, unseen input", "{:+.2f} %"),
    ("several: J, unseen input", "{:+.2f} %"),
    ("J, searched inputs", "{:+.2f} %"),
    ("code", "{:+.2f} %"),
]
_KEPT: Final = ("program", "overrides_count", "sizes")
"""What of a search is kept, with the end of its curve."""
_RESAMPLES: Final = 10_000
_FEWEST: Final = 5
"""An interval of the mean of fewer programs would say nothing."""


def row(found: Mapping[str, Any]) -> list[Any]:
    """Return the row of one search: changes in per cent."""
    sizes = found["sizes"]

    def change(mode: str, column: str) -> float:
        return 100 * float(sizes[mode]["tuned"][column] / sizes[mode]["stock"][column] - 1)

    return [
        found["program"].rpartition("/")[2],
        change("measure", "J"),
        change("profile", "J"),
        change("measure", "text"),
        found["overrides_count"],
        found["curve"][-1]["compiles"],
    ]


def rows(searches: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return the rows, worst first, and their means."""
    each = sorted((row(found) for found in searches), key=lambda cells: -cells[1])
    means = [statistics.fmean(cells[column] for cells in each) for column in range(1, 6)]
    return [*each, [f"mean of {len(each)}", *means[:3], round(means[3]), means[4]]]


def beside(
    before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]], words: str
) -> list[list[Any]]:
    """Return what other searches find of some programs, and what they make of the means of all.

    :param before: rows of all programs, as those ``after`` of some of them.
    :param words: say which mean the last row has.
    """
    old, new = ({cells[0]: list(cells) for cells in side} for side in (before, after))
    each = [[name, old[name][1], *cells[1:4]] for name, cells in new.items()]
    every = list((old | new).values())
    means = [statistics.fmean(cells[column] for cells in every) for column in (1, 2, 3)]
    alone = statistics.fmean(cells[1] for cells in old.values())
    return [*each, [f"mean of {len(every)}, {words}", alone, *means]]


def interval(changes: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over programs."""
    drawn = np.random.default_rng(0).choice(changes, (_RESAMPLES, len(changes)))
    low, high = np.percentile(drawn.mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def with_kept(path: Path, found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the searches in ``path`` with those ``found``, and keep them there."""
    place = machine.describe(find())
    about = {"date": datetime.date.today().isoformat(), "processor": place["design"]}
    own = [
        {**{key: search[key] for key in _KEPT}, "curve": search["curve"][-1:], **about}
        for search in found
    ]
    before = record.json_lines(path, may_lack=True)
    searches = {one["program"]: one for one in (*before, *own)}
    lines = [json.dumps(searches[program]) for program in sorted(searches)]
    write_atomically(path, "".join(f"{line}\n" for line in lines))
    return [searches[program] for program in sorted(searches)]


def main() -> int:
    """Print the table, and write it to a result file if one is named."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("found", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="searches of earlier sessions")
    parser.add_argument("--table", default="tuned", help="its name in the result file")
    parser.add_argument("--several", nargs="+", type=Path, metavar="FILE", default=[])
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result file")
    options = parser.parse_args()
    found = [json.loads(path.read_text()) for path in options.found]
    if options.kept:
        found = with_kept(options.kept, found)
    if not found:
        parser.error("name a FILE, or --kept with searches.")
    cells = rows(found)
    values: dict[str, Any] = {}
    if len(cells) > _FEWEST:
        low, high = interval([own[1] for own in cells[:-1]])
        print(f"J on the unseen input, 95 % interval of the mean: {low:+.2f} to {high:+.2f} %")
        values = {f"{options.table}_interval_pct": [low, high]}
    tables = {options.table: table(COLUMNS, cells)}
    if options.several:
        several = sorted(row(json.loads(path.read_text())) for path in options.several)
        more = beside(cells[:-1], several, f"these {len(several)} by several")
        tables[f"{options.table}_several"] = table(SEVERAL, more)
    record.publish(options.json, "Inlining for speed, by program.", tables, **values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
