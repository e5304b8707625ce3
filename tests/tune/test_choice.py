"""What saves most within a limit is chosen, and what frees the limited column pays for it."""

import numpy as np
import pytest

from nestor.tune.moves import Candidate, Move
from nestor.tune.steps.choice import Choice, Offer


def offer(change: float, amount: float, *claims: int) -> Offer:
    return Offer((Candidate(Move((), ()), frozenset(claims), 0.0, 0),), change, amount)


SAVES, SAVES_LESS = offer(-10.0, 5.0, 1), offer(-4.0, 4.0, 2)
FREES, FREES_DEARLY = offer(1.0, -6.0, 3), offer(8.0, -6.0, 4)
FREES_CHEAPLY = offer(0.001, -6.0, 7)
SAVES_BOTH, COSTS_BOTH = offer(-1.0, -1.0, 5), offer(1.0, 1.0, 6)


@pytest.mark.parametrize(
    ("offers", "room", "chosen"),
    [
        ([SAVES, SAVES_LESS, COSTS_BOTH], 9.0, [SAVES, SAVES_LESS]),
        ([SAVES, SAVES_LESS], 8.0, [SAVES]),
        ([SAVES, SAVES_LESS], 4.0, [SAVES_LESS]),
        ([SAVES, SAVES_LESS], 3.0, []),
        ([SAVES, SAVES_LESS, FREES, FREES_DEARLY], 4.0, [SAVES, SAVES_LESS, FREES]),
        ([SAVES, FREES, FREES_DEARLY], 0.0, [SAVES, FREES]),
        ([SAVES, FREES_DEARLY], 0.0, [SAVES, FREES_DEARLY]),
        ([SAVES_LESS, FREES_DEARLY], 0.0, []),
        ([SAVES, FREES_CHEAPLY], 0.0, [SAVES, FREES_CHEAPLY]),
        ([SAVES, FREES_CHEAPLY], 9.0, [SAVES]),
        ([FREES, FREES_DEARLY], 9.0, []),
        ([SAVES_BOTH, COSTS_BOTH], 0.0, [SAVES_BOTH]),
        ([], 1.0, []),
    ],
)
def test_what_is_chosen(offers: list[Offer], room: float, chosen: list[Offer]) -> None:
    found = Choice(offers, room, 0.05).offers
    assert sorted(found, key=offers.index) == chosen


@pytest.mark.parametrize(
    ("offers", "room", "short"),
    [
        ([SAVES, SAVES_LESS], 9.0, False),
        ([SAVES, SAVES_LESS], 8.0, True),
        ([SAVES, SAVES_LESS, FREES], 8.0, True),
        ([SAVES, SAVES_BOTH], 4.0, False),
        ([COSTS_BOTH, FREES], 0.0, False),
        ([SAVES, offer(-9.0, 5.0, 1)], 5.0, False),  # one excludes the other
        ([], 0.0, False),
    ],
)
def test_room_is_short_where_not_all_that_saves_fits(
    offers: list[Offer], room: float, short: bool
) -> None:
    assert Choice(offers, room, 0.05).is_short == short


def test_of_what_reaches_the_same_functions_the_best_is_chosen() -> None:
    both = offer(-12.0, 1.0, 1, 2)
    assert Choice([SAVES, both, SAVES_LESS], 9.0, 0.05).offers == [SAVES, SAVES_LESS]
    assert Choice([SAVES, offer(-15.0, 1.0, 1, 2), SAVES_LESS], 9.0, 0.05).offers[0].change == -15.0


def test_a_choice_saves_and_has_room_whatever_is_offered() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        offers = [
            offer(change, amount, *rng.integers(20, size=3).tolist())
            for change, amount in rng.normal(size=(30, 2)).tolist()
        ]
        room = float(rng.normal())
        chosen = Choice(offers, room, 0.05).offers
        claimed = [claim for one in chosen for claim in one.claims]
        assert len(claimed) == len(set(claimed))
        assert sum(one.amount for one in chosen) <= room or not chosen
        assert sum(one.change for one in chosen) < 0 or not chosen


def test_a_choice_that_took_too_much_takes_less() -> None:
    choice = Choice([SAVES, SAVES_LESS, SAVES_BOTH], 9.0, 0.05)
    assert choice.offers == [SAVES, SAVES_LESS, SAVES_BOTH]
    assert choice.with_less_room(2.0).offers == [SAVES, SAVES_BOTH]
    assert choice.with_less_room(9.5).offers == [SAVES_BOTH]


def test_a_choice_that_did_not_save_keeps_the_surest_and_what_frees() -> None:
    choice = Choice([SAVES, SAVES_LESS, SAVES_BOTH, FREES], 3.0, 0.05)
    assert choice.offers == [SAVES, SAVES_LESS, SAVES_BOTH, FREES]
    assert choice.of_the_surest().offers == [SAVES, FREES]
    assert Choice([SAVES, FREES], 0.0, 0.05).of_the_surest().offers == []
