"""Builds of moves that change what the heuristic answers elsewhere, on the real compiler."""

from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.problems.inlining_size.search.moves import SiteMoves
from nestor.problems.inlining_size.search.sites import sites_of
from nestor.tune.moves import Move
from nestor.tune.steps.builds import StepBuilds


def answers(build: ProgramBuild) -> dict[tuple[str, str], bool]:
    """Return the answer to each call by the names of caller and callee."""
    names = {i: n for log in build.trajectories.values() for i, n in log.names.items()}
    return {
        (names[site.caller], names[site.callee]): bool(site.answer)
        for site in sites_of(build.trajectories)
    }


def other_way(build: ProgramBuild, caller: str, callee: str) -> Move:
    """Return the move that answers a call otherwise."""
    names = {n: i for log in build.trajectories.values() for i, n in log.names.items()}
    ends = names[caller], names[callee]
    (site,) = [s for s in sites_of(build.trajectories) if (s.caller, s.callee) == ends]
    return Move.one(site.key, not site.answer, (site,))


def test_the_held_build_differs_from_the_verified_one_by_the_moves_alone(
    builder: tuple[ProgramBuilder, SiteMoves],
) -> None:
    made, moves = builder
    stock = made.build({})
    move = other_way(stock, "first", "twice")
    free, held = StepBuilds(made, moves, stock, hold=True).to_verify([move])
    assert answers(stock)["main", "first"]
    assert not answers(free)["main", "first"], "the call in it costs more than what it saves"
    now = answers(held)
    assert now == answers(stock) | {("first", "twice"): False, ("main", "twice"): True}

    assert len(held.overrides) == 2, "the move, and what would have been answered otherwise"
    rollouts = made.rollouts
    assert made.build(held.overrides).objects == held.objects
    assert made.rollouts == rollouts, "the compile under all held answers serves"
    made.keep_only({})
    assert made.build(held.overrides).objects == held.objects
    assert made.rollouts == rollouts + 1, "compiled under these overrides alone"


def test_all_other_questions_are_free_where_nothing_is_held(
    builder: tuple[ProgramBuilder, SiteMoves],
) -> None:
    made, moves = builder
    stock = made.build({})
    move = other_way(stock, "first", "twice")
    (free,) = StepBuilds(made, moves, stock, hold=False).to_verify([move])
    assert not answers(free)["main", "first"]


def test_a_move_that_changes_no_other_answer_is_built_once(
    builder: tuple[ProgramBuilder, SiteMoves],
) -> None:
    made, moves = builder
    stock = made.build({})
    move = other_way(stock, "middle", "large")
    (build,) = StepBuilds(made, moves, stock, hold=True).to_verify([move])
    assert dict(build.overrides) == {move.key: True}
