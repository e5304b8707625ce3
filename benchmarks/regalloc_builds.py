"""Set side by side what programs execute that were built in several ways.

    nestor workload measure --policy shipped-eviction --corpus SPEED-OS-PGO … --json > os.json
    python -m benchmarks.regalloc_builds '-Os=os.json' 'tuned=lz4.json,lzip.json' …
        [--table builds] [--json benchmarks/results/regalloc.json]

A word before the files says how the programs were built. Measurements of several files are one
row, so that programs that were measured one by one, as after ``nestor tune``, count together.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine, record
from benchmarks.record import table
from nestor.compiler.toolchain import find


def row(how: str, files: list[Path]) -> list[Any]:
    """Return the row of the measurements in ``files``: changes in per cent, worst first."""
    workloads = [json.loads(file.read_text())["workloads"][0] for file in files]
    programs = [program for workload in workloads for program in workload["programs"]]
    failures = sum(len(workload["failures"]) for workload in workloads)
    changes = {p["name"]: p["change_pct"] for p in programs if p.get("change_pct")}
    executed = {name: change["J"] for name, change in changes.items()}
    ranked = sorted(executed, key=lambda name: -executed[name])
    each = ", ".join(f"{name.rpartition('/')[2]} {executed[name]:+.2f}" for name in ranked)
    means = [statistics.fmean(c[column] for c in changes.values()) for column in ("J", "text")]
    return [how, len(executed), *means, max(executed.values()), each.replace("-", "−"), failures]


def main() -> int:
    """Print the table, and write it to a result file if one is named."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("measured", nargs="+", metavar="HOW=FILE,…")
    parser.add_argument("--table", default="builds", help="its name in the result file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result file")
    options = parser.parse_args()
    rows = []
    for word in options.measured:
        how, _, files = word.partition("=")
        rows.append(row(how, [Path(file) for file in files.split(",")]))
    titles = [("build", "{}"), ("programs", "{}"), ("J, mean", "{:+.2f} %"), ("code", "{:+.2f} %")]
    titles += [("worst", "{:+.2f} %"), ("J by program, per cent", "{}"), ("failures", "{}")]
    for cells in rows:
        print(" | ".join(str(cell) for cell in cells))
    if options.json:
        tables = {options.table: table(titles, rows)}
        record.write(options.json, "Register allocation.", tables, machine.describe(find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
