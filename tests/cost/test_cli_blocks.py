"""The commands ``nestor blocks extract`` and ``info``."""

import json
import os
import resource
import signal
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


def test_extract_reads_what_predict_reads(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "list.txt").write_text("4801d8  # an addition\n480fafc3\n")
    (tmp_path / "code.s").write_text("subq %rbx, %rax\nret\n")
    out = tmp_path / "t.parquet"
    words = ["4801d8", str(tmp_path / "list.txt"), str(tmp_path / "code.s"), "--out", str(out)]
    words += ["--assembly", "xor rax, rcx", "--intel", "--llvm", str(toolchain.clang)]
    (tmp_path / "code.s").write_text("sub rax, rbx\nret\n")
    assert main(["blocks", "extract", *words]) == 0
    found = table.read(out)
    assert [block.hex() for block in found.blocks] == ["4801d8", "480fafc3", "4829d8", "4831c8"]
    assert found.frequency is not None and found.frequency.tolist() == [2, 1, 1, 1]


@pytest.mark.parametrize("suffix", ["", ".csv", ".parquet", ".s", ".o"])
def test_what_is_no_regular_file_is_refused_at_once(suffix: str, tmp_path: Path) -> None:
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    endless = tmp_path / f"endless{suffix}"
    endless.symlink_to("/dev/zero")
    for source in (pipe, endless):
        for words in (
            ["blocks", "extract", str(source), "--out", str(tmp_path / "t")],
            ["blocks", "info", str(source)],
            ["blocks", "measure", str(source), "--out", str(tmp_path / "t")],
            ["costmodel", "predict", str(source)],
            ["costmodel", "predict", "90", "--frequencies", str(source)],
            ["costmodel", "predict", "90", "--model", str(source)],
        ):
            _refused_quickly(words)


def _refused_quickly(words: list[str]) -> None:
    def too_late(*_: object) -> None:
        raise TimeoutError(f"{words} waits")

    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(20)
    try:
        assert main(words) == 1, words
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("suffix", ["", ".csv", ".s", ".o"])
def test_a_file_without_end_is_refused_before_it_is_read(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sparse = tmp_path / f"sparse{suffix}"
    with sparse.open("wb") as file:
        file.truncate(2 << 30)
    if suffix == ".o":
        with sparse.open("r+b") as file:
            file.write(b"\x7fELF")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main(["blocks", "extract", str(sparse), "--out", str(tmp_path / "t")]) == 1
    assert "larger than" in " ".join(capsys.readouterr().err.split())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10  # in KiB
