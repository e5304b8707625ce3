"""Kernels on two threads are right, and their results are kept apart from those of one."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.cli.main import main
from nestor.schedules.kernel.evaluate import Task, lowers
from nestor.schedules.kernel.guess import SHARED
from nestor.schedules.kernel.measure import Settings
from nestor.schedules.language.library import packaged
from nestor.schedules.payload import operators as texts
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.target import find_target, host
from nestor.schedules.tools import find_tools
from nestor.schedules.tune.database import Database, key_of
from nestor.schedules.tune.tuning import first_choice, problem_of

PAYLOADS = {
    "matmul": texts.matmul(300, 200, 64), "rows": texts.softmax(37, 65),
    "batch_matmul": texts.batch_matmul(3, 20, 36, 17),
}  # fmt: skip


@pytest.mark.parametrize("schedule", PAYLOADS)
def test_a_kernel_on_two_threads_is_right(
    schedule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    payload = tmp_path / "payload.mlir"
    payload.write_text(PAYLOADS[schedule])
    words = ["schedule", "run", str(payload), "--threads", "2", "--rounds", "0", "--json"]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["schedule"] == schedule
    assert result["choice"]["parallel"] == 1
    assert result["threads"] == 2
    assert result["verdict"]["correct"]


def test_tune_and_replay_on_two_threads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    payload, out = tmp_path / "matmul.mlir", tmp_path / "schedule.mlir"
    payload.write_text(PAYLOADS["matmul"])
    database = tmp_path / "results.sqlite"
    words = ["schedule", "tune", str(payload), "--out", str(out), "--database", str(database)]
    words += ["--evaluations", "1", "--rounds", "1", "--search", "random", "--json"]
    reused: list[int] = []
    for count in (1, 2, 2):
        assert main([*words, "--threads", str(count)]) == 0
        found = json.loads(capsys.readouterr().out)
        reused.append(found["reused"])
        assert {e["choice"]["parallel"] for e in found["history"]} == {count - 1}
    assert reused == [0, 0, 1]
    tools = find_tools()
    one = Task(
        read_payload(payload, tools), packaged(), "matmul", host(), tools, Settings(rounds=1)
    )
    two = replace(one, settings=replace(one.settings, threads=2))
    kept = Database(database)
    assert len(kept.results(key_of(one))) == len(kept.results(key_of(two))) == 1
    assert {r.evaluation.choice["parallel"] for r in kept.results(key_of(two))} == {1}

    words = ["schedule", "replay", str(payload), str(out), "--rounds", "0", "--json"]
    for threads in (1, 2):
        assert main([*words, "--threads", str(threads)]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["threads"] == threads
        assert result["verdict"]["correct"]
    assert "parallel=1" in out.read_text()


def test_threads_that_have_nothing_to_share_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    payload, resolved = tmp_path / "matmul.mlir", tmp_path / "schedule.mlir"
    payload.write_text(PAYLOADS["matmul"])
    words = ["schedule", "run", str(payload), "--schedule", "plain", "--threads", "2"]
    assert main(words) == 1
    assert "no decision 'parallel'" in capsys.readouterr().err
    small = tmp_path / "small.mlir"
    small.write_text(texts.matmul(16, 16, 8))
    assert main(["schedule", "run", str(small), "--threads", "2", "--rounds", "0"]) == 0
    assert "has one tile under this choice" in capsys.readouterr().err
    words = ["schedule", "apply", str(payload), "--resolved", str(resolved)]
    assert main([*words, "--out", str(tmp_path / "out.mlir")]) == 0
    words = ["schedule", "replay", str(payload), str(resolved), "--threads", "2", "--rounds", "0"]
    assert main(words) == 0
    assert "shares no loop among threads" in capsys.readouterr().err


def test_the_first_choice_leaves_threads_several_tiles() -> None:
    tools = find_tools()
    payload = read_payload(texts.matmul(2048, 512, 64), tools)
    task = Task(payload, packaged(), "matmul", host(), tools, fixed={"parallel": 1})
    choice = first_choice(task)
    tiles = math.ceil(2048 / choice["tile_m"]) * math.ceil(512 / choice["tile_n"])
    assert tiles >= SHARED
    assert first_choice(replace(task, fixed={"tile_m": 4096, "parallel": 1}))["tile_m"] == 4096


@pytest.mark.parametrize("target", ["avx512", "avx2", "neon"])
@pytest.mark.parametrize(
    "sizes", [(300, 200, 64), (700, 130, 90), (96, 1000, 300), (1024, 768, 256)]
)
def test_the_first_choice_for_threads_can_be_lowered(
    target: str, sizes: tuple[int, int, int]
) -> None:
    tools = find_tools()
    payload = read_payload(texts.matmul(*sizes), tools)
    fixed = {"parallel": 1}
    task = Task(payload, packaged(), "matmul", find_target(target), tools, fixed=fixed)
    assert lowers(task, first_choice(task))
    assert lowers(task, {**problem_of(task)[0].guess, **fixed})


def test_threads_get_panels_that_are_packed_first_where_tiles_fit() -> None:
    tools, fixed = find_tools(), {"parallel": 1}
    for sizes, packing in (((1024, 1024, 512), 6), ((1000, 1024, 512), 4)):
        payload = read_payload(texts.matmul(*sizes), tools)
        task = Task(payload, packaged(), "matmul", find_target("avx2"), tools, fixed=fixed)
        assert problem_of(task)[0].guess["packing"] == packing
