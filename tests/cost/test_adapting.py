"""Blocks that are worth measuring, and a model of a new machine from their labels."""

import json
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest

from nestor.cli.main import main
from nestor.cost.blocks.table import Table, named, read, write
from nestor.cost.contract import ModelError
from nestor.cost.core.choice import ChoiceSettings, choose
from nestor.cost.core.simulator import Simulator
from nestor.cost.judge.closest import closest_first
from nestor.cost.model.mean import MeanModel
from nestor.cost.model.model_file import load, load_models, machines, save
from nestor.cost.training import adapt as adapting
from nestor.cost.training.settings import TrainingSettings


@pytest.fixture(scope="module")
def pool() -> Table:
    rows = named("zen4")
    return rows.select(np.flatnonzero(rows.stable)[:4000])


def forms_met(blocks: tuple[bytes, ...]) -> int:
    simulator = Simulator()
    simulator.keep(blocks)
    return len({int(f) for number in range(len(blocks)) for f in simulator.forms(number)})


def test_chosen_blocks_hold_more_forms_than_drawn_ones(pool: Table) -> None:
    rows = choose(pool.blocks, ChoiceSettings(300))
    drawn = np.random.default_rng(0).permutation(len(pool))[:300]
    assert len(set(rows.tolist())) == 300
    chosen = pool.select(rows).blocks
    assert forms_met(chosen) > 1.3 * forms_met(pool.select(drawn).blocks)
    np.testing.assert_array_equal(rows, choose(pool.blocks, ChoiceSettings(300)))


def test_more_than_there_are_is_all_different_ones() -> None:
    blocks = [bytes.fromhex("4801d8"), bytes.fromhex("4801c8"), b"\x06", b"\x90"]
    assert choose(blocks, ChoiceSettings(10)).tolist() == [0, 1, 3]  # one is undecodable


def test_choose_measure_adapt(
    pool: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen, labels, out = (tmp_path / name for name in ("c.parquet", "l.parquet", "m.safetensors"))
    write(pool, tmp_path / "pool.parquet")
    words = ["blocks", "choose", str(tmp_path / "pool.parquet"), "--count", "400"]
    assert main([*words, "--out", str(chosen), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["blocks"] == 400
    assert not read(chosen).labelled.any()
    rows = {block: row for row, block in enumerate(pool.blocks)}
    write(pool.select(np.array([rows[b] for b in read(chosen).blocks])), labels)
    source = ["--machine", "AMD Zen 5", "--fits", "1"]
    words = ["costmodel", "adapt", "--blocks", str(labels), *source, "--out", str(out), "--json"]
    assert main([*words, "--borrow", "--judge", str(tmp_path / "pool.parquet")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["from"] == ["AMD Zen 5"]
    assert said["trained_on"] == 400
    assert said["test"]["AMD Zen 4"]["stable_only"]["median_ape"] < 10
    assert main(["costmodel", "predict", "4801d8", "--model", str(out)]) == 0
    assert "AMD Zen 4" in capsys.readouterr().out


def test_labels_are_closest_to_the_model_of_their_machine() -> None:
    models = {name: load("shipped", name) for name in machines("shipped")}
    assert len(models) > 1
    rows = named("zen5")
    rows = rows.select(np.flatnonzero(rows.stable)[:500])
    first, *others = closest_first(models, rows)
    assert (first, sorted([first, *others])) == ("AMD Zen 5", sorted(models))
    assert closest_first({"other": models["Intel Redwood Cove"]}, rows) == ["other"]


def test_blocks_without_an_answer_are_close_to_nothing() -> None:
    rows = Table((b"\x0f\xa2",), np.array([20.0]), np.array([0.0]))  # cpuid
    with pytest.raises(ModelError, match="name one with --machine"):
        closest_first({"AMD Zen 5": load("shipped", "AMD Zen 5")}, rows)


def test_no_count_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blocks", "choose", "zen4", "--count", "0", "--out", str(tmp_path / "x")]) != 0
    assert "--count 0 is no number of blocks" in " ".join(capsys.readouterr().err.split())


def test_fits_at_the_same_time_are_those_one_after_the_other(
    pool: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = TrainingSettings(passes=1, machine=False, trees=10, leaves=7)
    monkeypatch.setattr(adapting, "ADAPTING", quick)
    starts = [load_models("shipped", name)[0] for name in ("AMD Zen 5", "Intel Redwood Cove")]
    contents = []
    for jobs in (1, 3):
        reported: list[tuple[int, int]] = []

        def report(stage: str, done: int, total: int, to: list[tuple[int, int]] = reported) -> None:
            if stage == "Fitting models":
                to.append((done, total))

        model = adapting.adapt(
            pool, np.arange(250), starts, fits=3, jobs=jobs, borrowed=None, progress=report
        )
        save(model, path := tmp_path / f"{jobs}.safetensors")
        contents.append(path.read_bytes())
        assert reported == [(done, 3) for done in range(4)]
    assert contents[0] == contents[1]
    assert isinstance(model, MeanModel)
    answers = {one.predict(pool.blocks[:50]).cycles.tobytes() for one in model.models}
    assert len(answers) == 3, "from each start, then by another seed"


def test_fits_at_the_same_time_leave_the_threads_of_lightgbm_alone(
    pool: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = TrainingSettings(passes=1, machine=False, trees=10, leaves=7)
    monkeypatch.setattr(adapting, "ADAPTING", quick)
    threads: list[object] = []
    constructs, predicts = lightgbm.Dataset.construct, lightgbm.Booster.predict

    def construct(self: lightgbm.Dataset) -> lightgbm.Dataset:
        threads.append((self.params or {}).get("num_threads"))
        return constructs(self)

    def predict(self: lightgbm.Booster, rows: Any, **words: Any) -> Any:
        threads.append(words.get("num_threads"))
        return predicts(self, rows, **words)

    monkeypatch.setattr(lightgbm.Dataset, "construct", construct)
    monkeypatch.setattr(lightgbm.Booster, "predict", predict)
    start, *_ = load_models("shipped", "AMD Zen 5")
    borrowed = pool.select(np.arange(250, 1500))
    adapting.adapt(pool, np.arange(250), [start], fits=1, borrowed=borrowed)
    assert set(threads) == {1}, "a call without sets them for all, in the middle of another's"


def test_no_fit_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["costmodel", "adapt", "--blocks", "zen4", "--out", str(tmp_path / "x"), "--fits", "0"]
    assert main(words) != 0
    assert "--fits 0 is no number of fits" in " ".join(capsys.readouterr().err.split())
