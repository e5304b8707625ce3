"""Logs hold every question, and agree with each other and with the object."""

import math

import numpy as np

from tests.plugin.regalloc.support import (
    EVICTORS,
    ORDERERS,
    Allocator,
    read_allocations,
    read_trajectory,
    total,
)

NAMES = {"first", "second", "third", "small"}


def test_all_questions_are_logged(allocator: Allocator) -> None:
    folder = allocator.bench.folder
    logs = [f"-nestor-{log}-log={folder / log}" for log in ("eviction", "priority", "allocation")]
    evict, order = [EVICTORS["heaviest"]], [ORDERERS["small first"]]
    allocator.compile(*logs, "-nestor-log-names", evict=evict, order=order)
    functions = read_allocations(folder / "allocation")
    assert functions.keys() == NAMES
    evictions, summary = read_trajectory(folder / "eviction")
    priorities, others = read_trajectory(folder / "priority")
    assert summary["decisions"] == len(evictions) > 100
    assert others["decisions"] == len(priorities) > 100
    assert summary["module"] == others["module"]
    for named in (summary["names"], others["names"]):
        assert named == {function["id"]: name for name, function in functions.items()}
    for function in functions.values():
        identifier = np.array([int(function["id"], 16)], dtype=np.uint64).view(np.int64)
        own = evictions[evictions["function"].ravel() == identifier]
        # A question may be left to stock, if LLVM offers nothing that its choice is among.
        assert len(own) <= function["questions"] - function["kept"]
        assert (np.diff(own["question"].ravel()) > 0).all()
        ordered = priorities[priorities["function"].ravel() == identifier]
        assert len(ordered) == function["priorities"]
        left = np.count_nonzero(own["index_to_evict"] != own["eviction_default"])
        moved = np.count_nonzero(ordered["priority"] != ordered["priority_default"])
        assert function["deviations"] == left + moved
        assert len(function.get("evict", [])) == left


def test_answers_and_defaults_are_on_offer(allocator: Allocator) -> None:
    log = allocator.bench.folder / "log"
    allocator.compile(f"-nestor-eviction-log={log}", evict=[EVICTORS["last"]])
    records, _ = read_trajectory(log)
    rows = np.arange(len(records))
    mask = records["mask"].reshape(len(records), -1)
    for column in ("index_to_evict", "eviction_default"):
        assert (mask[rows, records[column].ravel()] == 1).all()
    # The policy takes the last that may be taken.
    last = mask.shape[1] - 1 - np.argmax(mask[:, ::-1], axis=1)
    assert (records["index_to_evict"].ravel() == last).all()
    assert (records["log_probability"] <= 0).all()


def test_names_need_no_other_log(allocator: Allocator) -> None:
    log = allocator.bench.folder / "log"
    for kind in ("eviction", "priority"):
        allocator.compile(f"-nestor-{kind}-log={log}-{kind}", "-nestor-log-names")
        _, summary = read_trajectory(log.with_name(f"log-{kind}"))
        assert set(summary["names"].values()) == NAMES
        allocator.compile(f"-nestor-{kind}-log={log}-{kind}")
        assert read_trajectory(log.with_name(f"log-{kind}"))[1]["names"] == {}


def test_without_code_a_log_is_whole(allocator: Allocator) -> None:
    folder = allocator.bench.folder
    logs = [f"-nestor-{log}-log={folder / log}" for log in ("eviction", "priority", "allocation")]
    assert allocator.compile(*logs, source="int x = 3;\n").bytes
    assert read_allocations(folder / "allocation") == {}
    assert len(read_trajectory(folder / "eviction")[0]) == 0
    assert len(read_trajectory(folder / "priority")[0]) == 0


def test_a_folder_gets_a_log_for_each_module(allocator: Allocator) -> None:
    folder = allocator.bench.folder / "logs"
    for name in ("one.c", "two.c"):
        allocator.compile(f"-nestor-allocation-log={folder}/", name=name)
    logs = sorted(folder.iterdir())
    assert [log.name.split(".")[0] for log in logs] == ["one", "two"]
    assert all(read_allocations(log).keys() == NAMES for log in logs)


def test_another_modules_log_is_kept(allocator: Allocator) -> None:
    log = allocator.bench.folder / "log"
    for kind in ("allocation", "eviction", "priority"):
        option = f"-nestor-{kind}-log={log}-{kind}"
        assert allocator.compile(option, name="one.c").returncode == 0
        before = log.with_name(f"log-{kind}").read_bytes()
        done = allocator.compile(option, name="two.c")
        assert done.returncode == 1
        assert "it holds the log of" in done.stderr
        assert log.with_name(f"log-{kind}").read_bytes() == before


def test_overrides_repeat_what_a_policy_did(allocator: Allocator) -> None:
    log, text = allocator.bench.folder / "log", "nestor-allocation-overrides 1\n"
    evict, order = [EVICTORS["last"]], [ORDERERS["heavy first"]]
    wanted = allocator.compile(f"-nestor-allocation-log={log}", evict=evict, order=order).bytes
    for function in read_allocations(log).values():
        for kind in ("evict", "priority"):
            for question, answer in function.get(kind, []):
                text += f"{kind} {function['id']} {question} {answer}\n"
    path = allocator.bench.folder / "overrides"
    path.write_text(text)
    option = f"-nestor-allocation-overrides={path}"
    assert wanted != allocator.stock()
    assert allocator.compile(option).bytes == wanted
    assert allocator.compile(option, "-nestor-eviction-log=other").bytes == wanted


def test_overrides_leave_functions_and_modules_to_stock(allocator: Allocator) -> None:
    log, path = allocator.bench.folder / "log", allocator.bench.folder / "overrides"
    evict = [EVICTORS["first"]]
    allocator.compile(f"-nestor-allocation-log={log}", f"-nestor-eviction-log={log}-e", evict=evict)
    functions = read_allocations(log)
    _, summary = read_trajectory(log.with_name("log-e"))
    option = f"-nestor-allocation-overrides={path}"
    path.write_text(f"nestor-allocation-overrides 1\nmodule {summary['module']} stock\n")
    assert allocator.compile(option, evict=evict).bytes == allocator.stock()
    second = functions["second"]["id"]
    path.write_text(f"nestor-allocation-overrides 1\nfunction {second} stock\n")
    left = allocator.functions(option, evict=evict)
    assert left["second"]["deviations"] == 0
    assert left["first"]["deviations"] == functions["first"]["deviations"] > 0


def test_labels_say_what_other_answers_cost(allocator: Allocator) -> None:
    folder = allocator.bench.folder
    options = [
        "-nestor-allocation-labels=30",
        f"-nestor-eviction-log={folder / 'eviction'}",
        f"-nestor-allocation-log={folder / 'allocation'}",
    ]
    assert allocator.compile(*options).bytes == allocator.stock()
    functions = read_allocations(folder / "allocation")
    costs = {int(f["id"], 16): total(f["cost"]) for f in functions.values()}
    records, _ = read_trajectory(folder / "eviction")
    labelled = 0
    for record in records:
        prices = record["cost_of_candidate"].ravel()
        mask = record["mask"].ravel() == 1
        if np.isnan(prices).all():
            continue
        labelled += 1
        assert (np.isnan(prices) == ~mask).all()
        # To answer as stock does costs what the function costs.
        own = costs[int(record["function"].view(np.uint64)[0])]
        assert math.isclose(prices[record["eviction_default"][0]], own, rel_tol=1e-12)
    assert labelled > 5
