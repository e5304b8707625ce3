"""The pool that pays compiles without code, on a real build."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.policy.names import DEFAULT, NamedPolicy, named_policy
from nestor.policy.trees import TreesPolicy
from nestor.problem.rollout import Request
from nestor.problems.inlining_size import PROBLEM
from nestor.problems.inlining_size.size.estimating_pool import EstimatingPool
from nestor.problems.inlining_size.size.examples import collect, drawn, join
from nestor.problems.inlining_size.size.judge import affine, judge
from nestor.problems.inlining_size.size.model import Linear, SizeModel, trees_metadata
from nestor.rollout.local_pool import LocalPool, PoolSettings


def by_instructions(bytes_each: float) -> SizeModel:
    """A model that takes every instruction for so many bytes."""
    counts, leaf = ("instructions",), np.zeros(1, np.int32)
    trees = TreesPolicy(
        trees_metadata(counts), root=leaf, feature=leaf - 1, threshold=np.zeros(1), left=leaf,
        right=leaf, value=np.ones(1),
    )  # fmt: skip
    return SizeModel(counts, Linear(np.array([bytes_each]), 10.0, 1.0), trees)


@pytest.fixture
def whole(small_corpus: Corpus, plugin: Plugin) -> Iterator[LocalPool]:
    """A pool that compiles."""
    with LocalPool(PROBLEM, small_corpus, plugin, PoolSettings(jobs=2)) as pool:
        yield pool


@pytest.fixture
def pool(whole: LocalPool) -> EstimatingPool:
    return EstimatingPool(whole, by_instructions(4.0))


NEVER = named_policy("never", PROBLEM.builtins)


def test_what_does_not_change_weighs_what_it_weighs(pool: EstimatingPool, whole: LocalPool) -> None:
    module = pool.corpus.modules[0]
    policy = named_policy("threshold:5", PROBLEM.builtins)  # at -Oz the default's own
    (real,) = whole.run([Request(module, DEFAULT)])
    (bare,) = pool.run([Request(module, policy, log=True)])
    assert bare.trajectory is not None
    assert set(bare.outcome.functions) == set(real.outcome.functions)
    assert len(bare.trajectory) > 0


def test_what_changes_is_predicted(pool: EstimatingPool) -> None:
    module = pool.corpus.modules[0]
    (real,) = pool.run([Request(module, DEFAULT)])
    (bare,) = pool.run([Request(module, NEVER)])
    stock, kept = ({f.name: f.size for f in m.functions} for m in (real.outcome, bare.outcome))
    assert stock.keys() < kept.keys()  # a function that was inlined away is there again
    assert any(kept[name] != size for name, size in stock.items())
    assert bare.outcome.text == sum(kept.values())


def test_a_request_for_an_object_is_compiled(pool: EstimatingPool) -> None:
    (done,) = pool.run([Request(pool.corpus.modules[0], NEVER, keep=True)])
    assert done.ok and done.object is not None
    assert pool.objects.path(done.object).stat().st_size > 0


def test_a_policy_that_cannot_be_read_is_a_failure(pool: EstimatingPool) -> None:
    broken = NamedPolicy("broken", NEVER.policy, b"no policy", "0" * 64)
    (done,) = pool.run([Request(pool.corpus.modules[0], broken)])
    assert not done.ok and done.failure is not None and "cannot use the policy" in done.failure


def test_examples_are_collected_once_and_judged(pool: EstimatingPool, tmp_path: Path) -> None:
    modules = drawn(pool.corpus, ("train", "validation", "test"), 5, 0)
    assert len(modules) == len(pool.corpus.modules)
    pairs = collect(pool, modules, tmp_path / "kept")
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "kept").glob("*.npz")}
    again = collect(pool, modules, tmp_path / "kept")
    assert {path: path.stat().st_mtime_ns for path in files} == files and len(files) == 4
    assert [one.sizes for pair in again for one in pair] == [o.sizes for p in pairs for o in p]
    rows = join(one for pair in pairs for one in pair)
    assert rows.unmatched == 0 and (rows.y > 0).all()
    errors = judge(affine(rows, "instructions"), pairs)
    assert errors.functions == sum(len(stock.log.names) for stock, _ in pairs)
    assert 0 < errors.mean_pct < 100
