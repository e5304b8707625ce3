"""Credit: bytes go to the move that could have changed them, and only to that."""

from hypothesis import given
from hypothesis import strategies as st

from nestor.tune.steps.credit import assign, changes


def test_disjoint_moves_are_paid_apart() -> None:
    changed = changes({1: 100, 2: 50, 3: 10}, {1: 80, 2: 90, 4: 5})
    assert changed == {1: -20, 2: 40, 3: -10, 4: 5}
    credit = assign([frozenset({1, 3}), frozenset({2}), frozenset({9})], changed)
    assert [share.change for share in credit.shares] == [-30, 40, 0]
    assert credit.unexplained == {4}


def test_moves_that_meet_share() -> None:
    credit = assign([frozenset({1, 2}), frozenset({2, 3}), frozenset({4})], {2: -8, 3: 1, 4: 2})
    assert [(share.moves, share.change) for share in credit.shares] == [((0, 1), -7), ((2,), 2)]


reaches = st.lists(st.frozensets(st.integers(0, 20), max_size=6), max_size=12)


@given(reaches, st.dictionaries(st.integers(0, 25), st.integers(-99, 99).filter(bool)))
def test_nothing_is_lost(reaches: list[frozenset[int]], changed: dict[int, float]) -> None:
    credit = assign(reaches, changed)
    paid = sum(share.change for share in credit.shares)
    assert paid + sum(changed[f] for f in credit.unexplained) == sum(changed.values())
    assert sorted(i for share in credit.shares for i in share.moves) == list(range(len(reaches)))
    for share in credit.shares:
        within = frozenset().union(*(reaches[i] for i in share.moves))
        assert share.functions == within & changed.keys()


def test_what_no_move_reaches_goes_to_those_that_may_have_changed_it() -> None:
    reaches = [frozenset({1}), frozenset({2}), frozenset({3})]
    changed = {1: -10.0, 2: -2.0, 3: -1.0, 7: 12.0, 8: 1.0}

    def indirect(move: int, functions: frozenset[int]) -> dict[int, int]:
        own = {0: {7: 1}, 1: {7: 1}, 2: {1: 1, 7: 2}}[move]
        return {function: distance for function, distance in own.items() if function in functions}

    credit = assign(reaches, changed, indirect)
    assert [(share.moves, share.change) for share in credit.shares] == [((0, 1), 0.0), ((2,), -1.0)]
    assert credit.unexplained == {8}
