"""The last evaluations of a search time the fastest choices again, in turns."""

from pathlib import Path

import pytest

from nestor.schedules.kernel.evaluate import Evaluation, Task, compare
from nestor.schedules.kernel.measure import Settings
from nestor.schedules.language.library import packaged
from nestor.schedules.payload import operators as texts
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.target import find_target
from nestor.schedules.tools import find_tools
from nestor.schedules.tune.database import Database, key_of
from nestor.schedules.tune.tuning import Tuned, TuneSettings, problem_of, tune


@pytest.fixture(scope="module")
def task() -> Task:
    tools = find_tools()
    payload = read_payload(texts.matmul(24, 32, 16), tools)
    target = find_target("avx2")
    return Task(payload, packaged(), "matmul", target, tools, Settings(rounds=2, numpy=False))


def search(task: Task, evaluations: int, finalists: int, folder: Path) -> tuple[Tuned, Database]:
    database = Database(folder / f"{evaluations}-{finalists}.sqlite")
    settings = TuneSettings("random", evaluations, seed=3, finalists=finalists)
    return tune(task, settings, database), database


def test_finalists_are_part_of_the_budget_and_decide(task: Task, tmp_path: Path) -> None:
    tuned, database = search(task, 8, 2, tmp_path)
    assert len(tuned.history) == 6
    fastest = sorted((e for e in tuned.history if e.least), key=lambda e: e.least or 0.0)[:2]
    assert dict(tuned.best.choice) in [dict(e.choice) for e in fastest]
    # Its time is that of the second run; the database keeps those of the first.
    assert tuned.best.least not in [e.least for e in tuned.history]
    kept = [r.evaluation.least for r in database.results(key_of(task))]
    assert sorted(kept, key=str) == sorted((e.least for e in tuned.history), key=str)


@pytest.mark.parametrize(("evaluations", "finalists"), [(7, 2), (4, 0), (3, 1)])
def test_a_small_budget_has_no_finalists(
    evaluations: int, finalists: int, task: Task, tmp_path: Path
) -> None:
    tuned, _ = search(task, evaluations, finalists, tmp_path)
    assert len(tuned.history) == evaluations
    assert tuned.best.least == min(e.least for e in tuned.history if e.least)


def test_a_single_finalist_is_not_timed_again(task: Task, tmp_path: Path) -> None:
    tuned, _ = search(task, 4, 1, tmp_path)
    assert len(tuned.history) == 3
    assert tuned.best.least == min(e.least for e in tuned.history if e.least)


def test_finalists_have_the_times_of_the_run_in_turns(task: Task) -> None:
    problem, fixed = problem_of(task)
    guess = dict(problem.guess) | fixed
    other = guess | {"packing": 1 if guess["packing"] == 0 else 0}
    first = [Evaluation(choice, "ok", "", 1.0, 2.0) for choice in (guess, other)]
    again = compare(task, first, seed=1)
    assert [e.choice for e in again] == [guess, other]
    assert all(0.0 < (e.least or 0.0) <= (e.middle or 0.0) < 1.0 for e in again)
