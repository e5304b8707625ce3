"""Exact optima of call graphs of a few sites, on values that a function gives (no compiler)."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.optimal.graph import Graph, Inlined, autotuner, optimum, value

CHAIN = Graph(((1, 2), (2, 3), (3, 4)))
TWO_CALLS = Graph(((1, 3), (2, 3)))


def test_only_joined_calls_are_measured() -> None:
    found = {tuple(sorted(cluster)) for cluster in CHAIN.clusters()}
    assert found == {(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)}, "not the first and the last"
    assert CHAIN.parts(frozenset({0, 2})) == [frozenset({0}), frozenset({2})]
    assert CHAIN.of_cluster(frozenset({0, 1})) == {1, 2, 3}


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
