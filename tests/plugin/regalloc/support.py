"""Sources with more values than registers, linear policies about them, and what logs say."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from nestor.compiler.training_log import DTYPES
from nestor.policy import network
from nestor.policy.network import Layer, LogNormalisation, MlpPolicy
from nestor.policy.spec import Policy
from tests.plugin.support import Result, Workbench

EVICTION, PRIORITY = "regalloc-eviction", "regalloc-priority"


def _kernel(name: str, count: int, kind: str) -> str:
    """Return a C function that keeps ``count`` values alive over two nested loops."""
    values = [f"v{i}" for i in range(count)]
    join = "+" if kind == "double" else "^"
    lines = [f"{kind} {name}({kind} *p, {kind} *q, int n) {{"]
    lines += [f"  {kind} {v} = p[{i}];" for i, v in enumerate(values)]
    lines.append("  for (int i = 0; i < n; ++i) {")
    lines += [
        f"    {v} = {v} * q[i + {i}] + {values[(i * 7 + 3) % count]};" for i, v in enumerate(values)
    ]
    lines.append(f"    if (q[i] > 3) sink((int){values[1]});")
    inner = " ".join(f"{values[k]} {join}= p[j + {k}];" for k in range(0, count, 2))
    lines.append(f"    for (int j = 0; j < i; ++j) {{ {inner} }}")
    return "\n".join([*lines, "  }", f"  return {' + '.join(values)};", "}"])


SOURCE = "\n".join(
    [
        "extern void sink(int);",
        _kernel("first", 14, "long"),
        _kernel("second", 18, "long"),
        _kernel("third", 20, "double"),
        "int small(int a) { return a + 1; }",
        "",
    ]
)

MAIN = """
#include <stdio.h>
long first(long *, long *, int), second(long *, long *, int);
double third(double *, double *, int);
int small(int);
static int count;
void sink(int v) { count += v & 7; }
int main(void) {
  static long a[64], b[64];
  static double c[64], d[64];
  for (int i = 0; i < 64; ++i) { a[i] = i * i + 1; b[i] = 3 * i + 2; c[i] = i * .5; d[i] = 1 + i; }
  printf("%ld %ld %.17g %d\\n", first(a, b, 9), second(a, b, 9), third(c, d, 3), small(count));
  return 0;
}
"""


def linear(problem: str, weights: dict[str, float]) -> MlpPolicy:
    """Return a policy whose logit is the weighted sum of its features, squashed."""
    count = len(weights)
    layer = Layer(
        np.array([list(weights.values())], dtype=np.float32), np.zeros(1, dtype=np.float32)
    )
    return network.build(
        tuple(weights),
        "decision",
        LogNormalisation(np.zeros(count), np.ones(count)),
        (layer,),
        problem=problem,
        rule="pick" if problem == EVICTION else "value",
    )


EVICTORS: dict[str, Policy] = {
    "first": linear(EVICTION, {"position": -1}),
    "last": linear(EVICTION, {"position": 1}),
    "keep": linear(EVICTION, {"is_own": 1}),
    "heaviest": linear(EVICTION, {"use_def_density": 1, "is_own": -100}),
    "not a number": linear(EVICTION, {"position": 3e38, "candidates": -3e38}),
}
ORDERERS: dict[str, Policy] = {
    "small first": linear(PRIORITY, {"li_size": -1}),
    "heavy first": linear(PRIORITY, {"weight": 1}),
    "not a number": linear(PRIORITY, {"li_size": 3e38, "rank": -3e38}),
}


class Deciders(TypedDict, total=False):
    """What decides, as :meth:`Allocator.compile` takes it."""

    evict: Sequence[Policy | str]
    order: Sequence[Policy | str]


@dataclass
class Allocator:
    """Compiles :data:`SOURCE` with the plugin's options about register allocation."""

    bench: Workbench

    def compile(
        self,
        *options: str,
        evict: Sequence[Policy | str] = (),
        order: Sequence[Policy | str] = (),
        flags: Sequence[str] = ("-O2",),
        source: str | Path = SOURCE,
        name: str = "unit.c",
    ) -> Result:
        """Compile ``source`` under policies about evictions and priorities."""
        words = [f"-nestor-eviction={self._path(policy)}" for policy in evict]
        words += [f"-nestor-priority={self._path(policy)}" for policy in order]
        return self.bench.compile(source, "", *words, *options, flags=flags, name=name)

    def stock(self, flags: Sequence[str] = ("-O2",)) -> bytes:
        """Return the object of the stock compiler."""
        return self.bench.compile(SOURCE, flags=flags).bytes

    def functions(self, *options: str, **more: Any) -> dict[str, dict[str, Any]]:
        """Compile with an allocation log and return its functions by name."""
        log = self.bench.folder / f"{self.bench.count}.allocations"
        assert self.compile(f"-nestor-allocation-log={log}", *options, **more).bytes
        return read_allocations(log)

    def _path(self, policy: Policy | str) -> Path | str:
        return policy if isinstance(policy, str) else self.bench.save(policy)


def read_allocations(log: Path) -> dict[str, dict[str, Any]]:
    """Return the functions of a complete allocation log by name."""

    def refuse(word: str) -> float:
        raise ValueError(f"{word} is no JSON")

    lines = [json.loads(line, parse_constant=refuse) for line in log.read_text().splitlines()]
    head, context, *functions, last = lines
    assert head == {"nestor_allocations": 1}
    assert "context" in context
    assert last == {"functions": len(functions)}
    return {function["function"]: function for function in functions}


def total(cost: dict[str, float]) -> float:
    """Return the static cost."""
    return cost["instructions"] + cost["reads"] + cost["writes"]


def ratio(cost: dict[str, float], stock: dict[str, float]) -> float:
    """Return what allocations of a function without a profile are compared by."""
    return max(total(cost) / total(stock), cost["flattened"] / stock["flattened"])


def least(ratios: list[float]) -> float:
    """Return the ratio of the alternative that is taken, the first of ``ratios`` being stock's."""
    return min(ratios) if min(ratios) < 0.998 else 1.0


def read_trajectory(log: Path) -> tuple[NDArray[np.void], dict[str, Any]]:
    """Return the records of a training log and its summary."""
    data = log.read_bytes()
    end = data.index(b"\n")
    row = np.dtype(
        [
            (spec["name"], DTYPES[spec["type"]], tuple(spec["shape"]))
            for spec in json.loads(data[:end])["features"]
        ]
    )
    records, position, summary = [], end + 1, None
    while position < len(data):
        end = data.index(b"\n", position)
        line = json.loads(data[position:end])
        position = end + 1
        if "observation" in line:
            assert summary is None
            records.append(data[position : position + row.itemsize])
            position += row.itemsize
            assert data[position : position + 1] == b"\n"
            position += 1
        elif line["context"].startswith("nestor:summary "):
            summary = json.loads(line["context"].removeprefix("nestor:summary "))
    assert summary is not None, "the log was cut short"
    return np.frombuffer(b"".join(records), dtype=row), summary
