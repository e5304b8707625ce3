"""How good is the first guess of the learned policy on payloads that it has not seen?

    python -m benchmarks.schedule_guess TRAINING STATE [--evaluations 20] [--other DATABASE]
        [--drawn 20] [--json benchmarks/results/schedule_guess.json]

TRAINING is the database of ``schedule_record``. On each held-out payload, of other shapes and in
part of other operators, and on as many as ``--drawn`` says of sizes drawn at random, four searches
of the same budget run for real, and the first guesses of policies of five seeds are measured. At
the end the choices in question are timed again in turns with the fastest of all that was measured:
those times are compared, so that the shortest of many noisy times does not count as fast. The five
seeds of each search are replayed on what was measured: a search proposes a choice, and gets the
measured one that is most like it.

``--other`` is a database of another machine, or of another instruction set of this one: the first
guesses of a policy that has learned from it alone are measured too.
"""

import argparse
import functools
import json
import math
import shutil
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.schedule_kernels import State, task_of
from benchmarks.schedule_payloads import HELD_OUT, Shape, drawn, payload_of, written
from nestor.compiler.toolchain import find
from nestor.policy.spec import Policy
from nestor.schedules.kernel.evaluate import Evaluation, Task, compare, evaluate, lowers
from nestor.schedules.tools import find_tools
from nestor.schedules.tune import policy as policies
from nestor.schedules.tune.database import Database
from nestor.schedules.tune.searches import Problem, SearchName, first_guess, make_search
from nestor.schedules.tune.tuning import TuneSettings, problem_of, tune
from nestor.temporary import temporary_folder

SEARCHES: Final[tuple[SearchName, ...]] = ("learned", "random", "tpe", "evolution")
SEEDS: Final = 5
_STEPS: Final = (1, 2, 5, 10, 20)

Choice = Mapping[str, int]


def measured(
    task: Task, name: str, training: Path, other: Path | None, evaluations: int, state: State
) -> dict[str, Any]:
    """Return all that is measured of one payload: histories, what was tried, times in turns."""
    histories: dict[str, Any] = {
        search: state.get(
            f"{name} {search}",
            functools.partial(_searched, task, search, training, evaluations),
        )["history"]
        for search in SEARCHES
    }
    pool = {_text(e["choice"]): e for history in histories.values() for e in history}
    make = functools.partial(_compared, task, histories, pool, training, other)
    compared = state.get(f"{name} compared", make)
    return {"pool": [*pool.values()], **compared}


def _searched(task: Task, search: SearchName, training: Path, evaluations: int) -> dict[str, Any]:
    """Return what a search finds with nothing but the training database to begin with."""
    with temporary_folder("database") as folder:
        database = Path(folder) / "results.sqlite"
        shutil.copyfile(training, database)
        # Without the run in turns at the end: every evaluation proposes something.
        settings = TuneSettings(search, evaluations, finalists=0)
        policy = policy_of(training, settings.seed) if search == "learned" else None
        found = tune(task, settings, Database(database), policy)
        return {"history": [_as_json(e) for e in found.history]}


@functools.cache
def policy_of(training: Path, seed: int) -> Policy:
    """Return what a database teaches: one policy serves all payloads, since it has none of them."""
    return policies.train(Database(training).all(), seed)


def _compared(
    task: Task,
    histories: Mapping[str, Any],
    pool: Mapping[str, Any],
    training: Path,
    other: Path | None,
) -> dict[str, Any]:
    """Return the seconds of first guesses, and of the best of each search, timed in turns."""
    problem, fixed = problem_of(task)

    def guess(database: Path, seed: int) -> dict[str, int]:
        policy = policy_of(database, seed)
        return first_guess(problem, policy, seed, lambda c: lowers(task, {**c, **fixed})) | fixed

    guesses = {f"learned {seed}": guess(training, seed) for seed in range(SEEDS)}
    if other is not None:
        guesses["other machine"] = guess(other, 0)
    guesses["computed"] = dict(problem.guess) | fixed
    done = dict(pool)
    for choice in guesses.values():
        if _text(choice) not in done:
            done[_text(choice)] = _as_json(evaluate(task, choice, 77))
    finalists = {s: _fastest(h) for s, h in histories.items()}
    others = [done[_text(choice)] for choice in guesses.values()]
    timed = [
        *others,
        *_fastest([*done.values()]),
        *(e for some in finalists.values() for e in some),
    ]
    # One run in turns says which of several is the fastest, as 'tune' has it at the end; a second
    # one, which has chosen nothing, says how fast that is.
    chosen, again = (_again(task, timed, seed) for seed in (78, 79))

    def seconds(some: Sequence[Mapping[str, Any]]) -> float | None:
        best = min((_text(e["choice"]) for e in some), key=lambda t: chosen.get(t, math.inf))
        return again.get(best)

    return {
        "guesses": {n: again.get(_text(choice)) for n, choice in guesses.items()}
        | {f"best of {s}": seconds(some) for s, some in finalists.items()},
        "best": seconds(timed),
    }


def _fastest(history: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the three fastest choices by the times of the search."""
    return sorted((e for e in history if e["least"]), key=lambda e: e["least"])[:3]


def _again(task: Task, evaluations: Sequence[Mapping[str, Any]], seed: int) -> dict[str, float]:
    """Return seconds by choice, of a run in which all take turns."""
    different = {_text(e["choice"]): e for e in evaluations if e["least"]}
    inputs = [Evaluation(e["choice"], "ok", "", e["least"], None) for e in different.values()]
    timed = compare(replace(task, settings=replace(task.settings, rounds=8)), inputs, seed)
    return {_text(e.choice): e.least or math.inf for e in timed}


def replayed(
    task: Task,
    policy: Policy,
    pool: Sequence[Mapping[str, Any]],
    name: SearchName,
    seed: int,
    evaluations: int,
) -> list[float]:
    """Return the best seconds after each evaluation of a search over what was measured."""
    problem, fixed = problem_of(task)
    left = {_text(e["choice"]): e for e in pool}
    done: list[Evaluation] = []
    search = make_search(name, problem, seed, policy)
    starts = [first_guess(problem, policy, seed)] if name == "learned" else []
    starts.append(dict(problem.guess))
    course: list[float] = []
    for number in range(min(evaluations, len(left))):
        wanted = starts[number] if number < len(starts) else search(done)
        found = left.pop(_nearest(wanted | fixed, left, problem))
        open_part = {n: v for n, v in found["choice"].items() if n not in fixed}
        done.append(Evaluation(open_part, "ok" if found["least"] else "crashed", "",
                               found["least"], found["least"]))  # fmt: skip
        course.append(min([e.least for e in done if e.least] or [math.inf]))
    return course


def _nearest(choice: Choice, left: Mapping[str, Any], problem: Problem) -> str:
    """Return the measured choice that is most like another, by steps between options."""
    places = {d.name: {o: i / len(d.options) for i, o in enumerate(d.options)}
              for d in problem.decisions}  # fmt: skip

    def distance(text: str) -> float:
        there = left[text]["choice"]
        return sum(abs(at[choice[n]] - at[there[n]]) for n, at in places.items())

    return min(left, key=distance)


def _as_json(evaluation: Evaluation) -> dict[str, Any]:
    return {"choice": dict(evaluation.choice), "least": evaluation.least,
            "reason": evaluation.reason}  # fmt: skip


def _text(choice: Choice) -> str:
    return json.dumps(dict(choice), sort_keys=True)


def mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean; a failure counts as a twentieth of the speed."""
    return math.exp(statistics.mean(math.log(max(r, 0.05)) for r in ratios))


@dataclass
class Found:
    """What was found of all payloads so far."""

    rows: list[list[Any]] = field(default_factory=list)
    ratios: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """By choice and group of payloads: parts of the speed of the fastest."""
    courses: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    """By search and number of evaluations, of each seed."""

    def add(self, group: str, operator: str, shape: Shape, data: Mapping[str, Any]) -> None:
        """Take what was measured of a payload."""
        best = data["best"]
        speed = {n: best / s for n, s in data["guesses"].items() if s}
        learned = mean([speed.get(f"learned {s}", 0.0) for s in range(SEEDS)])
        named = {"learned": learned} | {
            n: speed.get(n, 0.0)
            for n in ("computed", "other machine", *(f"best of {s}" for s in SEARCHES))
            if n in data["guesses"]
        }
        for name, ratio in named.items():
            self.ratios.setdefault(name, {}).setdefault(group, []).append(ratio)
        shown = (named[n] for n in ("computed", "learned", "best of learned"))
        self.rows.append([group, operator, written(shape), best * 1e6, *(100 * r for r in shown)])
        print(*self.rows[-1], flush=True)

    def replay(self, task: Task, data: Mapping[str, Any], training: Path, number: int) -> None:
        """Replay all searches with all seeds, of ``number`` evaluations each."""
        fastest = min(e["least"] for e in data["pool"] if e["least"])
        for seed in range(SEEDS):
            policy = policy_of(training, seed)
            for search in SEARCHES:
                course = replayed(task, policy, data["pool"], search, seed, number)
                for step in _STEPS:
                    at = course[min(step, len(course)) - 1]
                    self.courses.setdefault((search, step), []).append(fastest / at)

    def tables(self) -> dict[str, record.Table]:
        """Return the tables: all payloads, what was timed in turns, what was replayed."""
        groups = list(dict.fromkeys(row[0] for row in self.rows))
        real = [
            [name, *(100 * part for g in groups for part in (mean(by[g]), min(by[g])))]
            for name, by in self.ratios.items()
        ]
        curves = [[s, *[100 * mean(self.courses[s, step]) for step in _STEPS]] for s in SEARCHES]
        parts = [
            (f"{group}: {what}", form)
            for group in groups
            for what, form in (("geometric mean", "{:.1f} %"), ("least", "{:.0f} %"))
        ]
        payloads = [
            ("payloads", "{}"), ("operator", "{}"), ("shape", "{}"), ("fastest, µs", "{:.1f}"),
            ("computed guess", "{:.0f} %"), ("learned guess", "{:.0f} %"),
            ("learned, all evaluations", "{:.0f} %"),
        ]  # fmt: skip
        return {
            "payloads": record.table(payloads, self.rows),
            "real": record.table([("choice", "{}"), *parts], real),
            "replayed": record.table(
                [("search", "{}"), *((f"after {s}", "{:.1f} %") for s in _STEPS)], curves
            ),
        }


def main() -> None:
    """Measure, replay and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("training", type=Path)
    parser.add_argument("state", type=Path, help="keeps what was measured")
    parser.add_argument("--other", type=Path, help="a database of another machine")
    parser.add_argument("--evaluations", type=int, default=20, help="of each search")
    parser.add_argument("--limit", type=int, help="shapes of each held-out operator")
    parser.add_argument("--drawn", type=int, default=0, help="payloads of drawn sizes as well")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--json", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    tools, state, found = find_tools(), State(options.state), Found()
    wanted = [
        *(("held out", o, s) for o, shapes in HELD_OUT.items() for s in shapes[: options.limit]),
        *(("drawn", o, s) for o, s in drawn(options.drawn, options.seed)),
    ]
    for group, operator, shape in wanted:
        task = task_of(payload_of(operator, shape, tools), "host", tools)
        name = f"{operator} {written(shape)}"
        data = measured(task, name, options.training, options.other, options.evaluations, state)
        found.add(group, operator, shape, data)
        found.replay(task, data, options.training, options.evaluations)
    tables = found.tables()
    for line in (*tables["real"]["rows"], *tables["replayed"]["rows"]):
        print(*line)
    if options.json is not None:
        about = "The first guess of the learned policy, and searches, on payloads not seen before."
        record.write(
            options.json, about, tables, machine.describe(find()), payloads=len(found.rows)
        )


if __name__ == "__main__":
    main()
