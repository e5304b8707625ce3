"""What cannot be done is one error that says why, with exit status 1."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from nestor.problems.inlining_size import builtins
from tests.plugin.regalloc.support import EVICTION, EVICTORS, ORDERERS, PRIORITY, Allocator, linear
from tests.plugin.support import SOURCE as INLINING_SOURCE

FIRST, SMALL_FIRST = EVICTORS["first"], ORDERERS["small first"]
THRESHOLD = builtins.threshold(25)


def refused(
    allocator: Allocator, sentence: str, *options: str, **policies: Sequence[object]
) -> None:
    done = allocator.compile(*options, **policies)  # type: ignore[arg-type]
    assert done.returncode == 1, done.stderr
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1, done.stderr
    assert errors[0].startswith("error: nestor: "), errors
    assert sentence in errors[0]
    assert not done.object.exists()


def test_policies_of_other_problems(allocator: Allocator) -> None:
    refused(allocator, f"it is for {PRIORITY}, not for {EVICTION}", evict=[SMALL_FIRST])
    refused(allocator, f"it is for {EVICTION}, not for {PRIORITY}", order=[FIRST])
    refused(allocator, f"it is for inlining-size, not for {EVICTION}", evict=[THRESHOLD])


def test_an_eviction_policy_for_inlining(allocator: Allocator) -> None:
    path = allocator.bench.save(FIRST)
    done = allocator.bench.compile(INLINING_SOURCE, path)
    assert done.returncode == 1
    assert "error: nestor: " in done.stderr


def test_features_that_are_not_offered(allocator: Allocator) -> None:
    for problem, key in ((EVICTION, "evict"), (PRIORITY, "order")):
        policy = linear(problem, {"loop_depth": 1, "moon_phase": 1})
        refused(
            allocator,
            "needs features that this compiler does not offer: loop_depth, moon_phase",
            **{key: [policy]},
        )


def test_several_policies_without_a_way_to_choose(allocator: Allocator) -> None:
    sentence = "several policies for the same decision need -nestor-best"
    refused(allocator, sentence, evict=[FIRST, EVICTORS["last"]])
    refused(allocator, sentence, order=[SMALL_FIRST, "default"])


@pytest.mark.parametrize("option", ["regalloc-enable-advisor", "regalloc-enable-priority-advisor"])
def test_llvms_own_advisors(allocator: Allocator, option: str) -> None:
    sentence = f"policies about register allocation and -{option} exclude each other"
    refused(allocator, sentence, f"-{option}=default", evict=[FIRST])


def test_files_that_are_not_there(allocator: Allocator) -> None:
    refused(allocator, "cannot use the policy 'absent'", evict=["absent"])
    refused(allocator, "cannot use the policy 'absent'", order=["absent"])
    refused(allocator, "cannot use the overrides 'absent'", "-nestor-allocation-overrides=absent")


@pytest.mark.parametrize("log", ["eviction", "priority", "allocation"])
def test_logs_that_cannot_be_written(allocator: Allocator, log: str) -> None:
    path = "/nonexistent/folder/log"
    refused(allocator, f"cannot write the log '{path}'", f"-nestor-{log}-log={path}")


def test_logs_that_would_be_one_file(allocator: Allocator) -> None:
    of_regalloc = ["eviction", "priority", "allocation"]
    options = ["-nestor-log", *(f"-nestor-{of}-log" for of in of_regalloc)]
    for pair in itertools.combinations(options, 2):
        for place in ("log", "logs/"):
            given = [f"{option}={place}" for option in pair]
            refused(allocator, "need a file or a folder each", *given)
    for of in of_regalloc:  # The log of functions is one file.
        given = [f"-nestor-{of}-log=log", "-nestor-function-log=log"]
        refused(allocator, "need a file or a folder each", *given)


def test_a_full_disk(allocator: Allocator, full_disk: Path) -> None:
    for log in ("eviction", "priority", "allocation"):
        done = allocator.compile(f"-nestor-{log}-log={full_disk / log}")
        assert done.returncode == 1
        assert "No space left on device" in done.stderr


def test_temperatures_that_are_none(allocator: Allocator) -> None:
    for temperature in ("0", "-1", "nan", "inf"):
        refused(
            allocator,
            "-nestor-temperature must be positive",
            f"-nestor-temperature={temperature}",
            evict=[FIRST],
        )


HEADER = "nestor-allocation-overrides 1\n"
BROKEN = {
    "line 1": "nestor-overrides 1\n",
    "the first line": "",
    "line 2": f"{HEADER}evict 00000000000000aa 1 33\n",
    "line 3": f"{HEADER}\npriority 00000000000000aa 1 nan\n",
    "given twice": HEADER + 2 * "module 00000000000000aa stock\n",
}


@pytest.mark.parametrize("reason", BROKEN)
def test_overrides_that_are_none(allocator: Allocator, reason: str) -> None:
    path = allocator.bench.folder / "overrides"
    path.write_text(BROKEN[reason])
    refused(allocator, reason, f"-nestor-allocation-overrides={path}")


def test_a_policy_file_that_is_none(allocator: Allocator) -> None:
    path = allocator.bench.folder / "policy"
    path.write_text("no policy")
    refused(allocator, f"cannot use the policy '{path}'", evict=[str(path)])
