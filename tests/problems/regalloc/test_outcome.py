"""The log of allocations, and what a module's functions are weighted by."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Input, Program
from nestor.problem.trajectory import LogError
from nestor.regalloc import allocation_log
from nestor.regalloc.outcome import COLUMNS, CostOfFunctions, ModuleCost
from nestor.regalloc.weights import measured_calls, weights
from nestor.rollout.local_pool import LocalPool
from nestor.workload.calls import CALLS
from tests.conftest import module_named
from tests.problems.allocations import compiled
from tests.problems.conftest import pool_for

COST: dict[str, Any] = {"instructions": 10.5, "reads": 3, "writes": 2, "spills": 1, "reloads": 1.5}
COST |= {"copies": 0.5, "flattened": 12.0, "size": 7, "spill_count": 1, "reload_count": 2}
HEAD = '{"nestor_allocations":1}\n{"context":"x.c"}\n'


def line(name: str, number: int, **more: object) -> str:
    """Return the line of one function."""
    asked = {"questions": 2, "priorities": 5, "kept": 0, "trials": 0}
    own = {"function": name, "id": f"{number:016x}", **asked, "cost": COST}
    return json.dumps(own | more) + "\n"


def log(*lines: str) -> tuple[allocation_log.FunctionAllocation, ...]:
    """Return the functions of a log with these lines."""
    return allocation_log.parse("".join((HEAD, *lines, f'{{"functions":{len(lines)}}}\n')))


def test_log_holds_functions_and_what_left_the_stock_heuristics() -> None:
    one, two = log(line("f", 1, entries=4, evict=[[0, 3]]), line("g", 2, priority=[[5, -1.5]]))
    assert (one.name, one.id, one.entries, one.evictions) == ("f", 1, 4.0, ((0, 3),))
    assert (two.entries, two.priorities) == (None, ((5, -1.5),))
    assert one.cost.cost == 15.5
    (three,) = log(line("h", 3, tried=[1, 0.75, None]))
    assert (three.tried, one.tried) == ((1.0, 0.75, float("inf")), ())


def test_logs_that_are_none_are_refused(tmp_path: Path) -> None:
    whole = HEAD + line("f", 1) + '{"functions":1}\n'
    file = tmp_path / "log"
    for text in ("", whole[:-1].rsplit("\n", 1)[0], whole.replace(":1}\n", ":2}\n", 1), "{\n"):
        file.write_text(text)
        with pytest.raises(LogError, match="no complete log of allocations"):
            allocation_log.read(file)
    with pytest.raises(LogError, match="no log of allocations"):
        allocation_log.read(tmp_path / "missing")


def test_weights_are_entries_or_calls_or_one() -> None:
    plain, profiled = log(line("f", 1), line("g", 2)), log(line("f", 1, entries=9), line("g", 2))
    assert weights(plain, None) == [1, 1]
    assert weights(plain, {"g": 5}) == [0, 5]
    assert weights(profiled, {"g": 5}) == [9, 0]


def test_columns_and_parts_are_weighted() -> None:
    outcome = ModuleCost.of(log(line("f", 1), line("g", 2)), {"f": 2, "g": 4})
    columns = outcome.columns()
    assert tuple(columns) == COLUMNS
    assert columns["cost"] == 6 * 15.5
    assert columns["reloads"] == 6 * 1.5
    assert columns["size"] == 14
    assert outcome.parts() == {"f": 31.0, "g": 62.0}
    assert CostOfFunctions().total(outcome) == columns["cost"]


def test_calls_of_the_programs_that_hold_a_module_add_up(
    corpus: Corpus, plugin: Plugin, tmp_path: Path
) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(corpus.root, root)
    unit, other = (module_named(corpus, name) for name in ("probe.c.o", "probe.cpp.o"))
    programs = tuple(
        Program(name, "x", "c", tuple(Input("module", m.name) for m in own))
        for name, own in (("a", [unit]), ("b", [unit, other]), ("c", [other]))
    )
    measured = dataclasses.replace(corpus, root=root, programs=programs)
    assert measured_calls(measured, unit) is None
    (root / CALLS).write_text('{"a": {"checksum": 2}, "b": {"checksum": 5, "f": 1}}')
    assert measured_calls(measured, unit) == {"checksum": 7, "f": 1}
    assert measured_calls(measured, other) == {"checksum": 5, "f": 1}
    with pool_for("regalloc-eviction", measured, plugin) as pool:
        outcome = compiled(pool, None, unit.name).outcome
        weighted = {f.name: w for f, w in zip(outcome.functions, outcome.weights, strict=True)}
        assert weighted["checksum"] == 7
        assert set(weighted.values()) == {0.0, 7.0}
        (root / CALLS).write_text("nothing")
        assert "holds no calls" in str(compiled(pool, None, unit.name).failure)


def test_spilling_costs(pool: LocalPool) -> None:
    stock, keep = compiled(pool, None), compiled(pool, "keep")
    before, after = (pool.problem.columns(r.outcome) for r in (stock, keep))
    assert after["spills"] > before["spills"]
    assert after["reloads"] > before["reloads"]
    assert after["cost"] > before["cost"]
