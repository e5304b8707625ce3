"""The function log: what it counts, that it changes nothing, and compiles that end with it."""

from pathlib import Path

import pytest

from nestor.compiler.objects import measure
from nestor.problems.inlining_size.size.function_log import FunctionLog, read
from tests.plugin.support import CXX_SOURCE, SOURCE, Workbench

KINDS = """
extern int sink(int);
extern void fill(char *, int);
static int twice(int v) { return 2 * v; }
int (*pointer)(int) = twice;
int calls(int v) { return sink(v) + sink(v + 1) + pointer(v); }
int choose(int v) {
  switch (v) { case 1: return sink(9); case 5: return 3; case 70: return sink(v); }
  return 0;
}
double half(double v) { return v / 2.5; }
int frame(int n) { char text[100]; fill(text, n); return text[n]; }
unsigned spin(unsigned n) { unsigned s = 0; while (n) { s ^= sink(n); n >>= 1; } return s; }
long wide(long v) { return v * 0x123456789abcdefL; }
"""


def logged(
    bench: Workbench, source: str = KINDS, *options: str, name: str = "unit.c", policy: str = ""
) -> FunctionLog:
    path = bench.folder / "functions"
    result = bench.compile(source, policy, f"-nestor-function-log={path}", *options, name=name)
    assert result.returncode == 0, result.stderr
    return read(path)


def test_functions_are_counted(bench: Workbench) -> None:
    log = logged(bench)
    row = {
        name: dict(zip(log.counts, values.astype(int).tolist(), strict=True))
        for name, values in zip(log.names, log.values, strict=True)
    }
    assert len(set(log.counts)) == len(log.counts)
    assert row["calls"]["real_calls"] == row["calls"]["opcode_call"] == 3
    assert row["calls"]["indirect_calls"] == 1
    assert row["choose"]["switch_cases"] == 3 and row["choose"]["blocks"] > 3
    assert row["half"]["doubles"] >= 1 and row["half"]["constant_floats"] == 1
    assert row["frame"]["alloca_bytes"] == 100 and row["frame"]["alloca_arguments"] == 1
    assert row["spin"]["loops"] == row["spin"]["max_loop_depth"] == 1
    assert row["spin"]["values_across_calls"] + row["spin"]["values_across_blocks"] >= 1
    assert row["wide"]["constant_quads"] == 1
    assert row["twice"]["is_local"] == 1 and row["calls"]["is_local"] == 0
    for counted in row.values():
        opcodes = {n: v for n, v in counted.items() if n.startswith("opcode_")}
        assert counted["instructions"] == sum(opcodes.values()) > 0
        assert sum(v for n, v in counted.items() if n.startswith("pair_")) < sum(opcodes.values())


@pytest.mark.parametrize(("source", "name"), [(SOURCE, "unit.c"), (CXX_SOURCE, "unit.cpp")])
def test_every_function_of_the_object_is_there(bench: Workbench, source: str, name: str) -> None:
    out = bench.folder / "functions"
    stock = bench.compile(source, name=name).bytes
    result = bench.compile(source, "", f"-nestor-function-log={out}", name=name)
    assert result.bytes == stock
    functions = {function.name for function in measure(result.object).functions}
    assert functions <= set(read(out).names)


def test_without_code_the_log_is_the_same(bench: Workbench) -> None:
    whole = logged(bench, SOURCE, policy="default")
    bare = logged(bench, SOURCE, "-nestor-no-code", policy="default")
    assert whole.names == bare.names and (whole.values == bare.values).all()


def test_without_code_the_object_is_empty(bench: Workbench, tmp_path: Path) -> None:
    options = ("-nestor-no-code", f"-nestor-function-log={tmp_path / 'log'}")
    assert bench.compile(SOURCE, "", *options).bytes == b""


def test_without_a_log_there_is_code(bench: Workbench) -> None:
    assert bench.compile(SOURCE, "", "-nestor-no-code").bytes == bench.compile(SOURCE).bytes


def test_a_log_that_cannot_be_written_fails_the_compile(bench: Workbench) -> None:
    path = bench.folder / "absent" / "log"
    result = bench.compile(SOURCE, "", f"-nestor-function-log={path}")
    assert result.returncode == 1
    assert f"cannot write the function log '{path}'" in result.stderr
