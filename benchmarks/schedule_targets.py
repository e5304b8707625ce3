"""How fast are kernels of one instruction set beside those of another, on the same machine?

    python -m benchmarks.schedule_targets DATABASE [--json benchmarks/results/schedule_targets.json]

Compares the fastest results of each payload that a database of ``schedule_record``, filled on one
machine, has for several targets. Nothing is measured anew.
"""

import argparse
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from benchmarks import record
from nestor.schedules.tune.database import Database

_MARCH: Final = re.compile(r"-march=(\S+)")


def fastest(database: Database) -> dict[tuple[str, str], dict[str, float]]:
    """Return the least seconds by pipeline and payload, and by instruction set."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for result in database.all():
        seconds = result.evaluation.least
        if seconds is not None:
            by_target = found[result.key.schedule.split()[0], result.key.payload]
            target = _MARCH.search(result.key.cpu)
            name = target[1] if target else result.key.cpu
            by_target[name] = min(by_target.get(name, seconds), seconds)
    return found


def main() -> None:
    """Print ratios by pipeline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    ratios: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for (schedule, _), by_target in fastest(Database(options.database)).items():
        best = min(by_target, key=lambda target: by_target[target])
        for target, seconds in by_target.items():
            if target != best:
                ratios[schedule, target, best].append(by_target[best] / seconds)
    rows: list[list[Any]] = [
        [*names, len(some), statistics.geometric_mean(some), min(some), max(some)]
        for names, some in sorted(ratios.items())
    ]
    for row in rows:
        print(*row)
    if options.json is not None:
        columns = [("pipeline", "{}"), ("target", "{}"), ("beside", "{}"), ("payloads", "{}"),
                   ("times its speed, geometric mean", "{:.2f}"), ("least", "{:.2f}"),
                   ("most", "{:.2f}")]  # fmt: skip
        about = "Kernels of one instruction set beside those of another on the same machine."
        record.write(options.json, about, {"targets": record.table(columns, rows)}, {})


if __name__ == "__main__":
    main()
