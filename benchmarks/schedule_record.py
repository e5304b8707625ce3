"""Fill a database with results of the payloads that the policy learns from.

    python -m benchmarks.schedule_record DATABASE [--target host] [--evaluations 32] [--limit N]

Each payload is searched by evolution from the computed guess, and then by half as many choices
drawn at random, which say what is slow. What is in the database already is not measured again.
"""

import argparse
from pathlib import Path

from benchmarks.schedule_kernels import task_of
from benchmarks.schedule_payloads import TRAINING, payload_of, written
from nestor.schedules.tools import find_tools
from nestor.schedules.tune.database import Database
from nestor.schedules.tune.tuning import TuneSettings, tune


def main() -> None:
    """Search all payloads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("--target", default="host")
    parser.add_argument("--evaluations", type=int, default=32, help="choices of each payload")
    parser.add_argument("--limit", type=int, help="shapes of each operator")
    options = parser.parse_args()
    tools = find_tools()
    database = Database(options.database)
    settings = TuneSettings("evolution", options.evaluations)
    slow = TuneSettings("random", options.evaluations // 2, finalists=0)
    for operator, shapes in TRAINING.items():
        for shape in shapes[: options.limit]:
            task = task_of(payload_of(operator, shape, tools), options.target, tools)
            tuned = tune(task, settings, database)
            tune(task, slow, database)
            best = (tuned.best.least or 0.0) * 1e6
            first = (tuned.first.least or 0.0) * 1e6
            print(operator, written(shape), f"{first:.1f} µs, then {best:.1f} µs", flush=True)


if __name__ == "__main__":
    main()
