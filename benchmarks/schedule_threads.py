"""How much faster are kernels on several threads than the best kernel on one?

    python -m benchmarks.schedule_threads STATE [--threads 2] [--evaluations 8]
        [--json benchmarks/results/schedule_threads.json]

Large products are tuned for one thread, and again for several, from the packaged policy. The two
kernels, and OpenBLAS with as many threads, then run in turns, each in processes of its own, since a
process chooses its number of threads once. STATE keeps what was found, so that an interrupted run
goes on. **Needs as many idle processors as threads.**
"""

import argparse
import functools
import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.schedule_kernels import State, task_of
from benchmarks.schedule_payloads import Shape, payload_of, written
from nestor.compiler.toolchain import find
from nestor.schedules.kernel.evaluate import Task, build_choice
from nestor.schedules.kernel.measure import measure
from nestor.schedules.tools import find_tools
from nestor.schedules.tune.database import Database
from nestor.schedules.tune.tuning import TuneSettings, tune
from nestor.temporary import temporary_folder

LARGE: Final[tuple[Shape, ...]] = (
    (1024, 1024, 1024), (1536, 1536, 1536), (2048, 2048, 2048), (768, 3072, 768), (3072, 768, 768),
)  # fmt: skip
_TURNS: Final = 4
"""Processes of each kernel."""


def tuned(task: Task, evaluations: int) -> dict[str, Any]:
    """Return the fastest choice of a search that begins with the packaged policy."""
    with temporary_folder("database") as name:
        found = tune(task, TuneSettings("learned", evaluations), Database(Path(name) / "r.sqlite"))
    return {"choice": dict(found.best.choice)}


def in_turns(tasks: dict[str, Task], choices: dict[str, Any], rounds: int) -> dict[str, float]:
    """Return the least seconds of a call, by kernel and of OpenBLAS beside each."""
    least: dict[str, float] = {}
    with temporary_folder("kernels") as name:
        files = {one: Path(name) / f"{one}.so" for one in tasks}
        for one, task in tasks.items():
            build_choice(task, choices[one]["choice"], files[one])
        for turn in range(_TURNS):
            for one, task in tasks.items():
                settings = replace(task.settings, rounds=rounds, seed=turn, numpy=True)
                found = measure(
                    {one: files[one]}, task.payload, task.tools, settings, generics=task.generics
                )
                if one not in found.timings:
                    raise SystemExit(f"{one}: {found.verdicts[one]['reason']}")
                for what, timing in found.timings.items():
                    key = one if what == one else f"{what} {one}"
                    least[key] = min(least.get(key, math.inf), timing.least)
    return least


def main() -> None:
    """Tune, time and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state", type=Path, help="keeps what was found")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--evaluations", type=int, default=8, help="of each search")
    parser.add_argument("--rounds", type=int, default=6, help="repeats of each process")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    tools, state, several = find_tools(), State(options.state), f"{options.threads} threads"
    rows: list[list[Any]] = []
    for shape in LARGE:
        one = task_of(payload_of("matmul", shape, tools), "host", tools)
        shared = replace(
            one, fixed={"parallel": 1}, settings=replace(one.settings, threads=options.threads)
        )
        tasks = {"one": one, several: shared}
        choices = {
            name: state.get(
                f"{written(shape)} {name} tuned",
                functools.partial(tuned, task, options.evaluations),
            )
            for name, task in tasks.items()
        }
        time = functools.partial(in_turns, tasks, choices, options.rounds)
        least = state.get(f"{written(shape)} {several} timed", time)
        rows.append([
            written(shape), 1e3 * least["one"], 1e3 * least[several], least["one"] / least[several],
            least["numpy one"] / least[f"numpy {several}"],
            least[f"numpy {several}"] / least[several],
        ])  # fmt: skip
        print(*(f"{c:.4g}" if isinstance(c, float) else c for c in rows[-1]), flush=True)
    print(f"geometric mean: {statistics.geometric_mean(row[3] for row in rows):.2f}×")
    if options.json is not None:
        columns = [
            ("shape", "{}"), ("one thread, ms", "{:.1f}"), (f"{several}, ms", "{:.1f}"),
            ("times as fast", "{:.2f}"), ("OpenBLAS: times as fast", "{:.2f}"),
            (f"times OpenBLAS's speed, {several}", "{:.2f}"),
        ]  # fmt: skip
        about = "Products on several threads beside the fastest kernel found for one."
        tables = {"products": record.table(columns, rows)}
        record.write(options.json, about, tables, machine.describe(find()))


if __name__ == "__main__":
    main()
