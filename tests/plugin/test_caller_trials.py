"""What the compiler says of calls that it inlined in one caller to see, while the callee stays."""

from typing import Any

import numpy as np
import pytest

from nestor.compiler.objects import measure
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problems.inlining_size.summary.program_summary import function_id
from nestor.problems.inlining_size.trial_rules import (
    CallerTrials,
    Limits,
    Worth,
    inline_what_saves,
    inline_where_callers_shrink,
)
from tests.plugin.support import CXX_SOURCE, Workbench, leaf

FEATURES = (
    "inlining_default",
    "caller_instructions",
    "callee_instructions",
    "callee_basic_block_count",
    "callee_calls",
)
# What is left of the callee where the number is known to be large, is less than a call; the
# default's estimate does not know it.
SOURCE = """
extern int sink(const char *, int, int);
int report(const char *what, int v) {
  if (v < 0) { sink(what, -v, 1); return sink(what, v, 3); }
  return v == 7 ? 3 : v * 2 - 1;
}
int first(int v) { return v < 8 ? 0 : report("first", v); }
int second(int v) { return report("second", v) + report("again", v + 3); }
"""


def policy(logit: float, trials: CallerTrials | None = None) -> TreesPolicy:
    return inline_where_callers_shrink(leaf(FEATURES, logit), trials or CallerTrials(saved=1))


def rows(bench: Workbench, source: str, of: TreesPolicy, **more: Any) -> dict[str, Any]:
    """Return what is logged of the last question about each caller."""
    trajectory = bench.compile(source, of, "-nestor-log-names", log=True, **more).trajectory
    return {trajectory.names[int(row["caller"]) & 2**64 - 1]: row for row in trajectory.decisions}


def test_what_is_said_is_what_the_object_comes_to(bench: Workbench) -> None:
    found = rows(bench, SOURCE, policy(-10.0))
    assert found["first"]["caller_trial_saved"] > 0 > found["second"]["caller_trial_saved"]
    assert [int(found[name]["answer"]) for name in ("first", "second")] == [1, 0]
    stock, under = (bench.compile(SOURCE, p) for p in (leaf(FEATURES, -10.0), policy(-10.0)))
    saved = measure(stock.object).loadable - measure(under.object).loadable
    assert abs(saved - int(found["first"]["caller_trial_saved"])) <= 8


def test_only_what_the_trees_expect_little_of_is_tried(bench: Workbench) -> None:
    for logit, tries in ((-31.0, False), (-29.0, True), (1.0, False)):
        found = rows(bench, SOURCE, policy(logit))
        assert all(bool(row["caller_trial_bytes"]) == tries for row in found.values()), logit
        assert found["first"]["answer"] == (logit > -30)


def test_limits(bench: Workbench) -> None:
    straight = SOURCE.replace("if (v < 0) {", "{").replace("return v == 7 ? 3 : v * 2 - 1;", "")
    for source in (
        straight,
        SOURCE.replace("int v) { return", "int v) {" + "sink(0, v, 1);" * 999),
    ):
        assert not any(
            row["caller_trial_bytes"] for row in rows(bench, source, policy(-9.0)).values()
        )


def test_a_function_whose_address_is_in_a_table(bench: Workbench) -> None:
    """What the table holds is copied for the trial, and has no body there when it is inlined."""
    source = SOURCE.replace(
        "int first(int v) { return",
        """
    static int (*const table[2])(const char *, int) = {report, report};
    int first(int v) { return table[v & 1]("table", v) +""",
    )
    found = rows(bench, source, policy(-10.0))
    assert found["first"]["caller_trial_bytes"] > 0
    bench.compile(source, policy(-10.0))


def test_a_function_that_calls_itself_is_not_tried(bench: Workbench) -> None:
    source = SOURCE.replace("sink(what, v, 3)", "report(what, v + 1) * report(what, v - 1)")
    assert not any(row["caller_trial_bytes"] for row in rows(bench, source, policy(-10.0)).values())


def test_what_settles_it_is_tried_first(bench: Workbench) -> None:
    """A function that goes away is tried in all of its callers, and no more is asked then."""
    source = SOURCE.replace("int report", "static int report")
    both = inline_where_callers_shrink(
        inline_what_saves(leaf(FEATURES, -10.0), Worth(8, 10), with_summary=False), CallerTrials()
    )
    found = rows(bench, source, both)
    assert all(row["trial_bytes"] and row["trial_saved"] < 0 for row in found.values())
    assert not any(row["caller_trial_bytes"] for row in found.values())


def test_no_policy_makes_a_compile_endless(bench: Workbench) -> None:
    """Of many functions in one large caller the last are not tried any more."""
    names = [f"f{number}" for number in range(120)]
    source = "extern int sink(const char *, int, int);\n" + "".join(
        f'int {name}(int v) {{ if (v < {i}) return sink("{name}", v, {i}); return v * {i + 2}; }}\n'
        for i, name in enumerate(names)
    )
    body = "sink(0, v, 1); " * 300 + " + ".join(["return 0", *(f"{name}(v)" for name in names)])
    source += f"int all(int v) {{ {body}; }}\n"
    trajectory = bench.compile(source, policy(-10.0), log=True).trajectory
    tried = trajectory.decisions["caller_trial_bytes"] > 0
    assert tried[:20].all() and not tried[-20:].any()


CHAIN = """
extern int sink(int, int);
static int inner(int v) {
  if (v < 0) return sink(v, 1) * sink(v, 2) - sink(v, 3) / 3;
  return v * 2;
}
int outer(int v) { return inner(v) - inner(v + 1) * 3; }
int first(int v) { return v < 8 ? 0 : outer(v); }
int second(int v) { return v < 9 ? 1 : outer(v) * 3; }
"""


def test_another_caller_is_another_chance(bench: Workbench) -> None:
    """``inner`` costs bytes in ``outer``, and none where ``outer`` was inlined with a constant."""
    overrides = f"nestor-overrides 1\ncallee {function_id('outer'):016x} inline\n"
    of = inline_what_saves(
        leaf(FEATURES, -10.0), Worth(1, 0), with_summary=False, limits=Limits(8, 100, 600)
    )
    trajectory = bench.compile(
        CHAIN, of, "-nestor-log-names", log=True, overrides=overrides
    ).trajectory
    inner = np.uint64(function_id("inner", "unit.c")).astype(np.int64)
    said = [int(row["trial_saved"]) for row in trajectory.decisions if row["callee"] == inner]
    assert len(said) >= 3 and len(set(said)) > 1


@pytest.mark.parametrize(("source", "name"), [(SOURCE, "unit.c"), (CXX_SOURCE, "unit.cpp")])
def test_objects_do_not_depend_on_the_log(bench: Workbench, source: str, name: str) -> None:
    path = bench.save(policy(-10.0))
    lean = bench.compile(source, path, name=name)
    for options in ((), (f"-nestor-log-for={path}",)):
        assert bench.compile(source, path, *options, name=name, log=True).bytes == lean.bytes


def test_the_rule_is_added_once() -> None:
    with pytest.raises(PolicyError, match="and once"):
        inline_where_callers_shrink(policy(-10.0), CallerTrials())
