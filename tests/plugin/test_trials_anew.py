"""What a compile remembers between trials is as good as new: code generator and counts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.problems.inlining_size.summary.program_summary import function_id
from tests.plugin.support import CXX_SOURCE, Workbench
from tests.plugin.test_inlining_trials import SMALL, kept, said, watching

SINK = "extern int sink(int, int);\n"


def pair(name: str, body: str) -> str:
    """Return a local function of two calls, and their caller."""
    return (
        f"static int {name}(int v) {{ {body} }}\n"
        f"int two_{name}(int v) {{ return {name}(v) * 3 - {name}(v + 7); }}\n"
    )


PAIRS = {
    "calls": pair("calls", "sink(v, 1); return sink(v, 2) + sink(2, v);"),
    "turns": pair("turns", "for (int i = 0; i < v; ++i) sink(i, v); return sink(0, v);"),
    "picks": pair(
        "picks",
        "switch (v) { case 1: return sink(1, 2); case 2: return sink(v, 9); case 3: return 8;"
        " case 4: return sink(7, 7); case 5: return sink(4, v); } return sink(v, v);",
    ),
    "reads": pair(
        "reads",
        'static const char *const t[] = {"a", "b", "c"}; sink(t[v & 1][0], v); return sink(v, 5);',
    ),
    "floats": pair("floats", "return sink(v * 1.5 + v / 3.25, (int)(v * 0.75f)) + sink(v, 2);"),
}


def test_a_trial_does_not_hang_on_those_before_it(bench: Workbench) -> None:
    alone = {name: said(bench, SINK + text, watching()).get(name) for name, text in PAIRS.items()}
    assert None not in alone.values() and len(set(alone.values())) > 2
    for names in (list(PAIRS), list(PAIRS)[::-1], sorted(PAIRS)):
        source = SINK + "".join(PAIRS[name] for name in names)
        assert said(bench, source, watching()) == alone, names


@pytest.mark.parametrize("fails", ['__asm__("no such thing");', '__asm__(".section .text.x");'])
def test_a_trial_that_fails_leaves_nothing(bench: Workbench, fails: str) -> None:
    """The assembler refuses the text, or what stands behind it in another section."""
    to_bitcode = ("-Oz", "-emit-llvm")  # Which no assembler sees, so that the compile goes well.
    plain = SINK + "".join(PAIRS.values())
    expected = said(bench, plain, watching())
    bad = SINK + pair("bad", f"{fails} return sink(v, 3);")
    assert bench.compile(bad, watching()).returncode == 1
    for source in (bad + plain, plain + bad):
        assert said(bench, source, watching(), flags=to_bitcode) == expected


def test_a_caller_that_has_grown_is_counted_again(bench: Workbench) -> None:
    source = SINK + (
        "static int early(int v) { return sink(v, 1) + sink(v, 2) * sink(v, 3); }\n"
        "static int small(int v) { return v * 3 - 1; }\n"
        "static int late(int v) { return sink(v, 4) - sink(v, 5) * sink(6, v); }\n"
        "int all(int v) { return early(v) - small(v) + late(v) * early(-v) + late(3); }\n"
    )
    rows = bench.compile(source, watching(), log=True).trajectory.decisions
    first: dict[int, Any] = {}
    for row in rows[rows["trial_calls"] > 0]:
        first.setdefault(int(row["callee"]), row)
    sizes = {}
    for name in ("early", "late"):
        row = first[int(np.uint64(function_id(name, "unit.c")).astype(np.int64))]
        sizes[name] = int(row["caller_instructions"])
        assert row["trial_calls"] == 2 and row["trial_bytes"] > 0
        assert row["trial_instructions"] == row["callee_instructions"] + sizes[name]
    assert sizes["early"] < sizes["late"]


@pytest.mark.parametrize(("source", "name"), [(SMALL, "unit.c"), (CXX_SOURCE, "unit.cpp")])
def test_counts_are_those_of_the_functions(bench: Workbench, source: str, name: str) -> None:
    rows = bench.compile(source, watching(), log=True, name=name).trajectory.decisions
    only = rows[(rows["trial_calls"] == 1) & (rows["callee_uses"] == 1)]
    both = only["callee_instructions"] + only["caller_instructions"]
    assert (only["trial_instructions"] == both).all()


def test_what_is_inlined_elsewhere_forgets_nothing(bench: Workbench, tmp_path: Path) -> None:
    """The first call that is inlined makes a kind of metadata known to the compiler."""
    policy, option = watching(), f"-nestor-trials={tmp_path / 'trials'}"
    bench.compile(SMALL, policy, option)
    ((_, before),) = kept(tmp_path / "trials").items()
    added = (
        "static int one(int v) { return v + 1; }\nint two(int v) { return one(v) + one(v * 2); }\n"
    )
    bench.compile(SMALL.replace("static int report", added + "static int report"), policy, option)
    ((_, after),) = kept(tmp_path / "trials").items()
    assert set(after) == set(before)
