"""What moves may be expected to save: what is known of them, and trees that learn from it."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.search_order import Moves, Recorder, rows, savings_of_first
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.policy.bundle import from_bytes, to_bytes
from nestor.policy.trees import TreesPolicy
from nestor.problems.inlining_size.search import expected
from nestor.problems.inlining_size.search.expected import EXPECTED
from nestor.problems.inlining_size.search.moves import SiteMoves
from nestor.tune.moves import Candidate, Evidence
from nestor.tune.search import SearchSettings
from nestor.tune.state import State, Tried
from nestor.tune.steps.pairs import pairs
from nestor.tune.steps.step import Step


def every(moves: SiteMoves, build: ProgramBuild, exact: int = 0) -> list[Candidate]:
    """Return every move on a build."""
    found = moves.candidates(build.trajectories, moves.reach(build.trajectories), 30.0, exact)
    return [candidate for group in (*found.first, *found.turns) for candidate in group]


def known(
    moves: SiteMoves,
    build: ProgramBuild,
    candidates: list[Candidate],
    tried: Mapping[int, Tried] | None = None,
) -> dict[str, list[float]]:
    """Return the features of moves, by name."""
    reach = moves.reach(build.trajectories)
    x = expected.move_features(
        build.trajectories, candidates, reach, build.functions["gc"], tried or {}
    )
    return {name: x[:, column].tolist() for column, name in enumerate(expected.FEATURES)}


def test_what_is_known_of_a_move(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    made, moves = builder
    build = made.build({})
    candidates = every(moves, build)
    found = known(moves, build, candidates)
    kinds = {"site-only": 0, "callee": 1}
    assert found["kind"] == [kinds[c.move.key.kind] for c in candidates]
    assert found["sites"] == [len(c.move.questions) for c in candidates]
    functions = build.functions["gc"]
    assert found["bytes_reached"] == [
        sum(functions.get(f, 0) for f in c.claims) for c in candidates
    ]
    assert max(found["bytes_reached"]) > 0
    assert set(found["units"]) == {1.0}, "the program has one module"
    assert set(found["tried"]) == set(found["found"]) == {0.0}


def test_what_a_move_was_found_to_do_is_known(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    made, moves = builder
    build = made.build({})
    singles = [c for c in every(moves, build) if c.move.key.kind == "site-only"]
    tried = {c.move.identity: Tried(c.context, 1, 7.0 + n) for n, c in enumerate(singles)}
    found = known(moves, build, singles, tried)
    assert found["tried"] == [1.0] * len(singles)
    assert found["found"] == [7.0 + number for number in range(len(singles))]
    (first, *others) = pairs(singles, tried, 30.0)
    own = [
        tried[c.move.identity].change
        for c in singles
        if c.move.overrides[0] in first.move.overrides
    ]
    found = known(moves, build, [first, *others], tried)
    assert found["kind"][0] == 3
    assert found["found"][0] == sum(change or 0.0 for change in own)


def test_combinations_have_what_their_costs_say(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    made, moves = builder
    build = made.build({})
    combinations = [c for c in every(moves, build, exact=6) if c.move.part is not None]
    found = known(moves, build, combinations)
    assert set(found["kind"]) == {2.0}
    assert len(set(found["believed"])) > 1


def test_trees_learn_which_moves_save_and_keep_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, len(expected.FEATURES)))
    saves = x[:, 3] > 1.0
    saved = np.where(saves & (rng.random(2000) < 0.5), 20.0, 0.0)
    trees = EXPECTED.fit(x, saved, np.ones(2000))
    found = EXPECTED.of(x, trees)
    assert found.min() > 0
    assert found[saves].mean() == pytest.approx(10.0, rel=0.2)
    assert found[~saves].mean() < 1.0
    again = from_bytes(to_bytes(trees))
    assert isinstance(again, TreesPolicy)
    np.testing.assert_array_equal(EXPECTED.of(x, again), found)
    assert len(EXPECTED.of(x[:0], trees)) == 0


def test_the_packaged_trees_are_of_these_features() -> None:
    assert EXPECTED.packaged.features == EXPECTED.features == expected.FEATURES


def test_the_most_promising_moves_are_tried_first(
    builder: tuple[ProgramBuilder, SiteMoves],
) -> None:
    made, moves = builder
    build = made.build({})
    settings = SearchSettings(exact=0, chance=0.0)
    step = Step(made, moves, build, State(), settings, np.random.default_rng(0))
    candidates = every(moves, build)
    reach = moves.reach(build.trajectories)
    evidence = Evidence(build.functions["gc"])
    x = moves.features(build.trajectories, candidates, reach, evidence, {})
    assert moves.improvement is not None
    savings = moves.improvement.of(x)
    by_key = dict(zip((c.move.identity for c in candidates), savings.tolist(), strict=True))
    tried = [trial.candidate for trial in step.attempt(0)]
    assert tried
    for other in candidates:
        rivals = [c for c in tried if not c.claims.isdisjoint(other.claims)]
        best = max(by_key[c.move.identity] for c in rivals)
        assert best >= by_key[other.move.identity], "whatever it excluded promised less"


def test_a_recorder_keeps_what_moves_changed(builder: tuple[ProgramBuilder, SiteMoves]) -> None:
    made, moves = builder
    build = made.build({})
    settings = SearchSettings(exact=0, learned=False)
    step = Step(made, moves, build, State(), settings, np.random.default_rng(0))
    recorder = Recorder(moves, None)
    first, second = step.attempt(0), step.attempt(1)
    recorder.observe(build, step.evidence, first)
    recorder.observe(build, step.evidence, [replace(first[0]), *second])
    assert recorder.changes == [t.change["gc"] for t in (*first, first[0], *second)]
    column = expected.FEATURES.index("found")
    again = recorder.features[1][0, column]
    assert again == np.clip(first[0].change["gc"], -200, 200), "it was tried before"


def test_orders_are_compared_by_what_their_first_moves_save() -> None:
    saved = np.array([0.0, 30.0, 0.0, 10.0, *[0.0] * 16])
    assert savings_of_first(-saved, saved) == [100.0, 100.0, 100.0]
    assert savings_of_first(np.arange(20.0), saved) == [75.0, 100.0, 100.0]
    assert savings_of_first(-np.arange(20.0), saved) == [0.0, 0.0, 0.0]


def test_a_project_is_ordered_by_trees_that_have_not_seen_it() -> None:
    rng = np.random.default_rng(1)

    def program(sign: float) -> Moves:
        x = rng.normal(size=(400, len(expected.FEATURES)))
        changes = np.where(sign * x[:, 5] > 1.5, -20.0, 5.0)
        return Moves(x, changes, rng.random(400), np.ones(400))

    *others, mean = rows(EXPECTED, {"a": program(1), "b": program(1), "c": program(-1)})
    learned = [row[-3] for row in others]
    assert isinstance(learned[2], float)
    assert learned[2] < 10, "its own moves would have said the opposite"
    assert mean[1] == 1200
