"""In which order moves are tried, and which of them are worth a compile."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from nestor.problems.inlining_size.search.overrides import Key
from nestor.tune.moves import Candidate, Candidates, Move
from nestor.tune.search import SearchSettings
from nestor.tune.state import Tried
from nestor.tune.steps.order import Order


def candidate(number: int, *units: str, distance: float = 0.0) -> Candidate:
    """Return the move of one site that these units ask about."""
    move = Move.one(Key("site-only", number), True, ())
    return Candidate(move, frozenset({number}), distance, units=frozenset(units))


def order(
    moves: Sequence[Candidate],
    savings: Sequence[float] | None,
    covered: float = 0.8,
    pairs: Sequence[Candidate] = (),
) -> Order:
    """Return the order of some moves, in which chance plays no part."""
    settings = SearchSettings(chance=0.0, covered=covered)
    expected = None if savings is None else np.array(savings, float)
    rng = np.random.default_rng(0)
    return Order(Candidates([moves[:1]], [moves[1:]], pairs), expected, len, settings, rng)


def test_moves_come_by_what_they_may_be_expected_to_save() -> None:
    little, more, most = (candidate(number, "a") for number in range(3))
    assert list(order([little, more, most], [1.0, 2.0, 5.0]).open(0, {})) == [most, more, little]
    pair = candidate(9, "a")
    found = order([little, more], [1.0, 2.0, 1.5], pairs=[pair])
    assert list(found.open(0, {})) == [more, pair, little], "groups do not count"


def test_a_move_that_excludes_many_others_must_save_more() -> None:
    wide = replace(candidate(1, "a"), claims=frozenset(range(16)))
    narrow = candidate(20, "a")
    assert list(order([wide, narrow], [3.9, 1.0]).open(0, {})) == [narrow, wide]
    assert list(order([wide, narrow], [4.1, 1.0]).open(0, {})) == [wide, narrow]


def test_without_savings_groups_come_in_turn() -> None:
    far, near, first = candidate(1, distance=1.0), candidate(2, distance=0.1), candidate(3)
    assert list(order([first, far, near], None).open(0, {})) == [first, near, far]


def test_what_was_tried_is_not_tried_again() -> None:
    settled, unclear, elsewhere = (candidate(number, "a") for number in range(3))
    tried = {
        settled.move.identity: Tried(0, 1, 12.0),
        unclear.move.identity: Tried(0, 1, None),
        elsewhere.move.identity: Tried(1, 1, 12.0),
    }
    found = order([settled, unclear, elsewhere], [9.0, 3.0, 1.0])
    assert list(found.open(0, tried)) == [elsewhere, unclear], "a second try promises a quarter"
    tried[unclear.move.identity] = Tried(0, 3, None)
    assert list(found.open(0, tried)) == [elsewhere]


def test_units_that_promise_little_are_left_out() -> None:
    rich, also, poor = candidate(1, "a"), candidate(2, "a"), candidate(3, "b")
    found = order([rich, also, poor], [6.0, 0.1, 1.0])
    assert found.worth_compiling([poor, rich, also]) == [rich, also], (
        "a unit that is compiled anyway tries all of its moves"
    )
    assert found.worth_compiling([poor]) == [poor], "what is left is tried in the end"
    assert found.worth_compiling([]) == []


@pytest.mark.parametrize(("covered", "all_of_them"), [(0.8, False), (0.95, True)])
def test_a_move_of_several_units_needs_all_of_them(covered: float, all_of_them: bool) -> None:
    shared, single, other = candidate(1, "a", "b"), candidate(2, "a"), candidate(3, "c")
    moves = [shared, single, other]
    found = order(moves, [2.0, 4.0, 4.0], covered)
    assert found.worth_compiling(moves) == (moves if all_of_them else [single, other])


@pytest.mark.parametrize("savings", [[9.0, 8.0, 2.0, 1.0], None])
def test_what_frees_comes_first_where_room_is_short(savings: list[float] | None) -> None:
    near, far = candidate(1, "a"), candidate(2, "a", distance=0.2)
    frees = replace(candidate(3, "b", distance=0.5), frees=True)
    frees_less = replace(candidate(4, "c", distance=0.6), frees=True)
    found = order([near, far, frees, frees_less], savings)
    assert list(found.open(0, {})) == [near, far, frees, frees_less]
    assert list(found.open(0, {}, frees_first=True)) == [frees, frees_less, near, far]


def test_where_room_is_short_units_of_what_frees_are_compiled() -> None:
    saves, frees = candidate(1, "a"), replace(candidate(2, "b"), frees=True)
    found = order([saves, frees], [9.0, 1.0])
    assert found.worth_compiling([saves, frees]) == [saves]
    assert found.worth_compiling([saves, frees], frees_first=True) == [frees]
    assert found.worth_compiling([saves], frees_first=True) == [saves], "nothing frees"


def test_without_savings_every_move_is_tried() -> None:
    moves = [candidate(1, "a"), candidate(2)]
    assert order(moves, None).worth_compiling(moves) == moves
