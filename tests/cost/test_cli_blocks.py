"""The commands ``nestor blocks extract`` and ``info``."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nestor.cli.main import main
from nestor.compiler.toolchain import Toolchain
from nestor.cost.blocks import table
from tests.conftest import SOURCE


@pytest.fixture
def extracted(tmp_path: Path, toolchain: Toolchain) -> Path:
    """An object's blocks."""
    (tmp_path / "s.c").write_text(SOURCE)
    subprocess.run([str(toolchain.clang), "-O2", "-c", "s.c"], cwd=tmp_path, check=True)
    out = tmp_path / "blocks.parquet"
    assert main(["blocks", "extract", str(tmp_path / "s.o"), "--out", str(out)]) == 0
    return out


def test_extract_writes_a_table_and_says_what_it_found(
    extracted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    source = str(extracted.with_name("s.o"))
    assert main(["blocks", "extract", source, "--out", str(extracted), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = table.read(extracted)
    assert said["blocks"] == len(found) > 0
    assert found.frequency is not None
    assert said["occurrences"] == found.frequency.sum()
    assert said["functions"] == 2
    assert said["failures"] == {}
    assert set(found.function or ()) <= {"twice", "main"}


def test_info_counts_what_a_table_holds(
    extracted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["blocks", "info", str(extracted), "--json", "--opcodes", "3"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows"] == said["distinct"] == len(table.read(extracted))
    assert (said["duplicates"], said["labelled"], said["stable"]) == (0, 0, 0)
    assert sum(said["instructions"].values()) == said["rows"]
    assert said["categories"]["integer"] > 0
    assert len(said["opcodes"]) == 3
    assert main(["blocks", "info", str(extracted)]) == 0
    assert f"{said['rows']:,} different blocks" in capsys.readouterr().out


def test_info_knows_labels_machines_duplicates_and_what_is_no_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = table.named("zen5").select(np.r_[0:100, 0:10])
    mixed = table.Table(
        (*some.blocks, b"\x06"),
        np.append(some.cycles, np.nan),
        np.append(some.spread, np.nan),
        machine=("A",) * 100 + ("B",) * 10 + ("",),
    )
    path = tmp_path / "t.parquet"
    table.write(mixed, path)
    assert main(["blocks", "info", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["rows"], said["distinct"], said["duplicates"]) == (111, 101, 10)
    assert said["machines"] == {"A": 100, "B": 10}
    assert (said["labelled"], said["undecodable"]) == (110, 1)
    assert 0 < said["stable"] < 110


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["blocks", "extract", "--out", "t.parquet"], "Name at least one"),
        (["blocks", "extract", "absent", "--out", "t.parquet"], "There is no 'absent'"),
        (["blocks", "info", "absent"], "neither a file nor one of the data sets"),
    ],
)
def test_mistakes_are_explained(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "t.parquet").exists()


def test_a_source_without_code_writes_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "l.csv").write_text("06\n")
    out = tmp_path / "t.parquet"
    assert main(["blocks", "extract", str(tmp_path / "l.csv"), "--out", str(out)]) == 1
    assert "No blocks were found" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("name", ["extract", "info"])
def test_help_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["blocks", name, "--help"])
    assert left.value.code == 0
    assert f"nestor blocks {name}" in capsys.readouterr().out
