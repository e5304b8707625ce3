"""The call graph around a site as features."""

import numpy as np

from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.features.neighbourhood import NODE, names, neighbourhood


def log(calls: list[tuple[int, int]], size: dict[int, int]) -> Trajectory:
    """A log with a decision per call, of functions that differ in their code size alone."""
    columns = [f"{end}_{name}" for end in ("caller", "callee") for name in NODE]
    records = np.zeros(len(calls), [(n, "<i8") for n in (*columns, "caller", "callee")])
    for row, (caller, callee) in enumerate(calls):
        records["caller"][row], records["callee"][row] = caller, callee
        records["caller_code_size"][row] = size[caller]
        records["callee_code_size"][row] = size[callee]
    return Trajectory(tuple(columns), records, "inlining_default")


CALLS = [(1, 2), (1, 3), (4, 2), (2, 3), (1, 2)]
SIZE = {1: 1, 2: 3, 3: 7, 4: 15}  # log2(1 + x) is 1, 2, 3, 4


def feature(name: str, hops: int = 1, calls: list[tuple[int, int]] | None = None) -> list[float]:
    values = neighbourhood(log(calls or CALLS, SIZE), hops)
    return [round(float(v), 6) for v in values[:, names(hops).index(name)]]


def test_names_are_those_of_the_columns() -> None:
    for hops in (0, 1, 2):
        assert neighbourhood(log(CALLS, SIZE), hops).shape == (len(CALLS), len(names(hops)))
        assert len(set(names(hops))) == len(names(hops))
    assert set(names(1)) < set(names(2))


def test_a_hop_takes_means_over_neighbours() -> None:
    # 2 calls 3 and is called by 1 and 4; a second call of the same function is no second edge.
    assert feature("callee_of_callees1_code_size") == [3, 0, 3, 0, 3]
    assert feature("callee_of_callers1_code_size") == [2.5, 1.5, 2.5, 1.5, 2.5]
    assert feature("caller_of_callees1_code_size") == [2.5, 2.5, 2, 3, 2.5]
    assert feature("callee_of_callers1") == [round(float(np.log2(3)), 6)] * 5


def test_two_hops_see_the_neighbours_neighbours() -> None:
    seen = feature("caller_of_callees2_callees1_code_size", 2)
    # 1 calls 2 (whose callees' mean is 3) and 3 (which calls nothing).
    assert seen[0] == 1.5
    assert feature("callee_of_callers2_callers1_code_size", 2)[3] == 1.25


def test_the_order_of_the_log_does_not_matter() -> None:
    order = [3, 1, 4, 0, 2]
    whole = neighbourhood(log(CALLS, SIZE), 2)
    turned = neighbourhood(log([CALLS[i] for i in order], SIZE), 2)
    assert np.allclose(turned, whole[order])


def test_an_empty_log_has_no_rows() -> None:
    assert neighbourhood(log([], SIZE), 2).shape == (0, len(names(2)))
