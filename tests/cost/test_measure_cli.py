"""``nestor blocks measure`` as its users meet it."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nestor.cost.blocks import table
from nestor.processor import this_machine
from tests.command import nestor
from tests.cost.abilities import needs_sandbox

BLOCKS = ["480fafc9", "4801c9", "488b07", "f4", "eb00", "06", "0f0b"]
FAST = ["--rounds", "3", "--runs", "3", "--attempts", "4"]


def table_of(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table({"block_hex": BLOCKS, **columns}), path)
    return path


@needs_sandbox
def test_every_block_is_a_row_and_measured_once(tmp_path: Path) -> None:
    blocks, out = table_of(tmp_path / "blocks.parquet"), tmp_path / "labels.parquet"
    words = ["blocks", "measure", str(blocks), "--out", str(out), *FAST]
    done = nestor(*words, "--limit", "5", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["blocks"] == 5
    before = pq.read_table(out).to_pylist()
    done = nestor(*words)
    assert done.returncode == 0, done.stderr
    assert "7 blocks on" in done.stdout
    found = pq.read_table(out).to_pylist()
    assert found[:5] == before
    assert [row["block_hex"] for row in found] == BLOCKS
    assert {row["machine"] for row in found} == {this_machine()}
    assert {row["backend"] for row in found} == {"rdtsc-fenced"}
    statuses = [row["status"] for row in found]
    assert statuses[3:] == [
        "protection fault",
        "control flow",
        "undecodable",
        "illegal instruction",
    ]
    for row in found[:3]:
        assert row["status"] in ("ok", "unstable", "disturbed")
        assert row["cycles"] > 0 and row["calibration"] > 0
    assert [row["pages"] for row in found[:3]] == [0, 0, 1]
    assert all(row["cycles"] is None for row in found[3:])
    assert table.read(out).labelled.tolist() == [True] * 3 + [False] * 4


@needs_sandbox
def test_self_test_says_how_well_it_repeats(tmp_path: Path) -> None:
    blocks = table_of(
        tmp_path / "blocks.parquet",
        cycles=[3.0, 1.0, 0.33, 1.0, 1.0, 1.0, 1.0],
        spread=[0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5],
    )
    words = ["blocks", "measure", str(blocks), "--self-test", *FAST]
    done = nestor(*words, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["sample"], result["backend"]) == (3, "rdtsc-fenced")
    assert result["repeated_all"]["n"] == 3
    assert sum(result["statuses"]["first"].values()) == 3
    done = nestor(*words)
    assert done.returncode == 0, done.stderr
    assert "against the table" in done.stdout


@needs_sandbox
def test_wrong_use_is_one_sentence(tmp_path: Path) -> None:
    blocks = table_of(tmp_path / "blocks.parquet")
    out = str(tmp_path / "out.parquet")
    for words in (
        ["blocks", "measure", str(blocks)],
        ["blocks", "measure", str(blocks), "--self-test", "--out", out],
        ["blocks", "measure", str(tmp_path / "none.parquet"), "--out", out],
        ["blocks", "measure", str(blocks), "--out", out, "--rounds", "0"],
        ["blocks", "measure", str(blocks), "--out", out, "--milliseconds", "999999999999999"],
        ["blocks", "measure", str(blocks), "--out", out, "--page-limit", "257"],
    ):
        done = nestor(*words)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("nestor: ")
        assert "try again" not in done.stderr
    assert not Path(out).exists()
