"""Fill a database with results of the payloads that the policy learns from.

    python -m benchmarks.schedule_record DATABASE [--target host] [--evaluations 32]
        [--operator matmul …] [--limit N]

Each payload is searched by evolution from the computed guess. Half as many choices are drawn at
random, which say what is slow, and at last as many again are picked by the policy that the results
of the other payloads teach, which say where it is wrong. What is in the database already is not
measured again.
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
    parser.add_argument("--evaluations", type=int, default=32, help="of evolution")
    parser.add_argument("--operator", nargs="*", choices=list(TRAINING), default=list(TRAINING))
    parser.add_argument("--limit", type=int, help="shapes of each operator")
    options = parser.parse_args()
    tools = find_tools()
    database = Database(options.database)
    chosen = [(o, s) for o in options.operator for s in TRAINING[o][: options.limit]]
    for policy in (False, True):
        for number, (operator, shape) in enumerate(chosen):
            task = task_of(payload_of(operator, shape, tools), options.target, tools)
            half = options.evaluations // 2
            searches = (
                [TuneSettings("learned", half, finalists=0)]
                if policy
                else [
                    TuneSettings("evolution", options.evaluations),
                    TuneSettings("random", half, seed=number, finalists=0),
                ]
            )
            best = min(tune(task, s, database).best.least or 0.0 for s in searches)
            how = "picked" if policy else "searched"
            print(operator, written(shape), how, f"{best * 1e6:.1f} µs", flush=True)


if __name__ == "__main__":
    main()
