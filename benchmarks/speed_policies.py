"""What a policy for speed does to programs that were built in several ways, program by program.

    nestor workload measure --problem inlining-speed --policy shipped-speed --corpus SPEED --json \
        > o2.json
    python -m benchmarks.speed_policies 'at -O2=o2.json' 'at -O2 with a profile=profiled.json' …
        [--table policy] [--card shipped-speed] [--json benchmarks/results/inlining_speed.json]

The words before a file say how the programs were built. A cell holds the change of J and of code,
in per cent of stock built in the same way; where the programs were built in several ways, a second
table compares stock with stock, each way with the first. Programs that failed are left out.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, record
from benchmarks.inlining_speed import interval
from benchmarks.model_card import origin
from benchmarks.record import CHANGES, Table, table
from nestor.compiler.toolchain import find
from nestor.problem.registry import find_problem

Changes = Mapping[str, tuple[float, float]]
"""Of J and of code, in per cent, by program."""


def changes(measured: Mapping[str, Any]) -> Changes:
    """Return the changes under the first policy of ``nestor workload measure --json``."""
    programs = measured["workloads"][0]["programs"]
    return {
        one["name"]: (one["change_pct"]["J"], one["change_pct"]["text"])
        for one in programs
        if one.get("change_pct")
    }


def against_first(measured: Sequence[Mapping[str, Any]]) -> list[Changes]:
    """Return the changes from stock built in the first way to stock built in each other one."""
    stock = [
        {one["name"]: one["stock"] for one in found["workloads"][0]["programs"] if one.get("stock")}
        for found in measured
    ]

    def change(own: Mapping[str, float], first: Mapping[str, float]) -> tuple[float, float]:
        total, code = (100 * (own[column] / first[column] - 1) for column in ("J", "text"))
        return total, code

    first = stock[0]
    return [
        {name: change(own[name], first[name]) for name in first if name in own} for own in stock[1:]
    ]


def rows(builds: Sequence[Changes]) -> list[list[Any]]:
    """Return a row a program, worst first by the first build, and rows of mean and worst."""
    names = sorted(builds[0], key=lambda name: -builds[0][name][0])
    each = [[name.rpartition("/")[2], *(own.get(name) for own in builds)] for name in names]
    mean: list[Any] = [f"mean of {len(names)}"]
    worst: list[Any] = ["worst"]
    for own in builds:
        columns = list(zip(*own.values(), strict=True))
        mean.append(tuple(statistics.fmean(column) for column in columns))
        worst.append(tuple(max(column) for column in columns))
    return [*each, mean, worst]


def shown(ways: Sequence[str], cells: list[list[Any]]) -> Table:
    """Print rows, and return them as a table with a column for each of ``ways``."""
    for row in cells:
        print(" | ".join((row[0], *(CHANGES.format(*pair) if pair else "" for pair in row[1:]))))
    return table([("program", "{}"), *((how, CHANGES) for how in ways)], cells)


def main() -> int:
    """Print the table, and write it to a result file if one is named."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("measured", nargs="+", metavar="HOW=FILE")
    parser.add_argument("--table", default="policy", help="its name in the result file")
    parser.add_argument("--card", metavar="POLICY", help="also say what this policy was made from")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result file")
    options = parser.parse_args()
    named = [word.rpartition("=") for word in options.measured]
    measured = [json.loads(Path(file).read_text()) for _, _, file in named]
    builds = [changes(found) for found in measured]
    tables = {options.table: shown([how for how, _, _ in named], rows(builds))}
    stock = against_first(measured)
    if any(code for own in stock for _, code in own.values()):
        print()
        cells = rows(stock)
        name = "stock" if options.table == "policy" else f"{options.table}_stock"
        tables[name] = shown([f"stock {how}" for how, _, _ in named[1:]], cells)
    if options.card:
        made = find_problem("inlining-speed").policy(options.card).policy
        assert made is not None
        tables["origin"] = origin(made)
    values = {}
    for (how, _, _), own in zip(named, builds, strict=True):
        low, high = interval([total for total, _ in own.values()])
        print(f"{how}: 95 % interval of the mean of J {low:+.2f} to {high:+.2f} %")
        values[how] = [low, high]
    if options.json:
        place = machine.describe(find())
        intervals = {f"{options.table}_intervals_pct": values}
        record.write(options.json, "Inlining for speed, by program.", tables, place, **intervals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
