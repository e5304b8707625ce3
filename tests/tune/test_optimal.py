"""Exact optima of call graphs of a few sites, on values that a function gives (no compiler)."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.optimal.graph import Graph, Inlined, autotuner, optimum, value
from benchmarks.optimal.record import Part, Record, load, record_path
from benchmarks.optimal.report import distinct, rows

CHAIN = Graph(((1, 2), (2, 3), (3, 4)))
TWO_CALLS = Graph(((1, 3), (2, 3)))


def test_only_joined_calls_are_measured() -> None:
    found = {tuple(sorted(cluster)) for cluster in CHAIN.clusters()}
    assert found == {(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)}, "not the first and the last"
    assert CHAIN.parts(frozenset({0, 2})) == [frozenset({0}), frozenset({2})]
    assert CHAIN.of_cluster(frozenset({0, 1})) == {1, 2, 3}


def test_copies_of_calls_are_answered_too() -> None:
    """Inlining the first call copies the second one; its callee may have inlined the third."""
    graph = Graph((*CHAIN.sites, (1, 3)), copies=1)
    first, second, third, copy = (frozenset({n}) for n in range(4))
    assert list(graph.clusters()) == list(CHAIN.clusters()), "those of the source"
    kept = frozenset[int]()
    offers = dict.fromkeys(graph.clusters(), kept) | {first: copy}
    further = set(graph.with_copies(offers))
    assert further == {first | copy, first | third | copy}
    assert not set(graph.with_copies(offers | dict.fromkeys(further, kept)))
    values = dict.fromkeys(graph.clusters(), 10.0) | {second: -5.0, first | third | copy: -7.0}
    assert optimum(graph, values) == (first | third | copy, -7.0)
    assert optimum(graph, values | {third: -3.0, first: -1.0, first | copy: -5.0}) == (
        first | third | copy,
        -7.0,
    )
    assert optimum(graph, values | {third: -3.0, first: -6.0}) == (first | third, -9.0)
    tuned = autotuner(graph, values, kept)
    assert tuned[0].compiles == 0
    assert [r.value for r in tuned][-1] == -5.0, "it keeps copies"


def test_the_autotuner_misses_what_takes_two_flips() -> None:
    """A copy costs 10 each, and the function of 50 goes away when both calls are inlined."""
    values = {frozenset({0}): 10.0, frozenset({1}): 10.0, frozenset({0, 1}): 20.0 - 50.0}
    assert optimum(TWO_CALLS, values) == (frozenset({0, 1}), -30.0)
    none: Inlined = frozenset()
    assert [r.value for r in autotuner(TWO_CALLS, values, none)] == [0.0]
    from_one = autotuner(TWO_CALLS, values, frozenset({0}))
    assert from_one[1].compiles == 3, "a compile for each call, and one for the flips together"
    # Either flip pays, and both together undo each other.
    assert from_one[-1].value == 10.0


def two_calls(key: int, **measured: float) -> Part:
    """Return a component whose optimum inlines both calls, what it weighs in whole builds."""
    values = {frozenset({0}): 10.0, frozenset({1}): 10.0, frozenset({0, 1}): -30.0}
    return Part(
        TWO_CALLS,
        (key, key + 1),
        (20, 20),
        {"gc": 200.0},
        {cluster: {"gc": bytes_} for cluster, bytes_ in values.items()},
        dict.fromkeys(values, frozenset()),
        True,
        {name.replace("_", " "): {"gc": bytes_} for name, bytes_ in measured.items()},
        (False, False),
    )


def test_the_report_compares_with_the_optimum(tmp_path: Path) -> None:
    """Of two gaps of 30 bytes the search closes one; the autotuner, from stock, none."""
    closed = two_calls(1, default=200.0, shipped=220.0, tune_25=170.0)
    left = two_calls(3, default=200.0, shipped=200.0, tune_25=200.0)
    again = two_calls(1, default=200.0, shipped=0.0, tune_25=0.0)
    records = [Record("a/a", "c", "-Oz", [closed, left]), Record("a/b", "c", "-Oz", [again])]
    for record in records:
        record.save(record_path(tmp_path, record.program))
    read = [load(record_path(tmp_path, record.program)) for record in records]
    assert read == records
    assert distinct(read) == [closed, left], "what two programs link counts once"
    found = {row.name: row for row in rows(read, "gc")}
    assert found["tune 25"].closed == found["tune 25"].optimal == 50.0
    assert found["tune 25"].larger == found["tune 25"].beyond == 0
    assert found["shipped"].closed == 100 * -20 / 60
    assert found["shipped"].larger == 1
    assert found["shipped"].beyond is None, "it is no search"
    assert found["autotuner, 100"].closed == 0.0, "it takes two flips at once"
    assert {row.with_gap for row in found.values()} == {2}
    worse = Record("a/a", "c", "-Oz", [two_calls(1, default=230.0, tune_25=230.0)])
    (row,) = [row for row in rows([worse], "gc") if row.name == "tune 25"]
    assert row.beyond == 1, "where stock is worse than nothing inlined, the autotuner is better"


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5),
    st.data(),
)
def test_the_optimum_is_the_least_of_all_answers(
    sites: list[tuple[int, int]], data: st.DataObject
) -> None:
    graph = Graph(tuple(sites))
    values = {
        cluster: float(data.draw(st.integers(-50, 50), label=str(sorted(cluster))))
        for cluster in graph.clusters()
    }
    best, least = optimum(graph, values)
    assert value(graph, values, best) == least
    assert least == min(value(graph, values, inlined) for inlined in graph.assignments())
    for tuned in autotuner(graph, values, frozenset()):
        assert least <= tuned.value <= 0
