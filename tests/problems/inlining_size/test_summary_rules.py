"""The rules of a program's summary, as numbers and in linked programs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from nestor.build.build import find_build
from nestor.compiler.plugin import Plugin
from nestor.evaluate.compare import EvaluateSettings, evaluate
from nestor.policy.names import NamedPolicy
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import PolicyError
from nestor.problems.inlining_size.growth_bound import GrowthBound, bound_growth
from nestor.problems.inlining_size.summary_rules import follow_summary
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.inlining import PROBLEM
from tests.problems.inlining_size.sums import linear

RANGE = np.array([[0.0, 1.0], *[[-50.0, 3000.0]] * 7, [0.0, 51.0]])
"""Of the nine features of :func:`linear`, the callee's size last."""


def assert_each_is_refused(
    policy: MlpPolicy, row: npt.NDArray[np.int64], wrong: Mapping[str, int]
) -> None:
    """Assert that one wrong value at a time in ``row`` makes the policy refuse."""
    for name, value in wrong.items():
        other = row.copy()
        other[policy.features.index(name)] = value
        assert policy.logits(other[None])[0] < 0, name


@pytest.fixture
def bounded() -> MlpPolicy:
    return bound_growth(replace(linear(), range=RANGE), GrowthBound(own=10, comdat=80, several=20))


def test_without_a_summary_the_logits_are_the_same_bits(bounded: MlpPolicy) -> None:
    policy = follow_summary(bounded)
    x = np.random.default_rng(0).integers(0, 2, (4000, len(policy.features)))
    x[:, policy.features.index("cost_estimate")] = np.arange(4000) % 151 - 30
    x[:, policy.features.index("callee_uses")] = np.arange(4000) % 3 + 1
    for name in policy.features:
        if name.startswith("program_"):
            x[:, policy.features.index(name)] = -1
    before = bounded.logits(x[:, : len(bounded.features)])
    assert (policy.logits(x) == before).all()
    assert (before > 0).any() and (before < 0).any()
    # What the range would have left to the default is never inlined.
    x[:, policy.features.index("callee_code_size")] = 52
    assert (policy.logits(x) < 0).all()


def test_the_only_call_needs_all_of_its_conditions(bounded: MlpPolicy) -> None:
    policy = follow_summary(bounded)
    at = {name: index for index, name in enumerate(policy.features)}
    row = np.zeros(len(policy.features), np.int64)
    row[at["callee_uses"]] = row[at["program_callee_calls"]] = row[at["program_link_gc"]] = 1
    row[at["cost_estimate"]], row[at["callee_code_size"]] = 2000, 400
    assert policy.logits(row[None])[0] > 0
    wrong = {
        "inlining_default": 1,
        "callee_uses": 2,
        "program_callee_calls": 2,
        "program_callee_address_taken": 1,
        "program_link_gc": 0,
    }
    assert_each_is_refused(policy, row, wrong)


def test_the_bound_does_not_hold_for_the_only_copy(bounded: MlpPolicy) -> None:
    policy = follow_summary(bounded)
    at = {name: index for index, name in enumerate(policy.features)}
    row = np.zeros(len(policy.features), np.int64)
    row[at["callee_has_comdat"]] = row[at["callee_disappears"]] = 1
    row[at["cost_estimate"]], row[at["callee_code_size"]] = 60, 20  # beyond the bound of 10
    row[at["program_callee_calls"]], row[at["callee_uses"]] = 3, 1
    row[at["program_callee_copies"]] = row[at["program_link_gc"]] = 1
    free = row[: len(bounded.features)].copy()
    free[at["cost_estimate"]] = 10
    assert bounded.logits(row[None, : len(bounded.features)])[0] < 0 < bounded.logits(free[None])[0]
    assert policy.logits(row[None])[0] > 0
    wrong = {
        "program_callee_copies": 2,
        "program_callee_address_taken": 1,
        "program_link_gc": 0,
        "callee_code_size": 52,
    }
    assert_each_is_refused(policy, row, wrong)


def test_other_policies_are_refused() -> None:
    with pytest.raises(PolicyError, match="under a bound"):
        follow_summary(linear())


PARSE = """
int next(int);
int parse(int v) {
  for (int i = 0; i < v; ++i) { if (next(i) > 3) v -= next(v); else v += next(i * v) / 3; }
  return v ^ next(v);
}
int run(int v) { next(v + 1); return parse(v) + 1; }
"""
NEXT = "int next(int v) { return v * 3 / 2; }"
PARSE_AGAIN = "int parse(int); int next(int v) { return parse(v) * 3 / 2; }"
MAIN = " int run(int); int main(int n, char **v) { return run(n); }"


@pytest.mark.parametrize("calls", [1, 2])
def test_a_linked_program(tmp_path: Path, plugin: Plugin, bounded: MlpPolicy, calls: int) -> None:
    """``parse`` is inlined and goes away if nothing else of the program calls it."""
    work = tmp_path / "src"
    work.mkdir()
    (work / "parse.c").write_text(PARSE)
    (work / "main.c").write_text((NEXT if calls == 1 else PARSE_AGAIN) + MAIN)
    make = (
        "program: parse.o main.o\n\t$(CC) -o $@ $^ -Wl,--gc-sections\n"
        "%.o: %.c\n\t$(CC) -Oz -ffunction-sections -c $<\n"
    )
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {}, {"program": (work, make)})
    named = NamedPolicy.of(follow_summary(bounded))
    sizes = {}
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        build = find_build(PROBLEM, "link")
        for summary in (False, True):
            settings = EvaluateSettings(summary=summary)
            (result,) = evaluate(pool, build, corpus.programs, [named], settings)
            (program,) = result.programs
            assert program.stock and program.policy and not result.failures
            sizes[summary] = program.policy.columns["linked"] - program.stock.columns["linked"]
    assert sizes[False] == 0
    assert sizes[True] < 0 if calls == 1 else sizes[True] == 0
