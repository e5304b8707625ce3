"""The bound on growth: the same policy within it, the default beyond it, in the compiler too."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.plugin import Plugin
from nestor.policy.names import NamedPolicy
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problem.registry import find_policy
from nestor.problem.rollout import Request
from nestor.problems.inlining_size.growth_bound import GrowthBound, bound_growth
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.inlining import PROBLEM
from tests.problems.inlining_size import sums

BOUND = GrowthBound(own=10, comdat=80, several=20)


@pytest.fixture
def linear() -> MlpPolicy:
    """A sum of nine features, without a range."""
    return sums.linear()


def test_within_the_bound_nothing_changes_and_beyond_it_nothing_is_changed(
    linear: MlpPolicy,
) -> None:
    bounded = bound_growth(linear, BOUND)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (4000, len(bounded.features)))
    cost, only, discardable, local = (
        bounded.features.index(name)
        for name in (
            "cost_estimate", "callee_disappears", "caller_is_discardable", "caller_is_local",
        )
    )  # fmt: skip
    x[:, cost] = rng.integers(-30, 120, len(x))
    x[:8, cost] = [10, 11, 80, 81, 20, 21, 10, 11]
    x[:8, only] = [1, 1, 1, 1, 0, 0, 1, 1]
    x[:8, discardable] = [0, 0, 1, 1, 1, 1, 1, 1]
    x[:8, local] = [0, 0, 0, 0, 0, 0, 1, 1]
    most = np.where((x[:, discardable] == 1) & (x[:, local] == 0), 80, 10)
    most = np.where(x[:, only] == 1, most, np.minimum(most, 20))
    within = x[:, cost] <= most
    assert within[:8].tolist() == [True, False] * 4
    before, after = linear.logits(x[:, : len(linear.features)]), bounded.logits(x)
    odd = (x[:, discardable] == 0) & (x[:, local] == 1)  # no such function: local ones may go
    assert (after[within & ~odd] == before[within & ~odd]).all()
    assert (after[~within & ~odd] < 0).all()
    assert (before[within] > 0).any()
    assert (before[~within] > 0).any()


def test_trees_are_bound_where_there_is_no_summary() -> None:
    trees = find_policy("distilled", ["inlining-size"])[1].policy
    assert isinstance(trees, TreesPolicy)
    trees = replace(trees, range=None)
    bounded = bound_growth(trees, BOUND)
    assert bounded.features == trees.features
    rng = np.random.default_rng(0)
    index = {name: number for number, name in enumerate(trees.features)}
    x = rng.integers(0, 4, (4000, len(index))).astype(float)
    x[:, index["cost_estimate"]] = rng.integers(-30, 120, len(x))
    for name in ("callee_disappears", "caller_is_discardable", "caller_is_local"):
        x[:, index[name]] = rng.integers(0, 2, len(x))
    x[:, index["program_callee_copies"]] = rng.integers(0, 2, len(x)) * 2 - 1
    x[:, index["program_link_gc"]] = x[:, index["program_callee_copies"]]
    only, discardable, local, copies = (
        x[:, index[name]]
        for name in (
            "callee_disappears", "caller_is_discardable", "caller_is_local",
            "program_callee_copies",
        )
    )  # fmt: skip
    most = np.where((discardable == 1) & (local == 0), 80, 10)
    most = np.where(only == 1, most, np.minimum(most, 20))
    within = (x[:, index["cost_estimate"]] <= most) | (copies >= 0)
    before, after = trees.logits(x), bounded.logits(x)
    assert (after[within] == before[within]).all()
    assert (after[~within] <= 0).all()
    assert (before[~within] > 0).any()
    assert (before[within] > 0).any()


def test_what_is_no_sum_is_refused(linear: MlpPolicy) -> None:
    with pytest.raises(PolicyError, match="under a bound on growth already"):
        bound_growth(bound_growth(linear, BOUND), BOUND)
    decides = replace(linear, metadata=replace(linear.metadata, answers="decision"))
    with pytest.raises(PolicyError, match="only a sum"):
        bound_growth(decides, BOUND)
    with pytest.raises(PolicyError, match="at least 0"):
        GrowthBound(own=20, comdat=10, several=0)


HEADER = """
#pragma once
int next(int);
inline int helper(int v) { return next(next(v) * 3 + 1) + next(v ^ 77) * 5 + next(v - 9); }
"""


def test_the_compiler_keeps_a_callee_in_a_caller_of_its_own(
    tmp_path: Path, plugin: Plugin, linear: MlpPolicy
) -> None:
    """A header's function that is used once: inlined into a template, not into a function."""
    work = tmp_path / "src"
    work.mkdir()
    (work / "helper.h").write_text(HEADER)
    (work / "own.cpp").write_text('#include "helper.h"\nint a(int v) { return helper(v) + 1; }\n')
    (work / "comdat.cpp").write_text(
        '#include "helper.h"\ntemplate <class T> T through(T v) { return helper(v) + 1; }\n'
        "int b(int v) { return through(v) * through(v + 1); }\n"
    )
    (work / "main.cpp").write_text(
        "int next(int v) { return v + 1; } int a(int); int b(int);"
        "int main(int n, char **) { return a(n) + b(n); }"
    )
    make = (
        "program: own.o comdat.o main.o\n\t$(CXX) -o $@ $^\n"
        "%.o: %.cpp\n\t$(CXX) -O2 -ffunction-sections -c $<\n"
    )
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {}, {"program": (work, make)})
    wide = GrowthBound(own=200, comdat=200, several=0)
    tight = replace(wide, own=5)
    inlined: dict[tuple[str, int], bool] = {}
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        for bound in (wide, tight):
            named = NamedPolicy.of(bound_growth(linear, bound))
            for name in ("own", "comdat"):
                unit = corpus.module(f"program/{name}.o")
                (done,) = pool.run([Request(unit, named, log=True, names=True)])
                assert done.trajectory is not None
                helper = next(i for i, n in done.trajectory.names.items() if "helper" in n)
                rows = done.trajectory.decisions["callee"].view("<u8") == helper
                inlined[name, bound.own] = bool((done.trajectory.answer[rows] > 0).all())
    assert inlined == {
        ("own", 200): True, ("comdat", 200): True, ("own", 5): False, ("comdat", 5): True,
    }  # fmt: skip
