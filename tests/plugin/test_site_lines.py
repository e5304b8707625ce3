"""A site's line answers for the copies of the call, unless another line names the copy."""

from collections.abc import Sequence

import numpy as np
import pytest

from nestor.problem.trajectory import Trajectory
from tests.plugin.support import ALWAYS, NEVER, Result, Workbench

HEAD = "nestor-overrides 1\n"

# Three destructors that call one another, as in the C++ that first showed the fault: what is kept
# in ~C is asked again in each function that ~C is inlined into.
CHAIN = """
extern "C" void sink(int);
struct A { int a; ~A() { sink(a); } };
struct B { A x; int b; ~B() { sink(b); } };
struct C { B x; int c; ~C() { sink(c); } };
int one(int v) { C c{{{v}, v}, v}; sink(v); return v; }
int two(int v) { C c{{{v}, v}, v + 1}; sink(v + 1); return v; }
"""
A, B, C, ONE, TWO = "_ZN1AD2Ev", "_ZN1BD2Ev", "_ZN1CD2Ev", "_Z3onei", "_Z3twoi"


def compile_chain(bench: Workbench, lines: Sequence[str] = ()) -> Result:
    text = HEAD + "".join(f"{line}\n" for line in lines)
    return bench.compile(
        CHAIN, ALWAYS, "-nestor-log-names", overrides=text, log=True, name="unit.cpp"
    )


def rows(trajectory: Trajectory, callee: str, *callers: str) -> list[tuple[str, int, str]]:
    """Return key, answer and original of the sites of ``callee`` in ``callers``."""
    names, found = trajectory.names, []
    for row in trajectory.decisions:
        key, caller, to, original = (
            int(row[n]) % 2**64 for n in ("site", "caller", "callee", "copy_of")
        )
        if names[to] == callee and names[caller] in callers:
            found.append((f"{key:016x}", int(row["answer"]), f"{original:016x}"))
    return found


def site(bench: Workbench, caller: str, callee: str) -> str:
    ((key, answer, original),) = rows(compile_chain(bench).trajectory, callee, caller)
    assert (answer, original) == (1, f"{0:016x}")
    return key


def test_a_kept_call_stays_kept_where_its_function_is_inlined(bench: Workbench) -> None:
    key = site(bench, C, B)
    before, after = compile_chain(bench), compile_chain(bench, [f"site {key} keep"])
    assert rows(before.trajectory, B, ONE, TWO) == []
    copies = rows(after.trajectory, B, ONE, TWO)
    assert len(copies) >= 2
    assert {(answer, original) for _, answer, original in copies} == {(0, key)}
    assert after.bytes != before.bytes
    assert B.encode() in after.bytes
    lean = bench.compile(CHAIN, ALWAYS, overrides=f"{HEAD}site {key} keep\n", name="unit.cpp")
    assert lean.bytes == after.bytes


def test_all_lines_of_a_chain_keep_the_whole_chain(bench: Workbench) -> None:
    lines = [f"site {site(bench, C, B)} keep", f"site {site(bench, B, A)} keep"]
    trajectory = compile_chain(bench, lines).trajectory
    calls = rows(trajectory, A, A, B, C, ONE, TWO) + rows(trajectory, B, A, B, C, ONE, TWO)
    assert {answer for _, answer, _ in calls} == {0}
    assert all(row["overridden"] for row in trajectory.decisions if not row["answer"])


def test_a_copy_that_a_line_names_goes_its_own_way(bench: Workbench) -> None:
    key = site(bench, C, B)
    copy, *others = rows(compile_chain(bench, [f"site {key} keep"]).trajectory, B, ONE)
    lines = [f"site {key} keep", f"site {copy[0]} inline"]
    after = compile_chain(bench, lines)
    answers = dict(row[:2] for row in rows(after.trajectory, B, ONE, TWO))
    assert answers.pop(copy[0]) == 1
    assert set(answers.values()) == {0}
    assert answers.keys() >= {row[0] for row in others}
    # A copy of the copy follows the nearest line: the calls of ~B that came with it.
    assert after.bytes != compile_chain(bench, lines[:1]).bytes


def test_a_line_for_one_site_only_leaves_its_copies_to_the_policy(bench: Workbench) -> None:
    key = site(bench, C, B)
    trajectory = compile_chain(bench, [f"site-only {key} keep"]).trajectory
    assert [row[1] for row in rows(trajectory, B, C)] == [0]
    copies = rows(trajectory, B, ONE, TWO)
    assert copies
    assert {answer for _, answer, _ in copies} == {1}
    assert int(trajectory.decisions["overridden"].sum()) == 1
    both = compile_chain(bench, [f"site-only {key} inline", f"site {key} keep"]).trajectory
    assert [row[1] for row in rows(both, B, C)] == [1]


@pytest.mark.parametrize("policy", [ALWAYS, NEVER], ids=["always", "never"])
def test_every_original_was_asked_about_before(bench: Workbench, policy: object) -> None:
    """So the keys of a log are all keys that can have a line that matches."""
    assert policy in (ALWAYS, NEVER)
    key = site(bench, C, B)
    trajectory = bench.compile(
        CHAIN, policy, overrides=f"{HEAD}site {key} keep\n", log=True, name="unit.cpp"
    ).trajectory
    sites, originals = (trajectory.decisions[n].tolist() for n in ("site", "copy_of"))
    assert all(o == 0 or o in sites[:i] for i, o in enumerate(originals))
    assert (np.array(originals) != 0).any() == (policy is ALWAYS)
