"""Trials in forked children: what they find, and what they must leave alone."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from tests.plugin.regalloc.support import (
    EVICTORS,
    ORDERERS,
    SOURCE,
    Allocator,
    Deciders,
    least,
    ratio,
    read_allocations,
    total,
)

Ends = Callable[[str], dict[str, str]]
ALL = list(EVICTORS.values())
SOME = [EVICTORS["first"], EVICTORS["keep"]]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plugin: Plugin) -> Callable[..., None]:
    """Return a function that makes trials end as it says (trial_ends.c)."""
    library = tmp_path / "trial_ends.so"
    source = Path(__file__).with_name("trial_ends.c")
    command: list[str | Path] = [
        plugin.toolchain.clang,
        "-O1",
        "-shared",
        "-fPIC",
        source,
        "-o",
        library,
        "-ldl",
    ]
    subprocess.run(command, check=True)

    def arrange(how: str, trial: int | None = None) -> None:
        monkeypatch.setenv("LD_PRELOAD", str(library))
        monkeypatch.setenv("TRIAL_ENDS_BY", how)
        if trial is not None:
            monkeypatch.setenv("TRIAL_NUMBER", str(trial))

    return arrange


def test_the_best_alternative_is_never_worse_than_stock(allocator: Allocator) -> None:
    functions = allocator.functions("-nestor-best", evict=ALL, order=[ORDERERS["heavy first"]])
    stock = allocator.functions(evict=["default"])
    alone = [allocator.functions(evict=[policy]) for policy in ALL]
    better = 0
    for name, function in functions.items():
        first = stock[name]["cost"]
        ratios = [ratio(other[name]["cost"], first) for other in [stock, *alone]]
        assert ratio(function["cost"], first) <= least(ratios)
        # Stock and each policy alone; then no pair, that of the best of ALL, or those of the order.
        assert function["trials"] - (2 + len(ALL)) in (0, 1, len(ALL))
        assert total(function["stock"]) == total(stock[name]["cost"])
        better += total(function["cost"]) < total(stock[name]["cost"])
    assert better


def test_a_trial_predicts_what_the_function_will_cost(allocator: Allocator) -> None:
    for name, policy in EVICTORS.items():
        alone = allocator.functions(evict=[policy])
        for function, tried in allocator.functions("-nestor-best", evict=[policy]).items():
            if "tried" in tried:
                expected = ratio(alone[function]["cost"], tried["stock"])
                assert tried["tried"] == [1, expected], (name, function)


@pytest.mark.parametrize("calls", [0, 5])
def test_a_profile_is_trusted_where_it_has_calls(
    allocator: Allocator, plugin: Plugin, tmp_path: Path, calls: int
) -> None:
    source, bitcode = tmp_path / "unit.c", tmp_path / "unit.ll"
    source.write_text(SOURCE)
    words = [plugin.toolchain.clang, "-O2", "-S", "-emit-llvm", source, "-o", bitcode]
    subprocess.run([*map(str, words)], check=True)
    text, functions = re.subn(r"(?m)^(define .*) \{$", r"\1 !prof !9999 {", bitcode.read_text())
    assert functions
    entry = f'!9999 = !{{!"function_entry_count", i64 {calls}}}'
    bitcode.write_text(f"{text}\n{entry}\n")
    differ = 0
    for policy in ALL:
        alone = allocator.functions(evict=[policy], source=bitcode)
        for name, own in allocator.functions(
            "-nestor-best", evict=[policy], source=bitcode
        ).items():
            assert own["entries"] == calls
            if "tried" in own:
                cost, stock = alone[name]["cost"], own["stock"]
                plain, cautious = total(cost) / total(stock), ratio(cost, stock)
                assert own["tried"][1] == (plain if calls else cautious), name
                differ += plain != cautious
    assert differ, "else the test shows nothing"


def test_functions_that_no_alternative_changes_are_not_tried(allocator: Allocator) -> None:
    functions = allocator.functions("-nestor-best", evict=SOME)
    assert functions["small"]["trials"] == 0
    assert functions["first"]["trials"] == 3


def test_a_search_is_never_worse_and_finds_something(allocator: Allocator) -> None:
    stock = allocator.functions(evict=["default"])
    for moves in ("eviction", "priority", "both"):
        options = ["-nestor-allocation-search=60", f"-nestor-allocation-moves={moves}"]
        found = allocator.functions(*options)
        costs = [(total(f["cost"]), total(stock[name]["cost"])) for name, f in found.items()]
        assert all(new <= old for new, old in costs)
        assert sum(new for new, _ in costs) < sum(old for _, old in costs)
        kept = {"evict": "eviction", "priority": "priority"}
        for function in found.values():
            for key, move in kept.items():
                assert moves in (move, "both") or key not in function


def test_other_seeds_search_elsewhere(allocator: Allocator) -> None:
    objects = {
        allocator.compile("-nestor-allocation-search=15", f"-nestor-seed={seed}").bytes
        for seed in range(3)
    }
    assert len(objects) > 1


@pytest.mark.parametrize("how", ["segmentation fault", "abort", "exit", "time"])
def test_without_trials_that_end_well_stock_stands(
    allocator: Allocator, ends: Callable[..., None], how: str
) -> None:
    stock = allocator.stock()
    trial = 1 if how == "time" else None  # one second each
    ends(how, trial)
    log = allocator.bench.folder / "log"
    done = allocator.compile("-nestor-best", f"-nestor-allocation-log={log}", evict=SOME)
    assert done.stderr == ""
    if trial is None:
        assert done.bytes == stock
    assert read_allocations(log)["first"]["alternative"] == 0
    assert "stock" not in read_allocations(log)["first"]
    assert read_allocations(log)["first"]["trials"] >= 1


def test_an_alternative_that_fails_is_not_chosen(
    allocator: Allocator, ends: Callable[..., None]
) -> None:
    policies = {"evict": ALL, "order": [ORDERERS["heavy first"]]}
    usual = allocator.functions("-nestor-best", **policies)
    name = next(name for name, function in usual.items() if function["alternative"])
    others = list(usual)[: list(usual).index(name)]  # which are tried before
    chosen = usual[name]["alternative"]
    ends("segmentation fault", sum(usual[other]["trials"] for other in others) + chosen + 1)
    functions = allocator.functions("-nestor-best", **policies)
    assert functions[name]["tried"][chosen] is None
    assert functions[name]["alternative"] != chosen
    assert total(functions[name]["cost"]) <= total(functions[name]["stock"])
    assert all(functions[other] == usual[other] for other in usual if other != name)


def test_a_search_survives_trials_that_fail(
    allocator: Allocator, ends: Callable[..., None]
) -> None:
    stock = allocator.stock()
    ends("segmentation fault")
    assert allocator.compile("-nestor-allocation-search=9").bytes == stock


@pytest.mark.parametrize("option", ["-disable-branch-fold", "-stop-after=greedy"])
def test_where_the_cost_is_never_taken_stock_stands(allocator: Allocator, option: str) -> None:
    """A trial must not go on to write the object."""
    flags = ["-O2", "-mllvm", option, *(["-S"] if "stop" in option else [])]
    stock = allocator.bench.compile(SOURCE, flags=flags).bytes
    assert allocator.compile("-nestor-best", evict=SOME, flags=flags).bytes == stock


def test_trials_write_to_no_file_of_the_compilers(allocator: Allocator) -> None:
    """Remarks are written as they arise, so those of a trial would be among them."""
    records: list[bytes] = []
    ways: list[tuple[list[str], Deciders]] = [
        ([], {}),
        ([], {"evict": ["default"]}),
        (["-nestor-best"], {"evict": [EVICTORS["first"]]}),
    ]
    for best, deciders in ways:
        record = allocator.bench.folder / f"{len(records)}.yaml"
        flags = ["-O2", "-fsave-optimization-record", f"-foptimization-record-file={record}"]
        log = allocator.bench.folder / f"{len(records)}.log"
        done = allocator.compile(*best, f"-nestor-allocation-log={log}", **deciders, flags=flags)
        assert done.bytes
        records.append(record.read_bytes())
    kept = read_allocations(log)
    assert all(f["alternative"] == 0 for f in kept.values()), "the policy of this test must lose"
    assert any(f["trials"] for f in kept.values())
    assert len(set(records)) == 1


def test_output_to_a_pipe_is_the_parents_alone(allocator: Allocator, plugin: Plugin) -> None:
    source = allocator.bench.source(SOURCE)
    policy = allocator.bench.save(EVICTORS["first"])
    words = [f"-fpass-plugin={plugin.path}", "-mllvm", f"-nestor-eviction={policy}"]
    command: list[str | Path] = [plugin.toolchain.clang, "-O2", *words]
    command += ["-mllvm", "-nestor-best", "-S", source]
    to_pipe = subprocess.run([*command, "-o", "-"], capture_output=True, check=True).stdout
    file = allocator.bench.folder / "unit.s"
    subprocess.run([*command, "-o", file], check=True)
    assert to_pipe == file.read_bytes()


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_trials_end_with_the_compiler(
    allocator: Allocator, ends: Callable[..., None], plugin: Plugin, how: signal.Signals
) -> None:
    source = allocator.bench.source(SOURCE)
    policy = allocator.bench.save(EVICTORS["first"])
    ends("never")
    words = ["-Xclang", f"-fpass-plugin={plugin.path}"]
    words += [w for o in (f"-nestor-eviction={policy}", "-nestor-best") for w in ("-mllvm", o)]
    clang = plugin.toolchain.clang
    # -fintegrated-cc1: the process that we start is the compiler itself.
    command: list[str | Path] = [
        clang,
        "-fintegrated-cc1",
        "-O2",
        *words,
        "-c",
        source,
        "-o",
        "unit.o",
    ]
    with subprocess.Popen(command, cwd=allocator.bench.folder, stderr=-3) as compiler:
        deadline = time.monotonic() + 50
        while not (children := _children(compiler.pid)) and time.monotonic() < deadline:
            assert compiler.poll() is None
            time.sleep(0.01)
        assert children, "no trial was begun"
        os.kill(compiler.pid, how)
        compiler.wait(timeout=50)
        while not all(map(_gone, children)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert all(map(_gone, children))


def test_several_compilers_at_a_time_do_not_meet(allocator: Allocator, plugin: Plugin) -> None:
    """As a build with -j makes them, in one folder and with one policy."""
    alone = allocator.compile("-nestor-best", evict=ALL).bytes
    source = allocator.bench.source(SOURCE)
    words = [f"-fpass-plugin={plugin.path}", "-mllvm", "-nestor-best"]
    for policy in ALL:
        words += ["-mllvm", f"-nestor-eviction={allocator.bench.save(policy)}"]
    folder = allocator.bench.folder
    commands: list[list[str | Path]] = [
        [plugin.toolchain.clang, "-O2", *words, "-c", source, "-o", folder / f"parallel-{n}.o"]
        for n in range(3)
    ]
    running = [subprocess.Popen(command, cwd=folder) for command in commands]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    for number in range(3):
        assert (folder / f"parallel-{number}.o").read_bytes() == alone
