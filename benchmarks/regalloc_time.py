"""Write what 'nestor workload time' measured to the result file of the studies.

    nestor workload time --policy shipped-eviction --corpus SPEED-PGO --rounds 80 --json > time.json
    python -m benchmarks.regalloc_time time.json [--table programs]
        [--json benchmarks/results/regalloc_time.json]
    python -m benchmarks.tables

Per program the shortest time of stock and the change of the medians, of each policy and of a second
copy of stock, which shows what the machine's noise alone does.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.result_tables import RESULTS
from nestor.compiler.toolchain import find

_CHANGE: Final = "{:+.1f} [{:+.1f}, {:+.1f}] %"


def main() -> int:
    """Write the result file."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("measured", type=Path, help="what the command printed")
    parser.add_argument("--table", default="programs", help="its name in the result file")
    parser.add_argument("--json", type=Path, default=RESULTS / "regalloc_time.json")
    options = parser.parse_args()
    content = json.loads(options.measured.read_text())
    means = content["means"]
    rows: list[list[Any]] = []
    for program in content["programs"]:
        effects, resolved = program["effects"], program["resolved"]
        changes = [[effects[n][key] for key in ("of_medians", "low", "high")] for n in means]
        clear = ", ".join(name for name in means if resolved.get(name)) or "none"
        rows.append([program["program"], 1000 * min(program["seconds"]["stock"]), *changes, clear])
    total = [record.with_interval(m["mean_pct"], m["ci95"]) for m in means.values()]
    rows.append(["mean", None, *total, ""])
    columns = [("program", "{}"), ("stock, shortest", "{:.0f} ms")]
    columns += [(f"{name}, medians [95 %]", _CHANGE) for name in means]
    columns.append(("larger than noise", "{}"))
    about = "Time of programs under policies, against stock."
    tables = {options.table: record.table(columns, rows)}
    record.write(options.json, about, tables, machine.describe(find()))
    print(f"{options.json} is new.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
