"""Experience: what is known without compiling is what compiling would have said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nestor.learn.experience import Known, Tally
from nestor.learn.features import FREE_FEATURES
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, CorpusError, Module
from nestor.learn import experience
from nestor.policy import bundle, network
from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.problems.inlining_size import INLINING_SIZE


def random_policy(seed: int) -> MlpPolicy:
    width = len(FREE_FEATURES)
    normalisation = LogNormalisation(np.zeros(width), np.full(width, 0.3))
    layers = network.initial_layers((width, 6, 1), np.random.default_rng(seed))
    return network.build(FREE_FEATURES, "decision", normalisation, layers, problem="inlining-size")


def threshold_policy(cost: float) -> MlpPolicy:
    """A network that inlines when the squashed cost is below ``cost``."""
    policy = random_policy(0)
    weight = np.zeros((1, len(FREE_FEATURES)), np.float32)
    weight[0, 0] = -1
    bias = np.array([cost * 0.3], np.float32)
    return replace(policy, layers=(network.Layer(weight, bias),))


def test_reuse_gives_what_compiling_gives(small_corpus: Corpus, plugin: Plugin) -> None:
    tally = Tally()
    with Pool(small_corpus, plugin) as pool:
        stock = experience.baseline(pool, experience.training_programs(small_corpus))
        modules = experience.modules_of(small_corpus, stock.programs)
        defaults = experience.default_rollouts(pool, modules, tally)
        known = {
            name: Known.of(rolled, INLINING_SIZE, FREE_FEATURES)
            for name, rolled in defaults.items()
        }
        quick = experience.comparer(pool, stock, known, tally)
        clone, never = threshold_policy(np.log2(5.5)), threshold_policy(-100.0)
        before = tally.rollouts
        assert (quick([clone]) == 0).all()
        assert tally.rollouts == before, "the clone takes the known trajectories"
        assert tally.reused == len(modules)
        changes = quick([never, clone])
        assert tally.rollouts > before
    with Pool(small_corpus, plugin) as pool:
        slow = experience.comparer(pool, stock, {}, Tally())
        assert (changes == slow([never, clone])).all()
    assert (changes[0] != 0).any()
    assert (changes[1] == 0).all()


def test_failed_compile_is_nan_for_its_programs_only(small_corpus: Corpus, plugin: Plugin) -> None:
    tally = Tally()
    with Pool(small_corpus, plugin) as pool:
        stock = experience.baseline(pool, small_corpus.programs)
        path = small_corpus.bitcode(small_corpus.modules[0])
        path.write_bytes(path.read_bytes()[:100])
        compare = experience.comparer(pool, stock, {}, tally)
        (changes,) = compare([threshold_policy(np.log2(5.5))])
    assert np.isnan(changes).sum() == 1
    assert tally.failures == 1


def test_known_trajectory_must_match_every_answer() -> None:
    x = np.zeros((3, len(FREE_FEATURES)))
    x[:, 0] = [-100, 0, 100]
    known = Known(x, np.array([True, True, False]))
    assert known.holds_for(threshold_policy(np.log2(5.5)))
    assert not known.holds_for(threshold_policy(100.0))


def test_failed_modules_are_tallied_with_their_reason(small_corpus: Corpus, plugin: Plugin) -> None:
    bad = small_corpus.modules[0]
    path = small_corpus.bitcode(bad)
    path.write_bytes(path.read_bytes()[:100])
    tally = Tally()
    with Pool(small_corpus, plugin) as pool:
        defaults = experience.default_rollouts(pool, small_corpus.modules, tally)
    assert bad.name not in defaults
    assert tally.failures == 1
    assert [bad.name in reason for reason in tally.reasons] == [True]


def test_nothing_to_learn_from_is_one_sentence(small_corpus: Corpus, plugin: Plugin) -> None:
    with Pool(small_corpus, plugin) as pool:
        with pytest.raises(CorpusError, match="nothing to inline"):
            experience.default_rollouts(pool, (), Tally())
        with pytest.raises(CorpusError, match="no programs in the split train"):
            experience.training_programs(replace(small_corpus, programs=()))


@pytest.mark.corpus
def test_reuse_on_real_modules(tiny_corpus: Corpus, plugin: Plugin, tmp_path: Path) -> None:
    """Wherever the answers are known to be the default's, the object is the stock object."""
    modules: tuple[Module, ...] = tuple(m for m in tiny_corpus.modules if m.project == "zlib")
    reused = 0
    with Pool(tiny_corpus, plugin) as pool:
        defaults = experience.default_rollouts(pool, modules, Tally())
        for cost in (2.0, 3.0, 4.5):
            policy = threshold_policy(cost)
            for module in modules:
                rolled = defaults[module.name]
                known = Known.of(rolled, INLINING_SIZE, FREE_FEATURES)
                if known.holds_for(policy):
                    path = tmp_path / "policy.safetensors"
                    path.write_bytes(bundle.to_bytes(policy))
                    (again,) = pool.run([Request(module, path)])
                    assert again.measure == rolled.measure
                    reused += 1
    assert reused > 10
