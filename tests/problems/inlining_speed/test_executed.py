"""Which sites a run says are worth inlining, and which ones only cost code."""

import numpy as np
import pytest
import xxhash

from nestor.build.calls import Calls
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import trajectory
from nestor.problems.inlining_size.score.reach import Reach
from nestor.problems.inlining_size.search.sites import SiteReach, sites_of
from nestor.problems.inlining_speed.executed import (
    cold_sites,
    kept_sites,
    proposal,
    vain_cold_sites,
    vain_sites,
    written_calls,
)
from nestor.problems.inlining_speed.moves import SpeedMoves
from nestor.tune.moves import Evidence

HOT, COLD, OTHER, LEAF, LARGE = range(1, 6)
FIELDS = {
    "site": 0, "caller": 0, "callee": 0, "answer": 0, "inlining_default": 0, "cost_estimate": 300,
    "effect": 0, "copy_of": 0, "callee_disappears": 0, "callee_is_local": 0,
    "callee_arguments": 2,
}  # fmt: skip


def log(*rows: dict[str, int]) -> dict[str, Trajectory]:
    names = [*FIELDS, "logit"]
    records = np.zeros(len(rows), [(name, "<i8" if name != "logit" else "<f8") for name in names])
    for number, row in enumerate(rows):
        for name, value in (FIELDS | {"site": number + 1} | row).items():
            records[name][number] = value
    return {"a.c": trajectory(records)}


KEPT = log(
    {"caller": HOT, "callee": LEAF},
    {"caller": HOT, "callee": LEAF, "cost_estimate": 250},
    {"caller": HOT, "callee": LARGE, "cost_estimate": 3000},
    {"caller": COLD, "callee": LEAF},
)
CALLS = Calls(
    {(HOT, LEAF): 5000, (HOT, LARGE): 4000, (COLD, LARGE): 0},
    {HOT: 1, COLD: 0, LEAF: 5000, LARGE: 4000, OTHER: 0},
)


def test_calls_are_shared_out_evenly_and_ranked_by_the_byte() -> None:
    found = kept_sites(KEPT, CALLS)
    assert [one.site.key.number for one in found] == [2, 1, 3]
    assert [one.saved for one in found] == pytest.approx([30_000, 30_000, 48_000])


def test_a_proposal_takes_what_fits_and_what_runs() -> None:
    assert {key.number for key in proposal(KEPT, CALLS, None, 1e6, 1e9)} == {1, 2, 3}
    assert {key.number for key in proposal(KEPT, CALLS, None, 1e6, 1000)} == {1, 2}
    assert not proposal(KEPT, CALLS, None, 1e6, 10)
    assert not proposal(KEPT, CALLS, None, 1e12, 1e9)


INLINED = {"answer": 1, "effect": 1, "cost_estimate": 100}


@pytest.mark.parametrize(
    ("entries", "reached", "cold"),
    [(5000, 0, True), (5000, 50, True), (5000, 51, False), (999, 0, False), (0, 0, False)],
)
def test_a_site_is_cold_if_a_function_that_often_runs_seldom_reaches_it(
    entries: int, reached: int, cold: bool
) -> None:
    logs = log(INLINED | {"caller": HOT, "callee": LEAF})
    counts = Calls({(HOT, LEAF): reached} if reached else {}, {HOT: entries, LEAF: reached})
    written = written_calls(logs, counts)
    assert bool(cold_sites(logs, written)) == cold
    assert list(proposal(logs, Calls(), written, 1e8, 0).values()) == [False] * cold
    assert not proposal(logs, Calls(), None, 1e8, 0)  # the run of this build does not tell


def test_small_sites_and_those_that_drop_their_callee_are_left_alone() -> None:
    logs = log(
        INLINED | {"caller": HOT, "callee": LEAF, "cost_estimate": 10},
        INLINED | {"caller": HOT, "callee": LARGE, "callee_disappears": 1},
        INLINED | {"caller": HOT, "callee": OTHER},
    )
    counts = Calls({}, dict.fromkeys((HOT, LEAF, LARGE, OTHER), 5000))
    assert [site.key.number for site in cold_sites(logs, written_calls(logs, counts))] == [3]


def test_a_copy_is_cold_where_its_call_was_written() -> None:
    logs = log(
        INLINED | {"caller": OTHER, "callee": LEAF},
        INLINED | {"caller": HOT, "callee": LEAF, "copy_of": 1},
        INLINED | {"caller": HOT, "callee": LEAF, "copy_of": 2},
        INLINED | {"caller": HOT, "callee": LEAF, "copy_of": 99},
    )
    counts = Calls({(HOT, LEAF): 9000}, {HOT: 9000, OTHER: 9000, LEAF: 9000})
    written = written_calls(logs, counts)
    # Of the last one it is not known where it was written.
    assert [site.key.number for site in cold_sites(logs, written)] == [1, 2, 3]


def test_of_calls_that_are_not_written_so_nothing_is_known() -> None:
    logs = log(INLINED | {"caller": HOT, "callee": LEAF})
    others = log(INLINED | {"caller": OTHER, "callee": LEAF})
    counts = Calls({}, {HOT: 9000, LEAF: 9000})
    assert not cold_sites(logs, written_calls(others, counts))


def test_keeping_a_call_did_not_pay_where_what_holds_it_takes_more() -> None:
    logs = log(
        INLINED | {"caller": HOT, "callee": LEAF},
        INLINED | {"caller": COLD, "callee": HOT},
        INLINED | {"caller": OTHER, "callee": LEAF},
    )
    overrides = {site.key: False for site in sites_of(logs) if site.key.number != 2}
    before = {HOT: 100.0, COLD: 50.0, OTHER: 80.0}
    after = {HOT: 95.0, COLD: 60.0, OTHER: 75.0}
    vain = vain_cold_sites(logs, Reach(logs), overrides, before, after)
    assert [key.number for key in vain] == [1]


def test_inlining_that_did_not_pay_is_told_by_its_caller() -> None:
    logs = log({"caller": HOT, "callee": LEAF}, {"caller": OTHER, "callee": LEAF})
    calls = Calls({(HOT, LEAF): 300, (OTHER, LEAF): 100}, {})
    overrides = {site.key: True for site in sites_of(logs)}
    before = {HOT: 100.0, OTHER: 100.0, LEAF: 40.0}
    after = {HOT: 125.0, OTHER: 115.0, LEAF: 0.0}  # 30 of the 40 are those of the first
    vain = vain_sites(logs, calls, overrides, before, after)
    assert [key.number for key in vain] == [2]


def test_callers_inlined_into_one_another_are_judged_together() -> None:
    logs = log({"caller": HOT, "callee": OTHER}, {"caller": OTHER, "callee": LEAF})
    calls = Calls({(HOT, OTHER): 10, (OTHER, LEAF): 10}, {})
    overrides = {site.key: True for site in sites_of(logs)}
    before = {HOT: 100.0, OTHER: 100.0, LEAF: 40.0}
    assert not vain_sites(logs, calls, overrides, before, {HOT: 230.0})
    assert len(vain_sites(logs, calls, overrides, before, {HOT: 250.0})) == 2


@pytest.mark.parametrize(
    ("entries", "score", "turned"),
    [(0, 1e6, False), (3, 1e4, False), (3, 1e6, True), (1000, 1e4, True), (999, 1e4, False)],
)
def test_nothing_is_taken_back_in_a_caller_of_which_the_run_tells_little(
    entries: int, score: float, turned: bool
) -> None:
    logs = log(
        INLINED | {"caller": HOT, "callee": LEAF},
        INLINED | {"caller": OTHER, "callee": LEAF},
    )
    functions = {HOT: 2e6, OTHER: score, LEAF: 10.0}
    calls = Calls(CALLS.edges, {HOT: 1, OTHER: entries, LEAF: 5000})
    found = SpeedMoves().candidates(logs, SiteReach(logs), 1.0, evidence=Evidence(functions, calls))
    assert [one.move.key.number for one in found.every] == [1, 2][: 1 + turned]


def test_what_was_found_of_a_move_holds_in_every_process() -> None:
    """A search goes on from a file, and Python's own hash may be another there."""
    logs = log({"caller": HOT, "callee": OTHER}, INLINED | {"caller": HOT, "callee": LEAF})
    evidence = Evidence({HOT: 2e6}, Calls({(HOT, OTHER): 1_000_000}, {HOT: 1, OTHER: 1_000_000}))
    found = SpeedMoves().candidates(logs, SiteReach(logs), 1.0, evidence=evidence)
    kept, inlined = (number.to_bytes(9, "little") for number in (1 << 1, 2 << 1 | 1))
    answers = xxhash.xxh3_64_intdigest(kept) ^ xxhash.xxh3_64_intdigest(inlined)
    assert [one.context for one in found.every] == [answers, answers]


def test_calls_that_are_taken_back_free_code() -> None:
    logs = log({"caller": HOT, "callee": OTHER}, INLINED | {"caller": HOT, "callee": LEAF})
    calls = Calls({(HOT, OTHER): 1_000_000}, {HOT: 1, OTHER: 1_000_000})
    evidence = Evidence({HOT: 2e6, OTHER: 2e6, LEAF: 10.0}, calls)
    found = SpeedMoves().candidates(logs, SiteReach(logs), 1.0, evidence=evidence)
    assert {one.move.answer: one.frees for one in found.every} == {True: False, False: True}


@pytest.mark.parametrize(
    ("entries", "written", "change", "turned"),
    [
        (1000, 0, {}, True),
        (999, 0, {}, False),
        (None, 1000, {}, True),  # inlined everywhere: nothing is entered any more
        (None, 999, {}, False),
        (1000, 0, {"cost_estimate": 30}, False),  # costs what its call does
        (1000, 0, {"callee_disappears": 1, "callee_is_local": 1}, False),
    ],
)
def test_what_frees_code_where_little_runs_is_tried_beside_others(
    entries: int | None, written: int, change: dict[str, int], turned: bool
) -> None:
    logs = log(
        INLINED | {"caller": HOT, "callee": LEAF},
        INLINED | {"caller": OTHER, "callee": LEAF} | change,
    )
    functions = {HOT: 2e6, OTHER: 1e3, LEAF: 10.0}
    calls = Calls({}, {HOT: 1} | ({} if entries is None else {OTHER: entries}))
    evidence = Evidence(functions, calls, written=Calls({}, {OTHER: written}))
    found = SpeedMoves().candidates(logs, SiteReach(logs), 1.0, evidence=evidence)
    assert [one.move.key.number for one in found.besides] == [2][:turned]
