"""Comparing policies: what follows without compiling is what compiling would have said."""

from dataclasses import replace

import numpy as np
import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, CorpusError
from nestor.learn.accounting import Tally
from nestor.learn.answers import changed_answers
from nestor.learn.blackbox.comparison import Comparison, ReusingPool, comparison
from nestor.learn.programs import default_rollouts, training_programs, units_of
from nestor.policy import network
from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool

PROBLEM = find_problem("inlining-size")
FREE = PROBLEM.features.free


def below(cost: float) -> MlpPolicy:
    """A policy that acts where the first feature, the estimated cost, is below a number."""
    normalisation = LogNormalisation(np.zeros(len(FREE)), np.full(len(FREE), 0.3))
    weight = np.zeros((1, len(FREE)), np.float32)
    weight[0, 0] = -1
    layers = (network.Layer(weight, np.array([cost * 0.3], np.float32)),)
    return network.build(FREE, "decision", normalisation, layers, problem=PROBLEM.name)


CLONE, NOTHING = below(np.log2(5.5)), below(-100.0)


def comparing(pool: LocalPool, corpus: Corpus, tally: Tally) -> Comparison:
    units = units_of(corpus, training_programs(corpus))
    defaults = default_rollouts(pool, units, Tally(), keep=True)
    return comparison(pool, training_programs(corpus), defaults, tally)


def test_reuse_gives_what_compiling_gives(small_corpus: Corpus, plugin: Plugin) -> None:
    tally = Tally()
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        quick = comparing(pool, small_corpus, tally)
        assert (quick([CLONE]) == 0).all()
        assert tally.rollouts == 0, "the clone takes the default's trajectories"
        assert tally.reused > 0
        changes = quick([NOTHING, CLONE])
        assert tally.rollouts > 0
        assert quick.deviation(CLONE) == 0 < quick.deviation(NOTHING) <= 1
        slow = replace(quick, pool=ReusingPool(pool, {}, tally))
        assert (slow([NOTHING, CLONE]) == changes).all()
    assert (changes[0] != 0).any()
    assert (changes[1] == 0).all()


def test_failed_compile_is_nan_for_its_programs_only(small_corpus: Corpus, plugin: Plugin) -> None:
    tally = Tally()
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        compare = comparing(pool, small_corpus, tally)
        path = small_corpus.bitcode(small_corpus.modules[0])
        path.write_bytes(path.read_bytes()[:100])
        alone = replace(compare, pool=ReusingPool(pool, {}, tally))
        (changes,) = alone([CLONE])
    assert np.isnan(changes).sum() == 1
    assert tally.failures == 1


def test_failed_units_are_counted_with_their_reason(small_corpus: Corpus, plugin: Plugin) -> None:
    bad = small_corpus.modules[0]
    path = small_corpus.bitcode(bad)
    path.write_bytes(path.read_bytes()[:100])
    tally = Tally()
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        defaults = default_rollouts(pool, small_corpus.modules, tally)
    assert bad.name not in defaults
    assert tally.failures == 1
    assert [bad.name in reason for reason in tally.reasons] == [True]
    logs = [done.trajectory for done in defaults.values() if done.trajectory is not None]
    assert len(logs) == len(defaults)
    assert all(changed_answers(CLONE, log) == 0 for log in logs)


def test_nothing_to_learn_from_is_one_sentence(small_corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        with pytest.raises(CorpusError, match="nothing to decide"):
            default_rollouts(pool, (), Tally())
        with pytest.raises(CorpusError, match="no programs in the split train"):
            training_programs(replace(small_corpus, programs=()))
