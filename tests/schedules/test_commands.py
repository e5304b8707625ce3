"""``nestor schedule``, from its words to what it prints."""

import json
from pathlib import Path

import pytest

from nestor.cli.main import main
from nestor.compiler.process import run
from nestor.schedules.payload import operators as texts
from nestor.schedules.tools import find_tools


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    path = tmp_path / "dense.mlir"
    path.write_text(texts.matmul_bias_relu(40, 48, 32))
    return path


def test_list_and_graph_show_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert 64 in rows["matmul"]["decisions"]["tile_m"]
    assert main(["schedule", "graph", "matmul", "rows", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "bufferize" in found["edges"]["lower"]
    assert found["pipelines_of"]["lower"] == ["matmul", "rows"]


def test_apply_prints_after_a_step_and_writes_a_schedule_that_needs_no_decisions(
    payload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, resolved = tmp_path / "out.mlir", tmp_path / "resolved.mlir"
    words = ["schedule", "apply", str(payload), "--print-after", "tile_and_fuse_2d", "bufferize"]
    assert main([*words, "--out", str(out), "--resolved", str(resolved), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [stage["step"] for stage in result["stages"]] == ["tile_and_fuse_2d", "bufferize"]
    assert "linalg.matmul" in result["stages"][0]["module"]
    assert "memref" in result["stages"][1]["module"]
    assert "llvm.func" in out.read_text()
    assert "tune" not in resolved.read_text()
    assert f"constant {result['choice']['tile_k']} : i64" in resolved.read_text()


def test_apply_writes_an_object_that_links_for_another_processor(
    payload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, linked = tmp_path / "dense.o", tmp_path / "dense.so"
    words = ["schedule", "apply", str(payload), "--target", "neon", "--object", str(out)]
    assert main(words) == 0
    assert capsys.readouterr().out == ""
    clang = find_tools().clang
    words = ["--target=aarch64-linux-gnu", "-fuse-ld=lld", "-shared", "-nostdlib"]
    assert run([clang, *words, out, "-o", linked]).ok
    assert linked.read_bytes()[18] == 183  # EM_AARCH64


def test_run_verifies_and_times(payload: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["schedule", "run", str(payload), "--choice", "reg_m=2", "--rounds", "2", "--json"]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"]["correct"]
    assert result["choice"]["reg_m"] == 2
    assert set(result["seconds"]) == {"kernel", "numpy"}
    assert result["seconds"]["kernel"]["min"] > 0


def test_what_is_wrong_is_said_in_one_line(
    payload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for choice, message in (
        ("tile_m=7", "'tile_m' cannot be 7"),
        ("size=8", "no decision 'size'"),
        ("tile_m", "write NAME=NUMBER"),
    ):
        assert main(["schedule", "run", str(payload), "--choice", choice]) == 1
        assert message in capsys.readouterr().err
    mine = tmp_path / "mine.mlir"
    mine.write_text("module attributes {transform.with_named_sequence} {\n}\n")
    assert main(["schedule", "run", str(payload), "--schedule", "no-such"]) == 1
    assert "There is no schedule 'no-such'" in capsys.readouterr().err
    assert main(["schedule", "check", str(tmp_path / "absent.mlir")]) == 1
    assert "There is no schedule at" in capsys.readouterr().err
