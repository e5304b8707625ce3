"""What the compiler says of functions whose calls it inlined to see, and that it is true."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.compiler.objects import measure
from nestor.policy.branches import Split, one_tree
from nestor.policy.trees import TreesPolicy
from nestor.problems.inlining_size.summary.program_summary import function_id
from nestor.problems.inlining_size.trial_rules import (
    ALL_SAVED,
    Worth,
    inline_what_saves,
    watch_trials,
)
from tests.plugin.support import CXX_SOURCE, SOURCE, Workbench, leaf
from tests.plugin.test_call_frequencies import LOOPS
from tests.plugin.test_site_features import FACTS, MANDATORY

SMALL = """
extern int sink(const char *, int, int);
static int report(const char *what, int v) { return sink(what, v, 3) + sink(what, v, 4); }
static int large(int v) {
  for (int i = 0; i < v; ++i) { sink("a", i, v); sink("b", v - i, 2); sink("c", i * v, i); }
  return sink("d", v, v) * 3;
}
int first(int v) { return v > 7 ? report("first", v) : report("else", 7); }
int second(int v) { return large(v) + large(v * 3) + 1; }
"""
OPEN = SMALL.replace("static ", "")
USED_HERE = (
    "nestor-program 1\nlink gc\n"
    f"function {function_id('report'):016x} 1 60 2 0 0\n"
    f"function {function_id('large'):016x} 1 90 2 0 0\n"
)


FEATURES = (
    "inlining_default",
    "cost_estimate",
    "program_link_gc",
    "program_callee_bytes",
    "callee_uses",
    "callee_instructions",
    "caller_instructions",
)
KEEPS = leaf(FEATURES, -1.0)


def watching(policy: TreesPolicy = KEEPS, *, with_summary: bool = False) -> TreesPolicy:
    return watch_trials(policy, with_summary=with_summary)


def said(bench: Workbench, source: str, policy: TreesPolicy, **more: Any) -> dict[str, int]:
    """Return what trials saved, by callee, under a policy that reads them."""
    options = ("-nestor-log-names", *more.pop("options", ()))
    result = bench.compile(source, policy, *options, log=True, **more)
    trajectory = result.trajectory
    return {
        trajectory.names[int(row["callee"]) & 2**64 - 1]: int(row["trial_saved"])
        for row in trajectory.decisions
        if row["trial_bytes"]
    }


def test_what_is_said_is_what_the_object_comes_to(bench: Workbench) -> None:
    found = said(bench, SMALL, watching())
    assert set(found) == {"report", "large"}
    assert found["report"] != 0 and found["large"] < 0
    before = measure(bench.compile(SMALL, watching()).object).loadable
    for name, saved in found.items():
        overrides = f"nestor-overrides 1\ncallee {function_id(name, 'unit.c'):016x} inline\n"
        after = bench.compile(SMALL, watching(), overrides=overrides)
        assert abs(before - measure(after.object).loadable - saved) <= 8, name


def test_the_policy_goes_by_it(bench: Workbench) -> None:
    source = (
        "extern int sink(int);\nstatic int f(int v) { return sink(v * 3) - sink(v) * v; }\n"
        + ("int g(int v) { return f(1); }\nint h(int v) { return f(2); }\n")
    )
    rule = inline_what_saves(KEEPS, Worth(1, 0), with_summary=False)
    (saved,) = said(bench, source, rule).values()
    never, under = (bench.compile(source, p, log=True) for p in (watching(), rule))
    answers = under.trajectory.decisions["answer"]
    assert len(answers) == 2
    assert answers.tolist() == [int(saved >= 1)] * 2
    assert measure(under.object).loadable <= measure(never.object).loadable


def test_only_what_goes_away_is_tried(bench: Workbench) -> None:
    policy = watching()
    assert said(bench, OPEN, policy) == {}
    assert set(said(bench, OPEN, policy, program=USED_HERE)) == {"report", "large"}
    for wrong in (
        USED_HERE.replace("link gc", "link no-gc"),
        USED_HERE.replace(" 1 60 2 0 0", " 2 60 2 0 0").replace(" 1 90 2 0 0", " 1 90 2 1 0"),
        USED_HERE.replace(" 0\n", " 1\n"),
    ):
        assert said(bench, OPEN, policy, program=wrong) == {}
    taken = SMALL + "int (*kept[2])() = {(int (*)())report, (int (*)())large};\n"
    assert said(bench, taken, policy) == {}


def test_the_only_call_needs_no_trial(bench: Workbench) -> None:
    source = OPEN.replace(" + large(v * 3)", "")
    rule = inline_what_saves(KEEPS, Worth(int(ALL_SAVED), 0), with_summary=True)
    large = function_id("large")
    keep = f"nestor-overrides 1\ncallee {large:016x} keep\n"
    for expected, options in (
        (1, {"program": USED_HERE}),
        (0, {}),
        (0, {"program": USED_HERE.replace(" 1 90", " 2 90")}),
        (0, {"program": USED_HERE, "overrides": keep}),
    ):
        rows = bench.compile(source, rule, log=True, **options).trajectory.decisions
        (row,) = rows[rows["callee"] == np.uint64(large).astype(np.int64)]
        assert row["answer"] == expected and not row["trial_bytes"], options
        assert row["trial_calls"] == (options.get("program") == USED_HERE), options


def test_limits(bench: Workbench) -> None:
    body = "extern int sink(int);\nstatic int f(int v) { return sink(-v) - 1; }\n"

    def calls(number: int) -> str:
        return body + "".join(f"int g{i}(int v) {{ return f(v + {i}); }}\n" for i in range(number))

    policy = watching()
    assert set(said(bench, calls(8), policy)) == {"f"}
    assert said(bench, calls(9), policy) == {}
    longer = calls(8).replace("sink(-v)", "sink(v) - sink(-v)")
    assert said(bench, longer, policy) == {}
    many = "int large(int v) {" + "sink(v);" * 600 + " return f(v) + f(-v); }\n"
    assert said(bench, body + many, policy) == {}


def test_back_and_forth_is_not_tried(bench: Workbench) -> None:
    source = """
    extern int sink(int);
    int up(int);
    static int down(int v) { return v > 3 ? up(v - 1) + sink(v) : sink(-v); }
    int up(int v) { sink(v); return down(v + 1) * down(v); }
    """
    assert "down" not in said(bench, source, watching())


def test_nothing_is_tried_where_trees_answer(bench: Workbench) -> None:
    always = watching(leaf(FEATURES, 1.0))
    assert said(bench, SMALL, always) == {}
    with_summary = watching(with_summary=True)
    assert said(bench, SMALL, with_summary) == {}
    assert set(said(bench, SMALL, with_summary, program=USED_HERE)) == {"report", "large"}
    reads_none = bench.compile(SMALL, KEEPS, log=True).trajectory.decisions
    assert not reads_none["trial_bytes"].any() and not reads_none["trial_saved"].any()


def test_an_override_is_not_tried(bench: Workbench) -> None:
    overrides = f"nestor-overrides 1\ncallee {function_id('report', 'unit.c'):016x} keep\n"
    result = bench.compile(SMALL, watching(), log=True, overrides=overrides)
    rows = result.trajectory.decisions
    assert not rows[rows["overridden"] == 1]["trial_bytes"].any()
    assert rows[rows["overridden"] == 0]["trial_bytes"].any()


@pytest.mark.parametrize("flags", [("-Oz",), ("-Oz", "-g"), ("-Os", "-fPIC"), ("-Oz", "-m32")])
@pytest.mark.parametrize(
    ("source", "name"),
    [*((s, "unit.c") for s in (SMALL, SOURCE, LOOPS, FACTS, MANDATORY)), (CXX_SOURCE, "unit.cpp")],
)
def test_objects_do_not_depend_on_the_log(
    bench: Workbench, source: str, name: str, flags: tuple[str, ...]
) -> None:
    if "-m32" in flags and name.endswith("cpp"):
        pytest.skip("needs C++ headers for 32 bits")
    problem = "inlining-size-os" if "-Os" in flags else "inlining-size"
    path = bench.save(
        inline_what_saves(leaf(FEATURES, -1.0, problem), Worth(1, 0), with_summary=False)
    )
    lean = bench.compile(source, path, name=name, flags=flags)
    for options in ((), (f"-nestor-log-for={path}",)):
        full = bench.compile(source, path, *options, name=name, flags=flags, log=True)
        assert full.bytes == lean.bytes
        assert full.stderr == lean.stderr
    again = bench.compile(source, path, name=name, flags=flags)
    assert again.bytes == lean.bytes


def test_debug_information_changes_nothing(bench: Workbench) -> None:
    plain, debug = (
        said(bench, SMALL, watching(), flags=flags) for flags in (("-Oz",), ("-Oz", "-g"))
    )
    assert plain == debug


def test_nothing_of_it_is_heard(bench: Workbench) -> None:
    """Remarks and warnings of the back end are those of the functions, once."""
    flags = ("-Oz", "-Rpass=.*", "-Rpass-missed=.*", "-Wframe-larger-than=1")
    quiet, tried = (bench.compile(SMALL, p, flags=flags) for p in (KEEPS, watching()))
    assert tried.bytes == quiet.bytes
    assert "remark" in quiet.stderr
    assert tried.stderr == quiet.stderr


def test_inline_assembly_that_no_assembler_takes(bench: Workbench) -> None:
    source = SMALL.replace(
        "return sink(what, v, 3)", '__asm__("no such thing"); return sink(what, v, 3)'
    )
    results = [bench.compile(source, policy) for policy in (KEEPS, watching())]
    assert all(result.returncode == 1 for result in results)
    assert results[0].stderr == results[1].stderr


def test_other_targets(bench: Workbench) -> None:
    """Numbers of another processor's ELF; nothing where objects are not ELF."""
    flags = ("-Oz", "--target=aarch64-linux-gnu")
    assert set(said(bench, SMALL, watching(), flags=flags)) == {"report", "large"}
    mac = ("-Oz", "--target=x86_64-apple-macos")
    assert said(bench, SMALL, watching(), flags=mac) == {}


def test_a_rule_about_trials_is_a_tree() -> None:
    """A rule over further features leaves the others' columns where they were."""
    rule = inline_what_saves(KEEPS, Worth(8, 10), with_summary=True)
    assert rule.features[:-5] == FEATURES
    row = np.zeros(len(rule.features))
    row[rule.features.index("program_link_gc")] = 1
    row[-5:] = 2, 30, 600, 8, 10
    assert rule.logits(row[None])[0] > 0
    assert one_tree(rule, Split("trial_saved", 0.5, 0.0, 1.0)).logits(row[None])[0] == 1


def kept(folder: Path) -> dict[str, list[str]]:
    return {path.name: path.read_text().splitlines() for path in folder.iterdir()}


def test_what_is_kept_is_not_compiled_again(bench: Workbench, tmp_path: Path) -> None:
    policy, folder = watching(), tmp_path / "new" / "trials"
    option = f"-nestor-trials={folder}"
    plain = bench.compile(SMALL, policy).bytes
    assert bench.compile(SMALL, policy, option).bytes == plain
    ((name, lines),) = kept(folder).items()
    assert name.endswith(".trials") and len(lines) == 3
    assert bench.compile(SMALL, policy, option).bytes == plain
    assert kept(folder) == {name: lines}
    # The file is believed: with other results it decides otherwise.
    header, *trials = lines
    (folder / name).write_text("\n".join([header, *(f"{t[:33]} 99 7 3" for t in trials)]) + "\n")
    found = said(bench, SMALL, policy, options=(option,))
    assert set(found.values()) == {7}


@pytest.mark.parametrize(("count", "stay"), [(50, True), (9_998, True), (9_999, False)])
def test_what_other_compiles_have_tried_stays(
    bench: Workbench, tmp_path: Path, count: int, stay: bool
) -> None:
    policy, folder = watching(), tmp_path / "trials"
    bench.compile(SMALL, policy, f"-nestor-trials={folder}")
    ((name, lines),) = kept(folder).items()
    others = [f"{number:016x} 0123456789abcdef 99 7 3" for number in range(count)]
    (folder / name).write_text("\n".join([lines[0], *others]) + "\n")
    found = bench.compile(SMALL, policy, f"-nestor-trials={folder}").bytes
    assert found == bench.compile(SMALL, policy).bytes
    ((_, now),) = kept(folder).items()
    assert set(now) == {*lines, *(others if stay else [])}


def test_an_edit_elsewhere_keeps_what_is_known(bench: Workbench, tmp_path: Path) -> None:
    """Neither another function nor the numbers of string literals are in what was compiled."""
    policy, option = watching(), f"-nestor-trials={tmp_path / 'trials'}"
    bench.compile(SMALL, policy, option)
    ((_, before),) = kept(tmp_path / "trials").items()
    added = 'int zero(void) { return sink("zero", 0, 0); }\n'
    bench.compile(SMALL.replace("static int report", added + "static int report"), policy, option)
    ((_, after),) = kept(tmp_path / "trials").items()
    assert set(after) == set(before)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"nestor-trials 2 99.0.0\n",
        b"nestor-trials 2\n",
        b"\xff\x00" * 50,
        b"nestor-trials 1 22.1.8\n0123456789abcdef 0123456789abcdef 7\n",
        b"HEADER\n0123456789abcdef 0123456789abcdef 7\n",
        b"HEADER\n0123456789abcdef 0123456789abcdef -5 -7 3\n",
        b"HEADER\n0123456789abcdef 99 7 3\n",
        b"HEADER\n0123456789abcdef 0123456789abcdef 5 7 3\n",
        b"HEADER\n0123456789abcdef 0123456789abcdef 99 7 -3\n",
        b"HEADER\n0123456789abcdef 0123456789abcdef 99999999999999999999999 7 3\n",
    ],
)
def test_a_broken_file_is_as_good_as_none(bench: Workbench, tmp_path: Path, text: bytes) -> None:
    policy, folder = watching(), tmp_path / "trials"
    option = f"-nestor-trials={folder}"
    first = bench.compile(SMALL, policy, option)
    ((name, lines),) = kept(folder).items()
    (folder / name).write_bytes(text.replace(b"HEADER", lines[0].encode()))
    again = bench.compile(SMALL, policy, option)
    assert again.bytes == first.bytes and not again.stderr
    assert kept(folder) == {name: lines}


def test_a_folder_that_cannot_be_written(bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        result = bench.compile(SMALL, watching(), f"-nestor-trials={place}")
        assert result.bytes == bench.compile(SMALL, watching()).bytes and not result.stderr


def test_other_policies_keep_nothing(bench: Workbench, tmp_path: Path) -> None:
    bench.compile(SMALL, KEEPS, f"-nestor-trials={tmp_path / 'trials'}")
    assert not (tmp_path / "trials").exists()
