"""Models of several machines in one file."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from nestor.cli.main import main
from nestor.cost.contract import ModelError
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.model_file import SHIPPED, load, load_models, save

BLOCKS = [bytes.fromhex("4801d8480fafc3"), bytes.fromhex("480fafc1")]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a machine that the shipped file lacks."""
    (model,) = load_models("shipped")
    renamed = replace(model.part, name="Another machine", factor=2 * model.part.factor)
    path = tmp_path_factory.mktemp("joined") / "other.safetensors"
    save(HybridModel(replace(model.parts, machines=(renamed,))), path)
    return path


def test_each_machine_answers_as_alone(other: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.safetensors"
    assert main(["costmodel", "join", str(SHIPPED), str(other), "--out", str(both)]) == 0
    for machine, alone in ((None, SHIPPED), ("Another machine", other)):
        mine, expected = load(both, machine).predict(BLOCKS), load(alone).predict(BLOCKS)
        np.testing.assert_array_equal(mine.cycles, expected.cycles)
        np.testing.assert_array_equal(mine.high, expected.high)
    # A file of several can be joined in its turn.
    again = tmp_path / "again.safetensors"
    assert main(["costmodel", "join", str(both), "--out", str(again)]) == 0
    assert again.read_bytes() == both.read_bytes()


def test_a_machine_that_is_not_there_is_refused(other: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.safetensors"
    main(["costmodel", "join", str(SHIPPED), str(other), "--out", str(both)])
    with pytest.raises(ModelError, match=r"no machine 'Zen 1'; name one of: .*Another machine"):
        load(both, "Zen 1")


def test_two_models_of_one_machine_are_refused(
    other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "both.safetensors"
    assert main(["costmodel", "join", str(other), str(other), "--out", str(out)]) != 0
    assert "Two of the models are for 'Another machine'" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not out.exists()


@pytest.mark.parametrize("provenance", ["[" * 200_000, "[]", "7"])
def test_hostile_metadata_gives_one_sentence(other: Path, tmp_path: Path, provenance: str) -> None:
    hostile = tmp_path / "hostile.safetensors"
    with safe_open(other, "np") as file:
        (header,) = file.metadata().values()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    own = json.dumps({**json.loads(header), "provenance": "HERE"}).replace('"HERE"', provenance)
    save_file(tensors, hostile, {"nestor": own})
    with pytest.raises(ModelError, match="not a cost model of this version, or is damaged"):
        load(hostile)


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="regular file"):
        load(tmp_path / "pipe")


@pytest.mark.parametrize("cut", [0, 4, 200, 5000])
def test_a_broken_file_gives_one_sentence(other: Path, tmp_path: Path, cut: int) -> None:
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(other.read_bytes()[:cut])
    with pytest.raises(ModelError, match="not a cost model of this version, or is damaged"):
        load(broken)
    assert main(["costmodel", "join", str(broken), "--out", str(tmp_path / "x")]) != 0
