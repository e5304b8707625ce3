"""The pool that pays compiles without code, on a real build."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.policy import builtin, bundle
from nestor.policy.trees import TreesPolicy
from nestor.rollout.pool import Pool, PoolSettings
from nestor.rollout.rollout import Request
from nestor.size.estimating_pool import EstimatingPool
from nestor.size.examples import collect, drawn, join
from nestor.size.judge import affine, judge
from nestor.size.model import Linear, SizeModel, trees_metadata


def by_instructions(bytes_each: float) -> SizeModel:
    """A model that takes every instruction for so many bytes."""
    counts, leaf = ("instructions",), np.zeros(1, np.int32)
    trees = TreesPolicy(
        trees_metadata(counts), root=leaf, feature=leaf - 1, threshold=np.zeros(1), left=leaf,
        right=leaf, value=np.ones(1),
    )  # fmt: skip
    return SizeModel(counts, Linear(np.array([bytes_each]), 10.0, 1.0), trees)


@pytest.fixture
def pool(small_corpus: Corpus, plugin: Plugin) -> Iterator[EstimatingPool]:
    with (
        Pool(small_corpus, plugin, PoolSettings(jobs=2)) as whole,
        EstimatingPool(whole, by_instructions(4.0)) as estimating,
    ):
        yield estimating


def never(folder: Path) -> Path:
    path = folder / "never.safetensors"
    bundle.save(builtin.constant(inline=False), path)
    return path


def test_what_does_not_change_weighs_what_it_weighs(pool: EstimatingPool, tmp_path: Path) -> None:
    module = pool.corpus.modules[0]
    policy = tmp_path / "default.safetensors"
    bundle.save(builtin.threshold(5), policy)  # at -Oz the default's own
    (whole,) = Pool.run(pool, [Request(module, "default")])
    (bare,) = pool.run([Request(module, policy, log=True)])
    assert whole.measure is not None and bare.measure is not None and bare.trajectory is not None
    assert set(bare.measure.functions) == set(whole.measure.functions)
    assert len(bare.trajectory) > 0


def test_what_changes_is_predicted(pool: EstimatingPool, tmp_path: Path) -> None:
    module = pool.corpus.modules[0]
    (whole,) = pool.run([Request(module, "default")])
    (bare,) = pool.run([Request(module, never(tmp_path))])
    assert whole.measure is not None and bare.measure is not None
    stock, kept = ({f.name: f.size for f in m.functions} for m in (whole.measure, bare.measure))
    assert stock.keys() < kept.keys()  # a function that was inlined away is there again
    assert any(kept[name] != size for name, size in stock.items())
    assert bare.measure.text == sum(kept.values())


def test_who_wants_an_object_gets_one(pool: EstimatingPool, tmp_path: Path) -> None:
    module, out = pool.corpus.modules[0], tmp_path / "module.o"
    (done,) = pool.run([Request(module, never(tmp_path), keep=out)])
    assert done.ok and out.stat().st_size > 0


def test_a_policy_that_cannot_be_read_is_a_failure(pool: EstimatingPool, tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"no policy")
    (done,) = pool.run([Request(pool.corpus.modules[0], tmp_path / "broken")])
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
