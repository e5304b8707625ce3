"""Our own model: training on a small part of the data, its file, its answers."""

import subprocess
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nestor.cost.blocks.table import Table, named
from nestor.cost.conformal import calibration_factor
from nestor.cost.contract import CostModel, ModelError
from nestor.cost.model.explain import explain
from nestor.cost.model.features import FEATURES
from nestor.cost.model.forest import edges_of, forest_of
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.model_file import load, save
from nestor.cost.model.session import LearnedSession
from nestor.cost.training.folds import draw_folds
from nestor.cost.training.settings import TrainingSettings
from nestor.cost.training.train import train
from nestor.cost.training.trees import TreeSettings, binned, grow

SMALL = TrainingSettings(passes=1, trees=40, leaves=15, learning_rate=0.2, threads=1)
ADD = bytes.fromhex("4801c8")


@pytest.fixture(scope="module")
def data() -> Table:
    table = named("zen5")
    rows = np.flatnonzero(table.stable)
    return table.select(np.random.default_rng(0).permutation(rows)[:1600])


@pytest.fixture(scope="module")
def model(data: Table) -> HybridModel:
    return train(data, np.arange(1200), SMALL)


@pytest.fixture(scope="module")
def stored(model: HybridModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "small.safetensors"
    save(model, path)
    return path


def test_a_small_model_predicts_what_it_never_saw(data: Table, model: HybridModel) -> None:
    test = data.select(np.arange(1200, 1600))
    assert isinstance(model, CostModel)
    every = model.predict(test.blocks)
    answered = np.isfinite(every.cycles)
    assert answered.mean() > 0.9
    assert set(np.flatnonzero(~answered)) == set(every.refused)
    test = test.select(answered)
    predicted = model.predict(test.blocks)
    errors = np.abs(predicted.cycles / test.cycles - 1)
    assert np.median(errors) < 0.08
    assert (predicted.low <= predicted.cycles).all() and (predicted.cycles <= predicted.high).all()
    inside = (predicted.low <= test.cycles) & (test.cycles <= predicted.high)
    assert 0.75 < inside.mean() < 0.99


def test_the_file_gives_the_same_answers(data: Table, model: HybridModel, stored: Path) -> None:
    again = load(stored)
    mine, other = model.predict(data.blocks), again.predict(data.blocks)
    # What is remembered is stored in 16 bits, so that a few answers move to the next level.
    np.testing.assert_allclose(other.cycles, mine.cycles, rtol=6e-2)
    assert np.nanmean(np.abs(np.log(other.cycles / mine.cycles))) < 1e-3


def test_training_repeats_itself(data: Table, model: HybridModel) -> None:
    again = train(data, np.arange(1200), SMALL)
    np.testing.assert_array_equal(
        model.predict(data.blocks).cycles, again.predict(data.blocks).cycles
    )


def test_answers_do_not_depend_on_company_or_on_the_cache(data: Table, model: HybridModel) -> None:
    blocks = data.blocks[:50]
    model.forget()
    together = model.predict(blocks)
    cached = model.predict(blocks)
    model.forget()
    alone = [model.predict([block]).cycles[0] for block in blocks]
    np.testing.assert_array_equal(together.cycles, cached.cycles)
    np.testing.assert_array_equal(together.cycles, alone)


def test_what_cannot_be_decoded_is_not_a_number(model: HybridModel) -> None:
    predicted = model.predict([b"", b"\x06", ADD, ADD[:2], b"\xff" * 20])
    np.testing.assert_array_equal(np.isnan(predicted.cycles), [True, True, False, True, True])
    assert len(model.predict([]).cycles) == 0


def test_an_instruction_that_was_never_measured_gets_no_answer(model: HybridModel) -> None:
    unheard = bytes.fromhex("62f1fd48 58c1")  # vaddpd zmm0, zmm0, zmm1
    predicted = model.predict([ADD, unheard])
    assert np.isnan([predicted.cycles[1], predicted.low[1], predicted.high[1]]).all()
    assert predicted.refused[1].startswith("VADDPD zmm1 {k1}{z}, zmm2, zmm3/m512/m64bcst")
    assert "not in training" in predicted.refused[1]
    assert 0 not in predicted.refused


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1), place=st.floats(0, 1), value=st.integers(0, 255))
def test_a_damaged_file_is_refused_or_answers(
    stored: Path, tmp_path: Path, cut: float, place: float, value: int
) -> None:
    damaged = bytearray(stored.read_bytes())
    damaged[int(place * (len(damaged) - 1))] = value
    if cut < 0.3:
        damaged = damaged[: int(cut * len(damaged))]
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(damaged)
    try:
        load(path).predict([ADD, b"\x90"])
    except ModelError as error:
        assert str(path) in str(error) or "trees" in str(error)


def test_a_missing_file_and_an_unknown_machine_say_so(stored: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="as a cost model: No such file"):
        load(tmp_path / "none.safetensors")
    with pytest.raises(ModelError, match="has no machine 'Cray'"):
        load(stored, "Cray")


def test_too_few_labels_are_refused(data: Table) -> None:
    with pytest.raises(ModelError, match="at least 200"):
        train(data, np.arange(20), SMALL)


def test_two_machines_share_trees_and_keep_their_own_core(data: Table) -> None:
    """The second machine is the first at three times the cycles: a test of the mechanism."""
    half = data.select(np.arange(500))
    both = Table(
        blocks=half.blocks * 2,
        cycles=np.concatenate([half.cycles, 3 * half.cycles]),
        spread=np.concatenate([half.spread, half.spread]),
        machine=("fast",) * 500 + ("slow",) * 500,
    )
    trained = train(both, np.arange(1000), SMALL)
    slow = HybridModel(trained.parts, "slow")
    assert (trained.machine, slow.machine) == ("fast", "slow")
    ratio = slow.predict(half.blocks).cycles / trained.predict(half.blocks).cycles
    assert 2.6 < np.median(ratio) < 3.4


def test_native_trees_are_those_of_lightgbm() -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(900, len(FEATURES))).astype(np.float32)
    features[:, :40] = np.round(features[:, :40])  # ties and repeated values
    target = features[:, 0] * features[:, 50] + np.sin(features[:, 60])
    booster: lightgbm.Booster = grow(
        features, target.astype(np.float64), TreeSettings(30, 31, 0.2, threads=1), 0,
        like=binned(features, 1),
    )  # fmt: skip
    dump = booster.dump_model()
    edges, starts = edges_of([dump], len(FEATURES))
    session = LearnedSession()
    session.set_bins(edges, starts)
    session.set_forest("residual", forest_of(dump, edges, starts))
    np.testing.assert_allclose(
        session.residuals(features), np.asarray(booster.predict(features)), atol=5e-3
    )


def test_folds_keep_rows_and_sequences_apart() -> None:
    sequences = np.repeat(np.arange(100), 5)
    folds = draw_folds(sequences, 0.4, 0)
    for fold in range(5):
        judged, used = folds.held_out(fold), folds.usable(fold)
        assert not (judged & used).any()
        new = set(sequences[judged & folds.new].tolist())
        assert not new & set(sequences[used].tolist())


@given(st.integers(30, 400), st.floats(0.5, 0.95))
def test_conformal_intervals_hold_their_share(count: int, coverage: float) -> None:
    errors = np.abs(np.random.default_rng(count).normal(size=count))
    spreads = np.ones(count)
    factor = calibration_factor(errors, spreads, coverage)
    assert (errors <= factor * spreads).mean() >= coverage - 1e-9


def test_an_explanation_names_the_chain_and_the_ports(model: HybridModel) -> None:
    chain = explain(model, bytes.fromhex("480fafc1 4801c8"))  # imul rax, rcx; add rax, rcx
    assert "dependency chain" in chain.limits
    assert [i.on_chain for i in chain.instructions] == [True, True]
    assert chain.cycles == pytest.approx(chain.simulated + chain.learned)
    for name, cycles in chain.simulated_resources:
        assert cycles <= chain.simulated, name
    stores = explain(model, bytes.fromhex("488907 48894708 48894710 48894718"))
    assert stores.limits[0] == "store ports" or "store ports" in stores.limits
    assert not any(i.on_chain for i in stores.instructions)
    with pytest.raises(ModelError, match="does not decode"):
        explain(model, b"\x06")


def test_the_shipped_model_predicts_without_a_training_stack() -> None:
    code = (
        "import sys; sys.modules['lightgbm'] = sys.modules['torch'] = None\n"
        "from nestor.cost.model.model_file import load\n"
        "p = load('shipped').predict([bytes.fromhex('480fafc1'), b'\\x90' * 8])\n"
        "assert 2.4 < p.cycles[0] < 3.5 and 0.8 < p.cycles[1] < 1.3, p\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_the_shipped_model_keeps_its_promise() -> None:
    """On rows that it was partly trained on, so this is a smoke test of the file, no evaluation."""
    table = named("zen5")
    rows = np.random.default_rng(1).permutation(np.flatnonzero(table.stable))[:2000]
    sample = table.select(rows)
    predicted = load("shipped", "AMD Zen 5").predict(sample.blocks)
    assert np.mean(np.abs(predicted.cycles / sample.cycles - 1)) < 0.06
    inside = (predicted.low <= sample.cycles) & (sample.cycles <= predicted.high)
    assert 0.86 < inside.mean() < 0.97
