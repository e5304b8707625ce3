"""Findings about a scheduling model: who is blamed, and by which blocks."""

import json
from pathlib import Path

import numpy as np
import pytest

from nestor.cli.main import main
from nestor.cost.blocks.table import Table, write
from nestor.cost.core.block_forms import forms_of
from nestor.cost.judge.audit import AuditSettings, audit


def test_only_the_wrong_form_is_blamed() -> None:
    random = np.random.default_rng(0)
    others = [f"right {number}" for number in range(6)]
    names, measured = [], []
    for number in range(400):
        chosen = {others[k] for k in random.integers(0, 6, 2)}
        if number % 4 == 0:
            chosen |= {"wrong", "beside it"}  # the latter is right, and stands alone too
        elif number % 4 == 1:
            chosen |= {"beside it"}
        names.append(frozenset(chosen))
        measured.append(float(random.uniform(1, 20)))
    cycles = np.array(measured)
    estimated = cycles * np.array([3.0 if "wrong" in found else 1.0 for found in names])
    lengths = np.array([len(found) for found in names])
    found = audit(names, list(range(400)), lengths, estimated, cycles)
    assert [one.name for one in found] == ["wrong"]
    assert found[0].factor == pytest.approx(3)
    assert found[0].blocks == 100
    assert all("wrong" in names[row] for row in found[0].examples)


def test_blocks_that_are_alike_count_once_and_unknown_estimates_do_not() -> None:
    names = [frozenset({"form"})] * 9
    estimated = np.array([2.0] * 8 + [np.nan])
    keys = ["one"] * 6 + ["two", "three", "four"]
    found = audit(names, keys, np.ones(9, np.int64), estimated, np.ones(9), AuditSettings(fewest=3))
    assert [one.blocks for one in found] == [3]
    assert not audit(names, keys, np.ones(9, np.int64), estimated, np.ones(9))


def test_forms_go_by_encoding_or_mnemonic() -> None:
    blocks = [bytes.fromhex("4801d8480303"), bytes.fromhex("4801c8480301"), b"\x06"]
    forms = forms_of(blocks)
    assert forms.names[0] == {"ADD_RM64_R64", "ADD_R64_RM64 mem"}
    assert forms.keys[0] == forms.keys[1] != forms.keys[2]
    assert forms.lengths.tolist() == [2, 2, 0]
    by_mnemonic = forms_of(blocks, by_mnemonic=True).names
    assert [sorted(names) for names in by_mnemonic] == [["add"], ["add"], []]


def test_the_command_writes_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Divisions by different registers, said to take a hundredth of a cycle.
    blocks = tuple(
        bytes.fromhex(first + divide)
        for divide in ("48f7f3",)
        for first in ("", "90", "4889d1", "4801c8", "48ffc6", "4831ff")
    )
    table = Table(blocks, np.full(6, 0.01), np.zeros(6), machine=("here",) * 6)
    write(table, tmp_path / "blocks.parquet")
    out = tmp_path / "audit.json"
    words = ["costmodel", "audit", "--cpu", "znver4", "--blocks", str(tmp_path / "blocks.parquet")]
    assert main([*words, "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads(out.read_text())
    assert said["findings"][0]["name"] == "DIV_RM64"
    assert said["findings"][0]["factor"] > 100
    assert main([*words, "--by", "instruction"]) == 0
    assert "div" in capsys.readouterr().out
    assert main([*words, "--machine", "elsewhere"]) != 0
    assert "no stable rows" in " ".join(capsys.readouterr().err.split())
