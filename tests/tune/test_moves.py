"""Moves of inlining on the real compiler: last calls, components, and pairs."""

from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.policy.names import DEFAULT
from nestor.problems.inlining_size.search.components import components_of
from nestor.problems.inlining_size.search.moves import FAR_FROM_DEFAULT, SiteMoves
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import Site, effective, pins_of, sites_of
from nestor.tune.moves import Candidate, Move
from nestor.tune.state import Tried
from nestor.tune.steps.pairs import pairs


def named(build: ProgramBuild, name: str) -> int:
    """Return the id of a function."""
    names = {n: i for log in build.trajectories.values() for i, n in log.names.items()}
    return names[name]


def test_the_last_call_of_a_large_function_is_tried_first(
    builder: tuple[ProgramBuilder, SiteMoves],
) -> None:
    made, moves = builder
    stock = made.build({})
    (site,) = [s for s in sites_of(stock.trajectories) if s.callee == named(stock, "large")]
    assert site.cost > FAR_FROM_DEFAULT
    assert not site.answer

    def singles(source: SiteMoves, group: int) -> set[Key]:
        found = source.candidates(stock.trajectories, source.reach(stock.trajectories), 30.0)
        return {candidate.move.key for candidate in (*found.first, *found.turns)[group]}

    assert site.key in singles(moves, 0), "with a summary it comes before all others"
    without = SiteMoves()
    assert all(site.key not in singles(without, group) for group in range(4))
    inlined = made.build({site.key: True})
    assert inlined.total < stock.total, "the function is gone"


def test_the_only_site_of_a_callee_decides_about_the_callee(
    builder: tuple[ProgramBuilder, SiteMoves],
) -> None:
    made, moves = builder
    stock = made.build({})
    sites = sites_of(stock.trajectories)
    callees = [site.callee for site in sites]
    only = {site.key for site in sites if callees.count(site.callee) == 1}
    found = moves.candidates(stock.trajectories, moves.reach(stock.trajectories), 30.0)
    first, second = ({c.move.key for c in group} for group in found.turns)
    assert only & first
    assert not only & second
    assert all(key.kind == "callee" for key in first - only)


def test_a_small_component_is_moved_as_a_whole(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    made, moves = builder
    stock = made.build({})
    (component,) = [
        c
        for c in components_of(sites_of(stock.trajectories))
        if named(stock, "twice") in c.functions
    ]
    found = moves.candidates(stock.trajectories, moves.reach(stock.trajectories), 30.0, exact=6)
    whole = [c for c in found.first[1] if c.move.part == component.number]
    count = 2 ** len(component.sites)
    assert count - 1 <= len(whole) <= count, "one is there already, unless copies are answered"
    assert len({candidate.move.identity for candidate in whole}) == len(whole)
    keys = {site.key for site in component.sites}
    single = [c.move.key for group in (found.first[0], *found.turns) for c in group]
    assert keys.isdisjoint(single), "its sites are not moved one by one as well"
    for answers in list(component.answered)[:6]:
        build = made.build(dict(component.move(answers).overrides))
        now = {site.key: site.answer for site in sites_of(build.trajectories)}
        wanted = dict(zip((site.key for site in component.sites), answers, strict=True))
        assert {key: now[key] for key in wanted if key in now} == {
            key: answer for key, answer in wanted.items() if key in now
        }


def test_answers_that_stay_compile_nothing(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    made, _ = builder
    stock = made.build({})
    pins = pins_of(stock.trajectories)
    assert pins
    assert made.build(pins).total == stock.total
    assert made.rollouts == 1, "every answer is what it was"
    site = next(key for key, answer in pins.items() if not answer)
    made.build(pins | {site: True})
    assert made.rollouts == 2
    made.build({})
    assert made.rollouts == 2


def test_an_answer_for_one_module_counts_there_only(
    builder: tuple[ProgramBuilder, SiteMoves],
) -> None:
    made, _ = builder
    trajectories = made.build({}).trajectories
    (module,) = (trajectory.facts["module"] for trajectory in trajectories.values())
    site = next(key for key, answer in pins_of(trajectories).items() if not answer)
    made.build({Key(site.kind, site.number, module ^ 1): True})
    assert made.rollouts == 1, "it is about another module"
    made.build({Key(site.kind, site.number, module): True})
    assert made.rollouts == 2
    made.build({site: True})
    assert made.rollouts == 2, "for all modules it is the same answer here"


def test_what_changes_no_answer_is_left_out(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    made, _ = builder
    stock = made.build({})
    sites = sites_of(stock.trajectories)
    needless = {Key("callee", site.callee): site.answer for site in sites}
    (large,) = [site for site in sites if site.callee == named(stock, "large")]
    build = made.build({**needless, Key("callee", large.callee): True})
    left = effective(build.overrides, build.trajectories, DEFAULT)
    assert left[Key("callee", large.callee)] is True
    assert len(left) < len(build.overrides)
    assert made.build(left).objects == build.objects


def candidate(number: int, caller: int, context: int = 7) -> Candidate:
    """Return the move of one site in a function."""
    key = Key("site-only", number)
    site = Site(key, False, False, ("m", number), caller, 100 + number, 9, 0.0)
    near = frozenset({caller, 100 + number})
    return Candidate(Move.one(key, True, (site,)), near, 0.5, context, near)


def test_pairs_are_neighbours_that_did_not_pay_alone() -> None:
    one, other, elsewhere, untried, changed = (
        candidate(1, caller=1), candidate(2, caller=1), candidate(3, caller=2),
        candidate(4, caller=1), candidate(5, caller=1, context=8),
    )  # fmt: skip
    tried = {c.move.identity: Tried(7, 1, 10.0) for c in (one, other, elsewhere, changed)}
    (pair,) = pairs([one, other, elsewhere, untried, changed], tried, scale=40.0)
    assert dict(pair.move.overrides) == {one.move.key: True, other.move.key: True}
    assert pair.distance == 0.5
    assert pair.claims == one.claims | other.claims
