"""A portfolio file is to the compiler what its members are, named one by one."""

import pytest

from nestor.policy.portfolio import portfolio_of
from tests.plugin.regalloc.support import (
    EVICTION,
    PRIORITY,
    Allocator,
    Deciders,
    least,
    linear,
    ratio,
)

EVICTORS = [
    linear(EVICTION, {"position": position, "is_own": own, "use_def_density": density})
    for position, own, density in ((0.1, 0, -1), (-1, 0, 0), (-0.1, 0, -1))
]
ORDERERS = [
    linear(PRIORITY, {"li_size": size, "weight": weight}) for size, weight in ((-1, 0), (0, 1))
]
EVICTION_PORTFOLIO = portfolio_of(EVICTORS, {})
PRIORITY_PORTFOLIO = portfolio_of(ORDERERS, {})


@pytest.mark.parametrize(
    "options",
    [[], ["-nestor-best"], ["-nestor-allocation-search=20", "-nestor-allocation-moves=both"]],
    ids=["alone", "best", "search"],
)
def test_a_portfolio_gives_the_objects_of_its_members(
    allocator: Allocator, options: list[str]
) -> None:
    separate = options if any("search" in word for word in options) else ["-nestor-best"]
    objects = set()
    pairs: list[tuple[Deciders, Deciders]] = [
        ({"evict": EVICTORS}, {"evict": [EVICTION_PORTFOLIO]}),
        ({"order": ORDERERS}, {"order": [PRIORITY_PORTFOLIO]}),
        (
            {"evict": EVICTORS, "order": ORDERERS},
            {"evict": [EVICTION_PORTFOLIO], "order": [PRIORITY_PORTFOLIO]},
        ),
    ]
    for several, whole in pairs:
        expected = allocator.functions(*separate, **several)
        assert allocator.functions(*options, **whole) == expected
        code = allocator.compile(*options, **whole).bytes
        assert code == allocator.compile(*separate, **several).bytes
        objects.add(code)
    assert allocator.stock() not in objects
    assert len(objects) > 1


def test_a_portfolio_is_never_worse_than_its_members(allocator: Allocator) -> None:
    """By static cost, in each function, and without ``-nestor-best``."""
    stock = allocator.functions(evict=["default"])
    alone = [allocator.functions(evict=[policy]) for policy in EVICTORS]
    chosen = set()
    for name, function in allocator.functions(evict=[EVICTION_PORTFOLIO]).items():
        first = stock[name]["cost"]
        ratios = [ratio(other[name]["cost"], first) for other in (stock, *alone)]
        assert ratio(function["cost"], first) == least(ratios)
        chosen.add(function["alternative"])
    assert chosen == {0, 1, 3}  # no member is the best of all functions


def test_a_portfolio_beside_other_policies(allocator: Allocator) -> None:
    """A file of one member is that policy; members and policies count in the order of the files."""
    first, *others = EVICTORS
    one = allocator.compile(evict=[portfolio_of([first], {})]).bytes
    assert one == allocator.compile(evict=[first]).bytes != allocator.stock()
    mixed = allocator.functions("-nestor-best", evict=[first, portfolio_of(others, {})])
    assert mixed == allocator.functions("-nestor-best", evict=EVICTORS)


def test_pairs_are_tried_that_hold_the_cheapest_single_policy(allocator: Allocator) -> None:
    # By number; 0 is stock.
    names = [(evict, order) for order in range(3) for evict in range(4)]
    paired = 0
    for function in allocator.functions("-nestor-best", evict=EVICTORS, order=ORDERERS).values():
        if "tried" not in function:
            continue
        costs = dict(zip(names, function["tried"], strict=True))
        single = {name: cost for name, cost in costs.items() if 0 in name}
        evict, order = min(single, key=lambda name: single[name])
        if least([*single.values()]) == 1:
            evict, order = 0, 0
        for name in costs.keys() - single.keys():
            wanted = (name[0] == evict) or (name[1] == order)
            assert (costs[name] is not None) == wanted, name
            paired += wanted
    assert paired
