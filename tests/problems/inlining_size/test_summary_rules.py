"""The only call of a function under a summary, as numbers and in linked programs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.build.build import find_build
from nestor.compiler.plugin import Plugin
from nestor.evaluate.compare import EvaluateSettings, evaluate
from nestor.policy import bundle
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problem.rollout import Request
from nestor.problems.inlining_size.builtins import constant
from nestor.problems.inlining_size.summary.decisions import expected_savings
from nestor.problems.inlining_size.summary.program_summary import parse
from nestor.problems.inlining_size.summary_rules import (
    SAVED,
    OnlyCall,
    inline_only_calls,
    leave_inlined_comdats,
    leave_what_stays,
)
from nestor.rollout.local_pool import LocalPool
from tests.conftest import make_corpus
from tests.inlining import PROBLEM

TREES = Path(__file__).parents[3] / "benchmarks" / "data" / "distilled_trees.safetensors"
LIMIT = OnlyCall(bytes=1000, code_size=200)
HOLDS = {
    "callee_uses": 1,
    "program_link_gc": 1,
    "program_callee_calls": 1,
    "program_callee_copies": 1,
    "program_callee_bytes": 1000,
    "callee_code_size": 200,
    "callee_instructions": 230,
    "cost_estimate": 1700,
}
"""What is not 0 where the rule holds just so; beyond the range of the trees."""


@pytest.fixture(scope="module")
def trees() -> TreesPolicy:
    policy = bundle.load(TREES)
    assert isinstance(policy, TreesPolicy)
    return policy


def row(policy: TreesPolicy, values: Mapping[str, float]) -> np.ndarray:
    """Return the least values in the policy's range, but for ``values``."""
    assert policy.range is not None
    least = np.maximum(policy.range[:, 0], 0)
    for name, value in values.items():
        least[policy.features.index(name)] = value
    return least


def inlines(policy: TreesPolicy, values: Mapping[str, float]) -> bool:
    (logit,) = policy.logits(row(policy, values)[None])
    return bool(logit > 0)


def test_without_a_summary_the_answers_are_the_same(trees: TreesPolicy) -> None:
    """In range the logits have the same bits; beyond it the default decides as before."""
    assert trees.range is not None
    policy = inline_only_calls(trees, LIMIT)
    random = np.random.default_rng(0)
    low, high = trees.range[:, 0], np.minimum(trees.range[:, 1], 60)
    x = random.integers(low.astype(int), high.astype(int) + 2, (4000, len(low))).astype(float)
    x[:, [name.startswith("program_") for name in trees.features]] = -1
    before, after = trees.logits(x), policy.logits(x)
    outside = ((x < trees.range[:, 0]) | (x > trees.range[:, 1])).any(axis=1)
    assert outside.any() and not outside.all()
    assert ((before > 0) == (after > 0)).all()
    inside = x.copy()
    inside = np.minimum(inside, trees.range[:, 1])
    assert (trees.logits(inside) == policy.logits(inside)).all()
    assert (policy.logits(inside) > 0).any()


def test_the_rule_needs_all_of_its_conditions(trees: TreesPolicy) -> None:
    policy = inline_only_calls(trees, LIMIT)
    assert not inlines(trees, HOLDS)
    assert inlines(policy, HOLDS)
    wrong = {
        "inlining_default": 1,
        "callee_uses": 2,
        "callee_landing_pads": 1,
        "callee_code_size": 201,
        "program_link_gc": 0,
        "program_callee_calls": 2,
        "program_callee_copies": 2,
        "program_callee_address_taken": 1,
        "program_callee_bytes": 1001,
        "cost_estimate": 3001,
        "caller_is_cold": 1,  # the trees never saw one
    }
    for name, value in wrong.items():
        assert not inlines(policy, HOLDS | {name: value}), name
    for size, cost in ((100, 300), (200, 600), (400, 1200)):
        small = HOLDS | {"program_callee_bytes": size}
        assert inlines(policy, small | {"cost_estimate": cost})
        assert not inlines(policy, small | {"cost_estimate": cost + 1})
    missing = {name: -1 for name in HOLDS if name.startswith("program_")}
    assert not inlines(policy, HOLDS | missing)


def test_other_policies_and_limits_are_refused(trees: TreesPolicy) -> None:
    with pytest.raises(PolicyError, match="where to deviate"):
        inline_only_calls(constant(inline=True), LIMIT)
    with pytest.raises(PolicyError, match="and once"):
        inline_only_calls(inline_only_calls(trees, LIMIT), LIMIT)
    blind = constant(inline=False)
    blind = replace(blind, metadata=replace(blind.metadata, answers="deviation"))
    with pytest.raises(PolicyError, match="needs a policy that reads it"):
        inline_only_calls(blind, LIMIT)
    with pytest.raises(PolicyError, match="at least 1"):
        OnlyCall(bytes=0, code_size=80)


def questions(trees: TreesPolicy) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return random rows within the trees' range, and their columns by name."""
    assert trees.range is not None
    random = np.random.default_rng(0)
    low, high = trees.range[:, 0], np.minimum(trees.range[:, 1], 60)
    x = random.integers(low.astype(int), high.astype(int) + 1, (4000, len(low))).astype(float)
    return x, {name: x[:, index] for index, name in enumerate(trees.features)}


def test_what_stays_is_left_to_the_default(trees: TreesPolicy) -> None:
    """Functions without a COMDAT, where nothing says that the linker drops what is unused."""
    policy = leave_what_stays(trees)
    x, column = questions(trees)
    before, after = trees.logits(x), policy.logits(x)
    stays = (column["program_link_gc"] <= 0) & (column["callee_has_comdat"] == 0)
    assert (after[~stays] == before[~stays]).all() and (before[~stays] > 0).any()
    assert (after[stays] < 0).all() and (before[stays] > 0).any()


def test_comdats_that_the_default_inlines_are_inlined(trees: TreesPolicy) -> None:
    policy = leave_inlined_comdats(trees)
    x, column = questions(trees)
    before, after = trees.logits(x), policy.logits(x)
    inlined = (column["inlining_default"] == 1) & (column["callee_has_comdat"] == 1)
    assert (after[~inlined] == before[~inlined]).all() and (before[~inlined] > 0).any()
    assert (after[inlined] < 0).all() and (before[inlined] > 0).any()


@pytest.mark.parametrize("rule", [leave_what_stays, leave_inlined_comdats])
def test_a_rule_that_leaves_calls_is_added_once(
    trees: TreesPolicy, rule: Callable[[TreesPolicy], TreesPolicy]
) -> None:
    with pytest.raises(PolicyError, match="and once"):
        rule(rule(trees))
    with pytest.raises(PolicyError, match="where to deviate"):
        rule(constant(inline=True))


PARSE = """
int next(int);
int parse(int v) {
  for (int i = 0; i < v; ++i) { if (next(i) > 3) v -= next(v); else v += next(i * v) / 3; }
  for (int i = 9; i < v; ++i) { if (next(i) > 7) v -= next(v); else v += next(i * v) / 7; }
  for (int i = 5; i < v; ++i) { if (next(i) > 5) v -= next(v); else v += next(i * v) / 5; }
  return v ^ next(v);
}
int run(int v) { next(v + 1); return parse(v) + 1; }
"""
NEXT = "int next(int v) { return v * 3 / 2; }"
PARSE_AGAIN = "int parse(int); int next(int v) { return parse(v) * 3 / 2; }"
MAIN = " int run(int); int main(int n, char **v) { return run(n); }"


@pytest.mark.parametrize("calls", [1, 2])
def test_a_linked_program(tmp_path: Path, plugin: Plugin, trees: TreesPolicy, calls: int) -> None:
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
    policies = [NamedPolicy.of(p) for p in (trees, inline_only_calls(trees, LIMIT))]
    sizes = {}
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        build = find_build(PROBLEM, "link")
        for mode, summary in (("gc", False), ("gc", True), ("no-gc", True)):
            settings = EvaluateSettings((mode,), summary=summary)
            found = evaluate(pool, build, corpus.programs, policies, settings)
            assert not any(result.failures for result in found)
            before, after = (result.programs[0].policy for result in found)
            assert before and after
            sizes[mode, summary] = after.columns["linked"] - before.columns["linked"]
        texts = PROBLEM.summaries(pool, corpus.programs, ["gc"])
        requests = [Request(m, DEFAULT, log=True) for m in corpus.modules]
        logs = [done.trajectory for done in pool.run(requests) if done.trajectory]
    assert sizes["gc", False] == sizes["no-gc", True] == 0
    assert (sizes["gc", True] < 0) == (calls == 1)
    (text,) = texts.values()
    trees_save, rule_saves = (
        sum(expected_savings(one.policy, logs, parse(text))) for one in policies if one.policy
    )
    assert rule_saves - trees_save == (SAVED if calls == 1 else 0), "bytes, not the rule's logit"
