"""Which moves to make where another column has a limit: a knapsack of what they were found to do.

A move saves some of the score for some of the limited column, or pays with the one for the other.
At a price of the column each is worth making or not (the column's Lagrange multiplier; Everett,
"Generalized Lagrange multiplier method", 1963); the least price is sought at which what is worth
making holds the limit. What only frees the column is made where others need it. Few large moves do
not add up to the limit at any price; so what saves is also taken one by one, each with what frees
room for it, and the better of the two is the choice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from nestor.tune.moves import Candidate

_RAISE: Final = 1.3
"""From one price to the next."""
_HIGHEST: Final = 1e4
"""Times the least price: beyond, nothing is worth making."""
_LEAST_PRICE: Final = 0.2
"""Where there is room, as a part of the price at which moves are tried."""


@dataclass(frozen=True)
class Offer:
    """Moves that were tried together, and what they change."""

    moves: tuple[Candidate, ...]
    change: float
    """Of the score; negative is a saving."""
    amount: float
    """Of the limited column."""

    @property
    def claims(self) -> frozenset[int]:
        """The functions that no other move may reach."""
        return frozenset[int]().union(*(candidate.claims for candidate in self.moves))


def excluding(claims: int) -> float:
    """Return what to divide the worth of a move by that claims so many functions.

    In the order of the quotients a greedy packing of sets does best (Lehmann, O'Callaghan and
    Shoham, "Truth revelation in approximately efficient combinatorial auctions", 2002).
    """
    return math.sqrt(max(1, claims))


@dataclass(frozen=True)
class Choice:
    """What to make of what was found, and what instead if a build of it says otherwise."""

    every: Sequence[Offer]
    room: float
    """What of the limited column may be taken."""
    price: float
    """Of a unit of the column, in the score's units, where moves are tried."""

    @cached_property
    def offers(self) -> list[Offer]:
        """Of disjoint reaches, those that save most together and have room; none if none saves."""
        least = price = _LEAST_PRICE * self.price
        saving = [offer for offer in _worth(self.every, least) if offer.change < 0]
        if sum(offer.amount for offer in saving) <= self.room:
            return saving
        while price < _HIGHEST * least:
            chosen = _worth(self.every, price)
            if sum(offer.amount for offer in chosen) <= self.room:
                break
            price *= _RAISE
        else:
            chosen = []
        return min(chosen, _one_by_one(self.every, self.room), key=_saved)

    @property
    def is_short(self) -> bool:
        """Whether more saves than there is room for."""
        saving = _worth([offer for offer in self.every if offer.change < 0], 0.0)
        return sum(offer.amount for offer in saving) > self.room

    def with_less_room(self, over: float) -> "Choice":
        """Return the choice where a build took so much more than there was."""
        return replace(self, room=self.room - over)

    def of_the_surest(self) -> "Choice":
        """Return the choice where the offers did not save: of the half that saves most.

        What only frees the column stays.
        """
        saving = sorted(offer.change for offer in self.offers if offer.change < 0)
        sure = saving[len(saving) // 2 - 1] if len(saving) > 1 else -math.inf
        return replace(self, every=[o for o in self.every if o.change <= sure or o.change >= 0])


def _saved(offers: Sequence[Offer]) -> float:
    return sum(offer.change for offer in offers)


def _one_by_one(offers: Sequence[Offer], room: float) -> list[Offer]:
    """Return what saves, best for its amount first, each with the cheapest that frees room."""
    frees = sorted(
        (offer for offer in offers if offer.amount < 0 <= offer.change),
        key=lambda offer: offer.change / -offer.amount,
    )
    saves = sorted(
        (offer for offer in offers if offer.change < 0),
        key=lambda offer: offer.change / offer.amount if offer.amount > 0 else -math.inf,
    )
    chosen: list[Offer] = []
    claimed: frozenset[int] = frozenset()
    for offer in saves:
        if not claimed.isdisjoint(offer.claims):
            continue
        own, claims = [offer], claimed | offer.claims
        for other in frees:
            if sum(one.amount for one in own) <= room:
                break
            if claims.isdisjoint(other.claims):
                own.append(other)
                claims |= other.claims
        amount = sum(one.amount for one in own)
        if amount <= room and _saved(own) < 0:
            chosen += own
            claimed = claims
            room -= amount
    return chosen


def _worth(offers: Sequence[Offer], price: float) -> list[Offer]:
    """Return what is worth making at ``price``, the best of those that exclude one another."""
    chosen: list[Offer] = []
    claimed: set[int] = set()
    worth = [
        ((offer.change + price * offer.amount) / excluding(len(offer.claims)), number)
        for number, offer in enumerate(offers)
    ]
    for value, number in sorted(worth):
        if value >= 0:
            break
        claims = offers[number].claims
        if claimed.isdisjoint(claims):
            claimed |= claims
            chosen.append(offers[number])
    return chosen
