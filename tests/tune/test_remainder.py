"""What flips still save, measured by the real compiler."""

from benchmarks.optimal.remainder import remainder
from nestor.build.incremental import ProgramBuilder
from nestor.problems.inlining_size.search.moves import SiteMoves
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import sites_of
from tests.tune.test_moves import named


def test_it_sees_what_a_search_has_not_tried(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    made, _ = builder
    stock = made.build({})
    sites = sites_of(stock.trajectories)
    (large,) = [site for site in sites if site.callee == named(stock, "large")]
    inlined = made.build({large.key: True})
    found = remainder(made, {})
    assert found.before == stock.total
    assert found.singles == found.sites == len(sites)
    assert found.after <= inlined.total < found.before, "the flip that was not made is among them"
    assert found.better
    assert found.left > 0


def test_nothing_is_left_at_the_end(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    """Flips that pay are made until none is left: then no flip and no pair saves anything."""
    made, _ = builder
    answers: dict[Key, bool] = {}
    while found := remainder(made, answers):
        if not found.left:
            break
        assert found.after < found.before
        answers = dict(found.best)
    assert found.pairs >= 1, "the calls of twice() are neighbours"
    assert made.build(answers).total == found.before == found.after
