"""What stock makes of a module is compiled once, and used again only as it was written."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.evaluate.compare import evaluate
from nestor.evaluate.result import Evaluation
from nestor.problem.problem import Pool
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request, Rollout
from nestor.progress import Progress, silent
from nestor.rollout.cache import baseline_path
from nestor.rollout.layered import LayeredPool
from nestor.rollout.local_pool import LocalPool
from nestor.rollout.stock import StockKeepingPool
from tests.inlining import LINK, PROBLEM, policy_named


class Counting(LayeredPool):
    """Counts what is compiled, by who decides."""

    def __init__(self, below: Pool):
        super().__init__(below)
        self.stock = 0
        self.others = 0

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = ""
    ) -> list[Rollout]:
        """Count, and compile."""
        self.stock += sum(request.policy is None for request in requests)
        self.others += sum(request.policy is not None for request in requests)
        return super().run(requests, progress, stage)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: Plugin) -> None:
    """A cache of its own; the plugin is there already."""
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))


def judged(counting: Counting, policy: str, *, fresh: bool = False) -> Evaluation:
    """Return the evaluation of one policy on all programs."""
    pool = StockKeepingPool(counting, fresh=fresh)
    (result,) = evaluate(pool, LINK, counting.corpus.programs, [policy_named(policy)])
    assert not result.failures
    return result


def test_a_second_policy_is_judged_without_compiling_stock(
    small_corpus: Corpus, plugin: Plugin
) -> None:
    modules = len(small_corpus.modules)
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        counting = Counting(pool)
        first = judged(counting, "never")
        assert (counting.stock, counting.others) == (modules, 2 * modules)
        assert first.compile_cpu_ratio is not None
        second = judged(counting, "always")
        again = judged(counting, "never")
        assert (counting.stock, counting.others) == (modules, 6 * modules)
        fresh = judged(counting, "never", fresh=True)
        assert counting.stock == 2 * modules
    assert [p.stock for p in second.programs] == [p.stock for p in first.programs]
    assert again.programs == first.programs == fresh.programs
    assert second.compile_cpu_ratio is None  # nothing to compare with
    assert fresh.compile_cpu_ratio is not None


@pytest.mark.parametrize("damage", ["cut", "changed", "without its digest"])
def test_what_was_damaged_is_compiled_again(
    damage: str, small_corpus: Corpus, plugin: Plugin
) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        counting = Counting(pool)
        first = judged(counting, "never")
        kept = baseline_path(pool, small_corpus.modules[0], None)
        data = kept.read_bytes()
        if damage == "cut":
            kept.write_bytes(data[: len(data) // 2])
        elif damage == "changed":
            kept.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        else:
            kept.with_suffix(".sha256").unlink()
        before = counting.stock
        assert judged(counting, "never").programs == first.programs
        assert counting.stock == before + 1
        assert kept.read_bytes() == data
        judged(counting, "never")
        assert counting.stock == before + 1


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    small_corpus: Corpus, plugin: Plugin, monkeypatch: pytest.MonkeyPatch, full_disk: Path
) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(full_disk / "cache"))
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        counting = Counting(pool)
        assert judged(counting, "never").programs == judged(counting, "never").programs
    assert counting.stock == 2 * len(small_corpus.modules)


def test_an_object_says_what_its_compile_came_to(small_corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        (done,) = pool.run([Request(small_corpus.modules[0], keep=True)])
        assert done.object is not None
        assert PROBLEM.outcome_of(pool.objects.path(done.object)) == done.outcome
        keeping = StockKeepingPool(pool)
        requests = [Request(unit, keep=True) for unit in small_corpus.modules]
        first, second = keeping.run(requests), keeping.run(requests)
    assert [(r.request, r.outcome, r.object) for r in first] == [
        (r.request, r.outcome, r.object) for r in second
    ]
    assert all(r.cpu_seconds > 0 for r in first)
    assert all(r.cpu_seconds == 0 for r in second)


def test_where_an_object_does_not_say_it_stock_is_compiled_again(
    small_corpus: Corpus, plugin: Plugin
) -> None:
    """The cost of an allocation is weighted by frequencies, which an object does not hold."""
    problem = find_problem("regalloc-eviction")
    with LocalPool(problem, small_corpus, plugin) as pool:
        (done,) = pool.run([Request(small_corpus.modules[0], keep=True)])
        assert done.object is not None
        assert problem.outcome_of(pool.objects.path(done.object)) is None
        keeping = StockKeepingPool(pool)
        requests = [Request(unit, keep=True) for unit in small_corpus.modules]
        first, second = keeping.run(requests), keeping.run(requests)
        assert not baseline_path(pool, small_corpus.modules[0], None).exists()
    assert [(r.outcome, r.object) for r in first] == [(r.outcome, r.object) for r in second]
    assert all(r.cpu_seconds > 0 for r in second)


def test_only_what_nobody_decides_is_taken_from_the_cache(
    small_corpus: Corpus, plugin: Plugin
) -> None:
    unit = small_corpus.modules[0]
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        counting = Counting(pool)
        keeping = StockKeepingPool(counting)
        keeping.run([Request(unit, keep=True)])
        keeping.run([Request(unit, policy_named("default"), keep=True), Request(unit, log=True)])
    assert counting.others == 1
    assert counting.stock == 2
