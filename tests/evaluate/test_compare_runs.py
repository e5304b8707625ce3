"""Runs side by side: grouping, names, intervals, curves, and folders that hold no run."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.evaluate.compare_runs import RunError, compare, interval, read_run, to_csv, to_json
from nestor.files import ReadError

PROGRAMS = (("a/x", "a"), ("b/y", "b"), ("b/z", "b"))


def write_run(
    folder: Path,
    learner: str,
    seed: int,
    changes: tuple[float, ...] | None = (-0.1, -0.05, 0.02),
    **settings: Any,
) -> Path:
    folder.mkdir(parents=True)
    identity = {"learner": learner, "seed": seed, "settings": settings, "corpus": "c"}
    (folder / "run.json").write_text(json.dumps(identity))
    with (folder / "curves.jsonl").open("w") as lines:
        for step in range(20):
            row = {
                "step": step,
                "relative_change_pct": float(-step - seed),
                "spent/compiles": 10 * (step + 1),
                "spent/cpu_minutes": 0.1 * (step + 1),
            }
            lines.write(json.dumps(row) + "\n")
    cost = {"rollouts": 210, "own_seconds": 6.0, "compiler_seconds": 54.0}
    (folder / "result.json").write_text(json.dumps({"cost": cost}))
    if changes is not None:
        programs = [
            {
                "name": name,
                "project": project,
                "stock": {"linked": 10_000},
                "policy": {"linked": round(10_000 * (1 + change))},
            }
            for (name, project), change in zip(PROGRAMS, changes, strict=True)
        ]
        evaluation = {"programs": programs, "failures": [{"what": "w"}]}
        (folder / "evaluation.json").write_text(json.dumps({"evaluations": [evaluation]}))
    return folder


def test_programs_in_which_stock_costs_nothing_have_no_ratio(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "0", "ppo", 0)
    path = folder / "evaluation.json"
    content = json.loads(path.read_text())
    content["evaluations"][0]["programs"][0]["stock"]["linked"] = 0
    path.write_text(json.dumps(content))
    (learner,) = compare([read_run(folder)])
    assert learner.programs == 2
    assert learner.change_pct == pytest.approx(100 * ((0.95 * 1.02) ** 0.5 - 1))


def test_one_run_on_one_project_has_no_interval(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "0", "ppo", 0)
    path = folder / "evaluation.json"
    content = json.loads(path.read_text())
    del content["evaluations"][0]["programs"][1:]
    path.write_text(json.dumps(content))
    (learner,) = compare([read_run(folder)])
    assert (learner.programs, learner.interval) == (1, None)


def test_seeds_are_one_learner_and_settings_are_named(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / "0", "ppo", 0, clip=0.2, steps=9),
        write_run(tmp_path / "1", "ppo", 1, (-0.2, -0.1, 0.04), clip=0.2, steps=9),
        write_run(tmp_path / "2", "ppo", 0, (0.0, 0.0, 0.0), clip=0.3, steps=9),
        write_run(tmp_path / "3", "dqn", 0, None),
    ]
    learners = compare([read_run(folder) for folder in folders], points=5)
    assert [row.name for row in learners] == ["ppo (clip=0.2)", "ppo (clip=0.3)", "dqn"]
    best, still, unknown = learners
    assert best.seeds == (0, 1)
    means = [np.mean(np.log(1 + np.array(c))) for c in ((-0.1, -0.05, 0.02), (-0.2, -0.1, 0.04))]
    assert best.change_pct == pytest.approx(100 * (np.mean(np.exp(means)) - 1))
    assert best.interval is not None
    assert best.interval[0] <= best.change_pct <= best.interval[1]  # type: ignore[operator]
    assert best.worst is not None
    assert best.worst[0] == "b/z"
    assert best.worst[1] == pytest.approx(4.0)
    assert best.failures == 2
    assert best.overhead_pct == pytest.approx(10)
    assert best.compiles == 200
    assert best.cpu_minutes == pytest.approx(2.0)
    assert [p.compiles for p in best.curve] == [40, 80, 120, 160, 200]
    assert best.curve[0].change_pct == pytest.approx(-(1.5 + 0.5))
    assert still.interval == (0.0, 0.0)
    assert unknown.change_pct is None
    rows = list(csv.reader(io.StringIO(to_csv(learners))))
    assert len(rows) == 1 + 15
    assert rows[1][0] == "ppo (clip=0.2)"
    assert json.loads(json.dumps(to_json(learners)))[0]["programs"] == 3


def test_interval_is_over_seeds_and_projects() -> None:
    """With many seeds and projects it covers the mean about as often as it says."""
    generator = np.random.default_rng(0)
    hits = 0
    for trial in range(24):
        seeds = generator.normal(0, 0.02, size=(6, 1))
        projects = generator.normal(0, 0.03, size=(1, 15))
        noise = generator.normal(0, 0.01, size=(6, 15))
        ratios = np.exp(-0.05 + seeds + projects + noise)
        low, high = interval(ratios, [str(i) for i in range(15)], seed=trial, resamples=300)
        hits += low <= 100 * (np.exp(-0.05) - 1) <= high
    assert 20 <= hits <= 24


def test_run_that_goes_on_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "ppo", 0, None)
    (folder / "result.json").unlink()
    with (folder / "curves.jsonl").open("a") as lines:
        lines.write('{"step": 20, "relat')
    (learner,) = compare([read_run(folder)])
    assert learner.compiles == 200
    assert learner.measured_minutes == 0


@pytest.mark.parametrize("name", ["run.json", "result.json", "evaluation.json"])
def test_broken_files_are_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        read_run(tmp_path)
    folder = write_run(tmp_path / "run", "ppo", 0)
    for text in ("{", "[1]", '{"evaluations": [{}]}' if name == "evaluation.json" else "3"):
        (folder / name).write_text(text)
        with pytest.raises(RunError, match=f"{name} of a run cannot be read"):
            read_run(folder)


def test_a_run_with_a_pipe_in_it_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(ReadError, match=r"run\.json cannot be read as .*: it is a named pipe"):
        read_run(tmp_path)
