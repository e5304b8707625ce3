"""What a search learns from the measurements of its own payload, on top of a policy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.schedules.kernel.evaluate import Evaluation, Task
from nestor.schedules.language import library
from nestor.schedules.payload import operators as texts
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.target import find_target
from nestor.schedules.tools import find_tools
from nestor.schedules.tune import space, tuning
from nestor.schedules.tune.correction import corrected, positions
from nestor.schedules.tune.database import Database
from nestor.schedules.tune.policy import packaged
from nestor.schedules.tune.searches import completed, first_guess, make_search
from nestor.schedules.tune.tuning import prior, problem_of
from tests.schedules.test_tuning import nothing_learned, problem

EMPTY = np.zeros((0, 1))


def test_positions_go_from_the_first_option_to_the_last() -> None:
    decisions = problem().decisions
    first = {d.name: d.options[0] for d in decisions}
    last = {d.name: d.options[-1] for d in decisions}
    found = positions([first, last], decisions)
    assert found.shape == (2, len(decisions))
    assert not found[0].any()
    assert np.array_equal(found[1], [float(len(d.options) > 1) for d in decisions])


def test_without_measurements_the_policy_stands() -> None:
    logits = np.array([0.3, -1.0])
    at = np.array([[0.0], [1.0]])
    found = corrected(logits, at, np.zeros(0), np.zeros(0), EMPTY)
    assert np.array_equal(found, logits)


def test_a_choice_slower_than_predicted_makes_its_neighbours_less_likely() -> None:
    at = np.array([[0.1], [1.0]])
    measured_at = np.array([[0.0], [0.5]])
    # Predicted equal, but the first is three times slower.
    found = corrected(np.zeros(2), at, np.array([-1.1, 0.0]), np.zeros(2), measured_at)
    assert found[0] < found[1]


def test_of_equal_predictions_the_one_far_from_what_is_known_comes_first() -> None:
    at = np.array([[0.0], [1.0]])
    found = corrected(np.zeros(2), at, np.zeros(1), np.zeros(1), np.array([[0.0]]))
    assert found[1] > found[0]


@pytest.mark.parametrize("failures", [False, True])
def test_a_search_without_a_policy_worth_its_name_beats_random_choices(failures: bool) -> None:
    one = problem()
    best = {d.name: d.options[len(d.options) // 3] for d in one.decisions}
    options = {d.name: d.options for d in one.decisions}

    def evaluation(choice: dict[str, int]) -> Evaluation:
        off = sum(abs(options[n].index(choice[n]) - options[n].index(best[n])) for n in best)
        if failures and off > 15:
            return Evaluation(choice, "crashed", "", None, None)
        return Evaluation(choice, "ok", "", 1.0 + off, 1.0 + off)

    def run(name: str, seed: int) -> float:
        search = make_search(name, one, seed, nothing_learned())  # type: ignore[arg-type]
        done = [evaluation(space.drawn(one.decisions, np.random.default_rng(seed)))]
        for _ in range(30):
            done.append(evaluation(search(done)))
        return min((e.least or np.inf) for e in done)

    learned, drawn = ([run(name, s) for s in range(4)] for name in ("learned", "random"))
    assert np.mean(learned) < 0.8 * np.mean(drawn)


def test_the_packaged_policy_reads_what_candidates_have_and_fits_registers() -> None:
    one = problem()
    policy = packaged()
    assert set(policy.features) <= set(space.row(one.guess, one.loops, one.target))
    for seed in range(3):
        choice = first_guess(one, policy, seed)
        assert all(choice[d.name] in d.options for d in one.decisions)
        assert space.row(choice, one.loops, one.target)["accumulators"] <= 1.0


def test_a_database_of_many_payloads_takes_the_place_of_the_packaged_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "ENOUGH", 8)
    task = Task(
        read_payload(texts.matmul(24, 32, 16), find_tools()), library.packaged(), "matmul",
        find_target("host"), find_tools(),
    )  # fmt: skip
    database = Database(tmp_path / "results.sqlite")
    choice = dict(problem_of(task)[0].guess)
    for number in range(8):
        assert prior(task, database, 0).metadata == packaged().metadata
        payload = read_payload(texts.matmul(8 + number, 16, 8), task.tools)
        other = replace(task, payload=payload)
        database.add(other, Evaluation(choice, "ok", "", 1e-5, 1e-5))
        # What this very payload had is no reason.
        database.add(task, Evaluation(choice | {"tile_k": number}, "ok", "", 1e-5, 1e-5))
    assert prior(task, database, 0).metadata.provenance["payloads"] == 8


def test_what_is_computed_beside_drawn_answers_fits_them() -> None:
    one, random = problem(), np.random.default_rng(0)

    def fitting(choices: list[dict[str, int]]) -> float:
        rows = [space.row(choice, one.loops, one.target) for choice in choices]
        return float(np.mean([row["accumulators"] <= 1.0 for row in rows]))

    found = [completed(one, random) for _ in range(100)]
    assert all(choice[d.name] in d.options for choice in found for d in one.decisions)
    assert len({tuple(sorted(choice.items())) for choice in found}) > 30
    drawn = [space.drawn(one.decisions, random) for _ in range(100)]
    assert fitting(found) > 0.5 + 0.5 * fitting(drawn)


def test_answers_that_stand_are_not_part_of_what_is_completed() -> None:
    whole = problem()
    fixed = {"packing": whole.guess["packing"]}
    rest = [d for d in whole.decisions if d.name not in fixed]
    choice = completed(replace(whole, decisions=rest, fixed=fixed), np.random.default_rng(0))
    assert set(choice) == {d.name for d in rest}
