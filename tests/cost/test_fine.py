"""Blocks of a crowd are ordered where labels tell them apart, and have one answer elsewhere."""

import json
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from nestor.cost.blocks.table import named
from nestor.cost.model.features import FEATURES, SEQUENCE_KNOWN
from nestor.cost.model.levels import GRAIN, REACH, REACH_BEFORE, moved, rounded
from nestor.cost.model.model_file import load_models, save
from nestor.cost.training.fine import Crowds, crowds_of, grow_fine, told_apart
from nestor.cost.training.settings import TrainingSettings
from nestor.cost.training.train import train
from nestor.cost.training.trees import binned

LEVELS = np.log([0.5, 1.0]).astype(np.float32)


def _crowds(beside: np.ndarray) -> Crowds:
    """Return rows that are by turns at either level, and so far beside it."""
    level = np.arange(len(beside)) % 2
    return crowds_of([(LEVELS[level].astype(np.float64) + beside, LEVELS)])


def test_labels_belong_to_the_level_that_is_near() -> None:
    logs = np.log([0.5, 0.505, 0.7, 0.995, 1.0])
    crowds = crowds_of([(logs, LEVELS), (logs, LEVELS)])
    one = [0, 0, -1, 1, 1]
    # A label that is a level to the last digit is at it too.
    assert crowds.level.tolist() == [*one, *(n + 2 if n >= 0 else n for n in one)]
    assert crowds.sizes == (2, 2)
    np.testing.assert_allclose(crowds.beside[[1, 3]], [np.log(1.01), np.log(0.995)], atol=1e-6)


def test_an_order_counts_where_three_of_four_pairs_are_right() -> None:
    random = np.random.default_rng(0)
    beside = random.uniform(-0.01, 0.01, 2000)
    crowds = _crowds(beside)
    rows = np.ones(2000, dtype=np.bool_)
    answers = np.where(crowds.level == 0, beside, random.permutation(beside))
    assert told_apart(answers, crowds, rows, 0).tolist() == [1, 0]
    assert told_apart(np.zeros(2000), crowds, rows, 0).tolist() == [0, 0]
    assert told_apart(answers, crowds, np.arange(2000) < 40, 0).tolist() == [0, 0]


def test_trees_learn_what_features_say_and_nothing_of_noise() -> None:
    random = np.random.default_rng(1)
    features = random.integers(0, 4, (4000, len(FEATURES))).astype(np.float32)
    noise = random.normal(0, 0.0005, 4000)
    half = random.random(4000) < 0.6
    like = binned(features, 1)
    crowds = _crowds(0.003 * features[:, 3] + noise)
    booster, (ordered,) = grow_fine(features, crowds, half, 1, 0, like)
    assert ordered.tolist() == [1, 1]
    assert booster is not None
    answers = np.asarray(booster.predict(features))
    np.testing.assert_allclose(answers, 0.003 * features[:, 3], atol=0.002)
    booster, (ordered,) = grow_fine(features, _crowds(noise), half, 1, 0, like)
    assert booster is None
    assert ordered.tolist() == [0, 0]


def test_sequences_that_other_blocks_lack_neither_teach_nor_judge() -> None:
    random = np.random.default_rng(1)
    features = random.integers(0, 4, (4000, len(FEATURES))).astype(np.float32)
    new = features[:, SEQUENCE_KNOWN] == 0
    crowds = _crowds(np.where(new, -0.003, 0.003) * features[:, 3])
    half, like = random.random(4000) < 0.6, binned(features, 1)
    booster, (ordered,) = grow_fine(features, crowds, half, 1, 0, like)
    assert ordered.tolist() == [1, 1]
    assert booster is not None
    np.testing.assert_allclose(booster.predict(features), 0.003 * features[:, 3], atol=0.002)
    features[:, SEQUENCE_KNOWN] = 0
    booster, (ordered,) = grow_fine(features, crowds, half, 1, 0, like)
    assert booster is None
    assert ordered.tolist() == [0, 0]


def test_answers_beside_a_level_are_whole_grains_within_reach() -> None:
    assert rounded(np.array([0.0009, -0.0031, 0.5])).tolist() == [0.0, -2 * GRAIN, REACH]


def test_the_native_side_adds_it_at_those_levels_alone(tmp_path: Path) -> None:
    table = named("zen5")
    rows = np.flatnonzero(table.stable)[:4000]
    settings = TrainingSettings(passes=0, trees=10, leaves=15, machine=False, threads=1)
    model = train(table, rows, settings)
    file = tmp_path / "model.safetensors"
    save(model, file)
    model = load_models(file)[0]
    session, part = model.session, model.part
    blocks = [table.blocks[row] for row in rows]
    assert part.reach == REACH
    assert load_models(_without_reach(file))[0].part.reach == REACH_BEFORE
    session.set_levels(part.levels, 0.0, part.ordered, GRAIN)
    learned = np.log(model.predict(blocks).cycles)
    plain = moved(learned, part.levels)
    every = np.ones(len(part.levels), dtype=np.uint8)
    session.set_levels(part.levels, REACH, 0 * every, GRAIN)
    np.testing.assert_allclose(np.log(model.predict(blocks).cycles), plain, atol=2e-6)
    session.set_levels(part.levels, REACH, every, GRAIN)
    beside = np.log(model.predict(blocks).cycles) - plain
    grains = beside / GRAIN
    np.testing.assert_allclose(grains, np.rint(grains), atol=0.003)
    assert (np.abs(beside) <= REACH + 1e-5).all()
    on_a_level = np.abs(plain[:, None] - part.levels).min(axis=1) < 1e-5
    assert (np.rint(grains)[~on_a_level] == 0).all()
    has_trees = len(model.parts.fine.depth) > 0
    assert has_trees == bool(part.ordered.any()) == bool((np.rint(grains) != 0).any())
    # Trees that say something of any block: they count where training has its sequence.
    session.set_forest("fine", model.parts.residual)
    told = np.log(model.predict(blocks).cycles)
    assert (np.abs(told - plain)[on_a_level] > GRAIN / 2).mean() > 0.1
    nothing = np.zeros(0, dtype=np.uint32)
    session.set_residual_memory((nothing, np.zeros(0, dtype=np.float32), nothing))
    session.forget_answers()
    unknown = np.log(model.predict(blocks).cycles)
    session.set_levels(part.levels, REACH, 0 * every, GRAIN)
    np.testing.assert_array_equal(unknown, np.log(model.predict(blocks).cycles))


def _without_reach(file: Path) -> Path:
    """Return a copy of a model file that does not say how far answers move, as those of before."""
    with safe_open(file, framework="numpy") as opened:
        header = json.loads(opened.metadata()["nestor"])
    for machine in header["machines"]:
        del machine["reach"]
    before = file.with_name("before.safetensors")
    save_file(load_file(file), before, metadata={"nestor": json.dumps(header)})
    return before
