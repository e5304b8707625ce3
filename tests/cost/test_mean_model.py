"""The mean of several models of one machine, in memory and in a file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.cli.main import main
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.mean import MeanModel
from nestor.cost.model.model_file import SHIPPED, load, load_models, machines, save
from nestor.cost.registry import Target, open_model, target_of

NAME = "A new machine"
ADD = bytes.fromhex("4801d8480fafc3")
BLOCKS = [ADD, bytes.fromhex("f20f58c1"), b"\x06", bytes.fromhex("0fa2")]  # no code; cpuid


@pytest.fixture(scope="module")
def mean() -> MeanModel:
    """Models of two machines, as if they were fits to the labels of one."""
    found = []
    for machine in ("AMD Zen 5", "AMD Zen 4"):
        (model,) = load_models("shipped", machine)
        part = replace(model.part, name=NAME, method="rdtsc-steady")
        found.append(HybridModel(replace(model.parts, machines=(part,))))
    return MeanModel(found)


def test_answers_are_geometric_means(mean: MeanModel) -> None:
    one, other = (model.predict(BLOCKS) for model in mean.models)
    both = mean.predict(BLOCKS)
    assert one.cycles[1] != other.cycles[1]
    np.testing.assert_allclose(both.cycles, np.sqrt(one.cycles * other.cycles))
    np.testing.assert_allclose(both.low, np.sqrt(one.low * other.low))
    np.testing.assert_allclose(both.high, np.sqrt(one.high * other.high))
    assert np.isnan(both.cycles).tolist() == [False, False, True, True]
    assert both.refused == one.refused
    assert list(both.refused) == [3]


def test_a_file_gives_the_same_answers(mean: MeanModel, tmp_path: Path) -> None:
    path, joined = tmp_path / "mean.safetensors", tmp_path / "joined.safetensors"
    save(mean, path)
    assert machines(path) == (NAME,)
    assert target_of(open_model(path)) == Target(NAME, "rdtsc-steady")
    np.testing.assert_array_equal(load(path).predict(BLOCKS).cycles, mean.predict(BLOCKS).cycles)
    again = tmp_path / "again.safetensors"
    save(load(path), again)
    assert again.read_bytes() == path.read_bytes()
    assert main(["costmodel", "join", str(SHIPPED), str(path), "--out", str(joined)]) == 0
    assert machines(joined) == (*machines("shipped"), NAME)
    found = load(joined, NAME)
    assert isinstance(found, MeanModel)
    np.testing.assert_array_equal(found.predict(BLOCKS).high, mean.predict(BLOCKS).high)
    assert isinstance(load(joined, "AMD Zen 5"), HybridModel)


def test_explained_is_one_of_them_and_said_so(
    mean: MeanModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mean.safetensors"
    save(mean, path)
    assert main(["costmodel", "explain", ADD.hex(), "--model", str(path)]) == 0
    said = capsys.readouterr()
    assert "are the mean of 2 fits; this is the first" in " ".join(said.err.split())
    assert f"cycles on {NAME}" in said.out
