"""Throughputs at which labels crowd, and answers moved onto them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestor.cost.blocks.table import named
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.levels import GRAIN, REACH, levels_of, moved


def test_noisy_labels_crowd_at_the_throughputs_they_were_made_from() -> None:
    random = np.random.default_rng(0)
    truth = np.log([0.25, 1 / 3, 0.5, 1.0, 2.0])
    labels = np.repeat(truth, 300) + random.normal(0, 0.008, 1500)
    lonely = np.log([0.7, 37.0])
    np.testing.assert_allclose(levels_of(np.concatenate([labels, lonely])), truth, atol=0.004)


def test_no_labels_no_levels() -> None:
    assert len(levels_of(np.zeros(0))) == 0
    np.testing.assert_array_equal(moved(np.array([0.3]), np.zeros(0, dtype=np.float32)), [0.3])


def test_blocks_of_zen5_run_in_whole_cycles_and_simple_fractions() -> None:
    table = named("zen5")
    levels = np.exp(levels_of(np.log(table.cycles[table.stable])))
    for cycles in (1 / 4, 1 / 3, 1 / 2, 1, 2, 3, 4, 5):
        assert np.abs(levels / cycles - 1).min() < 0.015, cycles


@given(
    st.lists(st.integers(-3000, 3000), max_size=20, unique=True),
    st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=20),
)
def test_an_answer_moves_to_the_nearest_level_or_not_at_all(
    thousandths: list[int], answers: list[float]
) -> None:
    levels = (np.array(sorted(thousandths)) / 1000).astype(np.float32)
    before = np.array(answers)
    after = moved(before, levels)
    assert (np.abs(after - before) <= REACH).all()
    for old, new in zip(before, after, strict=True):
        nearest = np.abs(levels - old).min(initial=np.inf)
        assert np.abs(new - old) == pytest.approx(nearest if nearest <= REACH else 0, abs=1e-6)


def test_the_native_side_moves_answers_in_the_same_way(shipped: HybridModel) -> None:
    blocks = named("zen5").blocks[:2000]
    levels = shipped.part.levels
    as_told = np.log(shipped.predict(blocks).cycles)
    none = np.zeros(0)
    shipped.session.set_levels(none.astype(np.float32), 0, none.astype(np.uint8), GRAIN)
    as_learned = np.log(shipped.predict(blocks).cycles)
    on_a_level = np.abs(as_told[:, None] - levels).min(axis=1) < 1e-5
    assert on_a_level.mean() > 0.6
    np.testing.assert_allclose(as_told, moved(as_learned, levels, shipped.part.reach), atol=2e-6)


@pytest.fixture
def shipped() -> HybridModel:
    from nestor.cost.model.model_file import load

    model = load("shipped")
    assert isinstance(model, HybridModel)
    return model
