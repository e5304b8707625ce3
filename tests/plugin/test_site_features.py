"""The features that LLVM's advisor lacks: what they say, and that both advisors say the same."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.objects import measure
from nestor.corpus.model import Corpus
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.network import LogNormalisation, build, initial_layers
from nestor.policy.spec import Policy
from nestor.problem.rollout import Request
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.features.site import IN_CALLER, SITE_FEATURES
from nestor.problems.inlining_size.problem import PROBLEM
from nestor.problems.inlining_size.summary.object_uses import summarise
from nestor.problems.inlining_size.summary.program_summary import function_id
from nestor.rollout.local_pool import LocalPool, PoolSettings
from tests.plugin.support import ALWAYS, CXX_SOURCE, NEVER, SOURCE, Workbench, random_forest

PROFILE = ("call_hotness", "call_profile_share")

MANDATORY = """
extern int sink(int);
__attribute__((always_inline)) static inline int must(int v) { return sink(v) + sink(-v); }
static int middle(int v) { for (int i = 0; i < v; ++i) sink(i * v); return must(v); }
int first(int v) { return must(v) + middle(v) + must(v + 1); }
int second(int v) { return middle(must(v)) + middle(v); }
"""
SOURCES = {
    "c": (SOURCE, "unit.c", ["-Oz"]),
    "c -g": (SOURCE, "unit.c", ["-Oz", "-g"]),
    "mandatory": (MANDATORY, "unit.c", ["-Oz"]),
    "c++": (CXX_SOURCE, "unit.cpp", ["-Oz"]),
    "c++ -g": (CXX_SOURCE, "unit.cpp", ["-Oz", "-g"]),
}


def own(trajectory: Trajectory) -> tuple[str, ...]:
    features = trajectory.features
    return features[features.index(SITE_FEATURES[0]) :]


def rows(bench: Workbench, source: str, **options: str) -> dict[str, list[dict[str, int]]]:
    """What was logged under the policy that keeps all calls, by callee."""
    result = bench.compile(
        source, NEVER, "-nestor-log-names", log=True, flags=("-Oz", "-fexceptions"), **options
    )
    found: dict[str, list[dict[str, int]]] = {}
    trajectory = result.trajectory
    for row in trajectory.decisions:
        values = {name: int(row[name]) for name in trajectory.features}
        found.setdefault(trajectory.names[int(row["callee"]) & 2**64 - 1], []).append(values)
    return found


def test_names_are_new_and_all_are_logged(bench: Workbench) -> None:
    trajectory = bench.compile(SOURCE, "default", log=True).trajectory
    assert len(set(trajectory.features)) == len(trajectory.features)
    assert own(trajectory) == SITE_FEATURES


FACTS = """
extern int sink(int);
extern void escape(int *);
extern void fail(int) __attribute__((noreturn));
static int once(int v) { return v ? sink(v) : 7; }
static int taken(int v) { sink(v); return sink(v + 1) * 3; }
int (*pointer)(int) = taken;
__attribute__((cold)) static void report(int v) { sink(v); fail(v); }
static int choose(int mode, int v) {
  switch (mode) { case 1: return sink(v); case 2: return sink(-v) + v; case 3: return 9; }
  if (mode > 10) sink(mode);
  return v;
}
static int fill(int *p, int v) { p[0] = v; p[1] = sink(v); return p[v & 1]; }
int open_to_all(int v) { return sink(v) - 1; }
int caller(int v) {
  int local[2];
  if (v == 42) report(v);
  fill(local, v);
  escape(local);
  taken(v);
  return once(v) + choose(2, v) + choose(v, 3) + open_to_all(v) + open_to_all(v + 1);
}
"""


def test_values(bench: Workbench) -> None:
    found = rows(bench, FACTS)
    (once,), (taken,), (report,), (fill,) = (found[n] for n in ("once", "taken", "report", "fill"))
    assert {once[n] for n in ("callee_is_local", "callee_is_discardable")} == {1}
    assert (once["callee_uses"], once["callee_call_uses"], once["callee_disappears"]) == (1, 1, 1)
    assert once["callee_address_taken"] == once["callee_has_comdat"] == 0
    assert once["callee_calls"] == 1
    assert once["callee_is_leaf"] == once["callee_invokes"] == once["callee_allocas"] == 0
    assert once["callee_instructions"] >= 4
    assert 0 < once["callee_code_size"] <= once["callee_instructions"]
    assert once["callee_arguments"] == once["call_arguments"] == 1
    assert once["call_result_used"] == once["callee_may_throw"] == once["caller_may_throw"] == 1
    assert once["callee_is_cold"] == once["call_in_cold_block"] == once["call_is_invoke"] == 0
    assert once["caller_is_local"] == once["caller_is_discardable"] == once["caller_call_uses"] == 0
    assert once["caller_instructions"] > once["callee_instructions"]
    assert once["calls_to_callee_in_caller"] == 1
    assert once["constant_argument_branches"] == once["pointer_to_alloca_arguments"] == 0

    assert (taken["callee_uses"], taken["callee_call_uses"]) == (2, 1)
    assert (taken["callee_address_taken"], taken["callee_disappears"]) == (1, 0)
    assert (taken["call_result_used"], taken["callee_calls"]) == (0, 2)

    assert (report["callee_is_cold"], report["call_in_cold_block"]) == (1, 1)
    assert report["callee_returns"] == 0

    assert (fill["pointer_to_alloca_arguments"], fill["callee_stores"]) == (1, 2)
    assert (fill["callee_loads"], fill["callee_arguments"]) == (1, 2)

    by_branches = sorted(found["choose"], key=lambda row: row["constant_argument_branches"])
    assert [row["constant_argument_branches"] > 1 for row in by_branches] == [False, True]
    for row in found["open_to_all"]:
        assert row["callee_is_local"] == row["callee_is_discardable"] == 0
        assert row["callee_disappears"] == 0
        assert row["calls_to_callee_in_caller"] == row["callee_call_uses"] == 2


def test_exceptions_and_comdats(bench: Workbench) -> None:
    source = """
    struct Guard { ~Guard(); };
    int sink(int);
    inline int shared(int v) { Guard g; return sink(v) + sink(v + 1); }
    int f(int v) { Guard g; return shared(v); }
    """
    result = bench.compile(source, NEVER, "-nestor-log-names", log=True, name="unit.cpp")
    trajectory = result.trajectory
    (row,) = trajectory.decisions
    assert row["callee_has_comdat"] == row["callee_is_discardable"] == row["call_is_invoke"] == 1
    assert row["callee_invokes"] == 2
    assert row["callee_landing_pads"] == row["caller_landing_pads"] == 1
    assert row["callee_is_local"] == 0


def test_values_are_those_of_the_moment(bench: Workbench) -> None:
    """An answer changes what the next question sees."""
    source = """
    extern int sink(int);
    static int helper(int v) { return sink(v) ^ sink(v * 3) ^ sink(v * 5); }
    int f(int v) { return helper(v) + helper(v + 1) + helper(v + 2); }
    """
    records = bench.compile(source, ALWAYS, log=True).trajectory.decisions
    assert records["callee_uses"].tolist() == [3, 2, 1]
    assert records["callee_disappears"].tolist() == [0, 0, 1]
    assert records["calls_to_callee_in_caller"].tolist() == [3, 2, 1]
    assert (np.diff(records["caller_calls"]) == 2).all()
    assert (np.diff(records["caller_instructions"]) > 0).all()


def test_inlining_that_nobody_decides_counts_too(bench: Workbench) -> None:
    source = """
    extern int sink(int);
    static int may(int v) { return sink(v) + sink(v * 3); }
    __attribute__((always_inline)) static inline int must(int v) { return may(v) - sink(v); }
    int f(int v) { return must(v) + may(v + 1) + must(v + 2); }
    """
    records = bench.compile(source, NEVER, log=True).trajectory.decisions
    in_f = records[records["caller_calls"] > 3]
    assert in_f["callee_uses"].max() >= 3
    assert in_f["calls_to_callee_in_caller"].max() == 3


@pytest.mark.parametrize("kind", SOURCES)
def test_both_advisors_agree(bench: Workbench, kind: str) -> None:
    source, name, flags = SOURCES[kind]
    logs = [bench.compile(source, p, log=True, name=name, flags=flags) for p in ("default", NEVER)]
    names = own(logs[0].trajectory)
    seen = np.concatenate([log.trajectory.rows(names) for log in logs])
    known = np.quantile(seen, [0.05, 0.95], axis=0).T
    count = len(names)
    network = build(
        names,
        "decision",
        LogNormalisation(np.full(count, 1.5), np.full(count, 0.5)),
        initial_layers((count, 12, 1), np.random.default_rng(1)),
        problem="inlining-size",
    )
    policies: list[Policy] = [
        network,
        random_forest(names, seen, 1),
        random_forest(names, seen, 2, "deviation"),
        random_forest(names, seen, 3, "deviation", known),
    ]
    for policy in policies:
        full = bench.compile(source, policy, log=True, name=name, flags=flags)
        lean = bench.compile(source, policy, name=name, flags=flags)
        assert lean.bytes == full.bytes
        records, x = full.trajectory.decisions, full.trajectory.rows(names)
        assert (policy.logits(x) == records["logit"]).all()
        default = records["inlining_default"].astype(bool)
        decisions = policy.answer(x, default)
        assert decisions.tolist() == records["answer"].astype(bool).tolist()


def test_beyond_its_range_a_policy_is_not_asked(bench: Workbench) -> None:
    """Nor is it sampled from."""
    names = ("callee_instructions", "cost_estimate")
    seen = bench.compile(SOURCE, "default", log=True).trajectory.rows(names)
    nowhere = random_forest(names, seen, 4, "deviation", np.array([[-9.0, -8.0], [-1e9, 1e9]]))
    stock = bench.compile(SOURCE).bytes
    for options in ((), ("-nestor-seed=3",)):
        result = bench.compile(SOURCE, nowhere, *options, log=True)
        records = result.trajectory.decisions
        assert (records["answer"] == records["inlining_default"]).all()
        assert not records["logit"].any()
        assert not records["log_probability"].any()
        assert result.bytes == bench.compile(SOURCE, nowhere, *options).bytes == stock


def test_without_a_program_or_profile_values_are_missing(bench: Workbench) -> None:
    trajectory = bench.compile(SOURCE, "default", log=True).trajectory
    missing = [n for n in own(trajectory) if n.startswith("program_") or n in PROFILE]
    assert len(missing) == 10
    assert (trajectory.rows(missing) == -1).all()
    assert (trajectory.rows([n for n in SITE_FEATURES if n not in missing]) >= 0).all()


def program(**functions: str) -> str:
    lines = [f"function {function_id(n):016x} {use}" for n, use in functions.items()]
    return "\n".join(["nestor-program 1", "link gc", *lines, ""])


def test_values_of_the_program(bench: Workbench) -> None:
    local = function_id("once", "somewhere/unit.c")
    text = program(open_to_all="3 58 7 2 1", caller="1 99 5 0 0")
    text += f"function {local:016x} 1 20 2 0 0\n"
    found = rows(bench, FACTS, program=text)
    for row in found["open_to_all"]:
        callee = [row[f"program_callee_{n}"] for n in ("copies", "bytes", "calls", "users")]
        assert callee == [3, 58, 7, 2]
        assert row["program_callee_address_taken"] == 1
        assert (row["program_caller_copies"], row["program_caller_calls"]) == (1, 5)
        assert row["program_link_gc"] == 1
    assert found["once"][0]["program_callee_bytes"] == 20
    assert found["fill"][0]["program_callee_copies"] == -1
    assert found["fill"][0]["program_link_gc"] == 1


def test_a_program_alone_changes_nothing(bench: Workbench) -> None:
    stock = bench.compile(FACTS).bytes
    for policy in ("", "default"):
        assert bench.compile(FACTS, policy, program=program(once="1 1 1 1 0")).bytes == stock
    full = bench.compile(FACTS, "default", program=program(once="1 1 1 1 0"), log=True)
    assert full.bytes == stock


PROFILED = """
declare i32 @sink(i32)
define internal i32 @hot(i32 %v) !prof !1 {
  %r = call i32 @sink(i32 %v)
  %s = call i32 @sink(i32 %r)
  ret i32 %s
}
define internal i32 @cold(i32 %v) !prof !2 {
  %r = call i32 @sink(i32 %v)
  %s = call i32 @sink(i32 %r)
  ret i32 %s
}
define i32 @f(i32 %v) !prof !1 {
  %c = icmp eq i32 %v, 7
  br i1 %c, label %seldom, label %often, !prof !3
seldom:
  %a = call i32 @cold(i32 %v)
  ret i32 %a
often:
  %b = call i32 @hot(i32 %v)
  %d = call i32 @hot(i32 %b)
  ret i32 %d
}
!llvm.module.flags = !{!4}
!1 = !{!"function_entry_count", i64 100000}
!2 = !{!"function_entry_count", i64 0}
!3 = !{!"branch_weights", i32 0, i32 100000}
!4 = !{i32 1, !"ProfileSummary", !5}
!5 = !{!6, !7, !8, !9, !10, !11, !12, !13}
!6 = !{!"ProfileFormat", !"InstrProf"}
!7 = !{!"TotalCount", i64 200000}
!8 = !{!"MaxCount", i64 100000}
!9 = !{!"MaxInternalCount", i64 100000}
!10 = !{!"MaxFunctionCount", i64 100000}
!11 = !{!"NumCounts", i64 4}
!12 = !{!"NumFunctions", i64 3}
!13 = !{!"DetailedSummary", !14}
!14 = !{!15, !16, !17}
!15 = !{i32 10000, i64 100000, i32 1}
!16 = !{i32 990000, i64 50000, i32 2}
!17 = !{i32 999999, i64 2, i32 3}
"""


def test_hotness_with_a_profile(bench: Workbench) -> None:
    result = bench.compile(PROFILED, NEVER, "-nestor-log-names", log=True, name="unit.ll")
    trajectory = result.trajectory
    hotness = {
        trajectory.names[int(r["callee"]) & 2**64 - 1]: int(r["call_hotness"])
        for r in trajectory.decisions
    }
    assert hotness == {"hot": 2, "cold": 0}
    policy = random_forest(PROFILE, np.array([[0.0, 0.0], [1.0, 5e8]]), 7)
    full = bench.compile(PROFILED, policy, log=True, name="unit.ll")
    assert bench.compile(PROFILED, policy, name="unit.ll").bytes == full.bytes


@pytest.mark.corpus
def test_agreement_on_a_program_of_the_corpus(bench: Workbench, tiny_corpus: Corpus) -> None:
    """Both advisors, the summary of the stock objects, and the ids that it is made of."""
    program = next(p for p in tiny_corpus.programs if p.project == "jsoncpp")
    modules = [tiny_corpus.module(name) for name in program.modules]
    largest = max(modules, key=lambda m: tiny_corpus.bitcode(m).stat().st_size)
    with LocalPool(PROBLEM, tiny_corpus, bench.plugin, PoolSettings(jobs=2)) as pool:

        def objects(*requests: Request) -> list[Path]:
            found = pool.run(requests)
            assert all(one.ok for one in found), [one.failure for one in found]
            return [pool.objects.path(one.object or "") for one in found]

        stock = objects(*(Request(module, keep=True) for module in modules))
        summary = summarise(stock, "gc").to_text()
        (default,) = pool.run([Request(largest, DEFAULT, log=True, summary=summary)])
        seen = default.trajectory
        assert seen is not None, default.failure
        # Trees at random would ask for trials in each caller, until no more are made.
        names = [name for name in own(seen) if name not in IN_CALLER]
        x = seen.rows(names)
        missing = {n for n, column in zip(names, x.T, strict=True) if (column == -1).all()}
        assert missing == {*PROFILE}
        known = np.quantile(x, [0.02, 0.98], axis=0).T
        for policy in (
            random_forest(names, x, 5),  # LLVM 22 itself ends in a crash under some policies
            random_forest(names, x, 2, "deviation"),
            random_forest(names, x, 3, "deviation", known),
        ):
            named = NamedPolicy.of(policy)
            request = Request(largest, named, summary=summary, keep=True)
            lean, full = pool.run([request, replace(request, log=True)])
            log = full.trajectory
            assert lean.ok and log is not None, (lean.failure, full.failure)
            own_object, logged_object = (pool.objects.path(r.object or "") for r in (lean, full))
            assert own_object.read_bytes() == logged_object.read_bytes()
            assert (policy.logits(log.rows(names)) == log.decisions["logit"]).all()
            assert measure(own_object).text > 0
