"""Distillation: rounds build on each other, a later one must pay, and a run can be resumed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.learn import checkpoint
from nestor.learn.algorithms.distil import (
    Candidate,
    Distil,
    DistilSettings,
    DistilState,
    choose,
)
from nestor.learn.distil import gain_model
from nestor.learn.distil.gain_model import GainSettings, predict_across, rows
from nestor.learn.distil.gain_trees import Trees
from nestor.learn.distil.trials import Trials, TrialsError, join
from nestor.learn.distil.validation import Verdict, relative_changes
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.problem.score import Report
from tests.learn.test_gain_model import FEATURES, PROBLEM, trials
from tests.learn.worlds import acts_below

SETTINGS = DistilSettings(
    rounds=3,
    candidates=1,
    cautions=(0.4,),
    trees=Trees(rounds=30, coarse_rounds=20, leaves=8, least_rows=10),
)


class Experience:
    """Searches and validations with given results, and what they were called with."""

    def __init__(self, changes: Sequence[float]):
        self.searches: list[tuple[int, bool]] = []
        self._changes = list(changes)

    def search(self, earlier: Sequence[str], policy: Policy | None) -> Trials:
        self.searches.append((len(earlier), policy is None))
        assert all(len(digest) == 64 for digest in earlier)
        return join([trials(contrary=number) for number in range(len(earlier) + 1)])

    def validate(self, _policy: Policy) -> Verdict:
        return Verdict(self._changes[len(self.searches) - 1], 0.0)

    def learner(self, settings: DistilSettings = SETTINGS) -> Distil:
        return Distil(settings, 0, FEATURES, PROBLEM, self.search, self.validate)


def run(learner: Distil, state: DistilState, rounds: int) -> DistilState:
    for _ in range(rounds):
        state, metrics = learner.update(state, learner.batch(state))
        assert metrics["trials"] > 0
    return state


def test_each_round_searches_from_the_last_policy() -> None:
    experience = Experience([-0.01, -0.02, -0.03])
    learner = experience.learner()
    state = run(learner, learner.init(), 3)
    assert experience.searches == [(0, True), (1, False), (2, False)]
    assert state.change == -0.03
    assert bundle.to_bytes(learner.policy(state)) == state.policy.tobytes()


def test_a_later_round_must_pay() -> None:
    learner = Experience([-0.010, -0.011, -0.009]).learner()
    first = run(learner, learner.init(), 1)
    state = run(learner, first, 2)
    assert state.change == -0.010
    assert state.best.tobytes() == first.best.tobytes()
    assert state.policy.tobytes() != state.best.tobytes(), "the search went on from the last one"


@pytest.mark.parametrize(("change", "beaten"), [(-0.030, True), (-0.021, False)])
def test_a_policy_to_start_from_is_searched_from_and_has_to_be_beaten(
    change: float, beaten: bool
) -> None:
    experience = Experience([change])
    start = acts_below(20)

    def validate(policy: Policy) -> Verdict:
        same = bundle.digest(policy) == bundle.digest(start)
        return Verdict(-0.02, 0.0) if same else experience.validate(policy)

    settings = replace(SETTINGS, rounds=1)
    learner = Distil(settings, 0, FEATURES, PROBLEM, experience.search, validate, start)
    state = run(learner, learner.init(), 1)
    assert experience.searches == [(0, False)]
    assert (bundle.digest(learner.policy(state)) != bundle.digest(start)) is beaten
    assert state.change == (change if beaten else -0.02)


def test_candidates_differ_in_their_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    fit, seeds, across = gain_model.fit, [], []

    def recorded(kind: Any, data: Any, folds: Any, seed: int) -> Any:
        seeds.append(seed)
        across.append(np.corrcoef(data.y, folds[0])[0, 1])
        return fit(kind, data, folds, seed)

    monkeypatch.setattr(gain_model, "fit", recorded)
    experience = Experience([-0.01])
    settings = replace(SETTINGS, candidates=2)
    learner = Distil(settings, 7, FEATURES, PROBLEM, experience.search, experience.validate)
    found = learner.batch(learner.init())
    assert seeds == [7, 8]
    assert [candidate.number for candidate in found.candidates] == [0, 1]
    correlation = found.metrics["correlation across projects"]
    assert 0.5 < correlation < 1
    assert across == [pytest.approx(correlation)] * 2


def test_candidates_keep_to_what_the_problem_leaves_to_policies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none = Trees().nothing(FEATURES, PROBLEM.name)
    monkeypatch.setattr(type(PROBLEM), "restrained", lambda _self, _policy: none)
    learner = Experience([-0.01]).learner(replace(SETTINGS, rounds=1))
    state = run(learner, learner.init(), 1)
    assert bundle.digest(learner.policy(state)) == bundle.digest(none)
    assert (none.logits(np.ones((3, len(FEATURES)))) == 0).all()


@pytest.mark.parametrize("model", ["trees", "network"])
def test_model_is_of_the_kind_of_the_settings(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = []

    def recorded(kind: Any, *_args: Any) -> Any:
        kinds.append(kind)
        raise TrialsError("seen")

    monkeypatch.setattr(gain_model, "predict_across", recorded)
    learner = Experience([]).learner(replace(SETTINGS, model=model))
    with pytest.raises(TrialsError, match="seen"):
        learner.batch(learner.init())
    assert kinds == [getattr(SETTINGS, model)]


def test_start_is_validated_in_the_first_round_only() -> None:
    experience = Experience([-0.01, -0.02])
    learner = replace(experience.learner(), start=acts_below(20))
    state = learner.init()
    first = learner.batch(state)
    assert first.start == Verdict(-0.01, 0.0)
    after, _metrics = learner.update(state, first)
    assert learner.batch(after).start is None
    alone = Experience([-0.01]).learner()
    assert alone.batch(alone.init()).start is None


def test_where_nothing_validates_the_last_round_is_believed() -> None:
    settings = replace(SETTINGS, rounds=2, worthwhile=float("-inf"))
    experience = Experience([0.0, 0.0])
    start = acts_below(20)
    learner = Distil(
        settings, 0, FEATURES, PROBLEM, experience.search, lambda _: Verdict(0.0, 0.0), start
    )
    state = run(learner, learner.init(), 2)
    assert state.best.tobytes() == state.policy.tobytes() != bundle.to_bytes(start)


def test_the_score_is_judged_by_itself_also_where_stock_has_none() -> None:
    report = Report(score="cost", columns=("cost", "reads", "writes"), detail=("reads", "writes"))
    none = {"cost": 0.0, "reads": 0.0, "writes": 8.0}
    less = {"cost": 0.0, "reads": 3.0, "writes": 6.0}
    assert relative_changes(report, none, less) == (0.0, -0.25)
    assert relative_changes(report, none, less | {"cost": 1.0}) == (math.inf, -0.25)
    assert relative_changes(report, {**none, "cost": 4.0}, {**less, "cost": 5.0}) == (0.25, -0.25)


def test_validation_chooses_the_candidate_and_its_caution() -> None:
    seen: list[bytes] = []
    verdicts = [Verdict(-0.02, 0.0005), Verdict(-0.03, 0.02), Verdict(-0.01, 0), Verdict(-0.025, 0)]

    def validate(policy: Policy) -> Verdict:
        seen.append(bundle.to_bytes(policy))
        return verdicts[len(seen) - 1]

    settings = replace(SETTINGS, rounds=1, candidates=2, cautions=(0.1, 2.0))
    learner = Distil(settings, 0, FEATURES, PROBLEM, Experience([]).search, validate)
    state, metrics = learner.update(learner.init(), learner.batch(learner.init()))
    assert len(set(seen)) == 4, "every candidate with every caution"
    assert state.best.tobytes() == seen[3]
    assert (metrics["candidate"], metrics["caution"], state.change) == (1.0, 2.0, -0.025)


def test_a_program_that_grows_is_avoided_even_if_all_grow() -> None:
    def candidate(mean: float, worst: float) -> Candidate:
        return Candidate(0, worst, policy, Verdict(mean, worst))

    learner = Experience([0.0]).learner(replace(SETTINGS, rounds=1))
    policy = learner.policy(run(learner, learner.init(), 1))
    within = [candidate(-0.01, 0.0), candidate(-0.03, 0.001), candidate(-0.09, 0.002)]
    assert choose(within, 0.001).verdict == Verdict(-0.03, 0.001)
    assert choose([*within[2:], candidate(-0.2, 0.003)], 0.001).verdict == Verdict(-0.09, 0.002)


def test_a_resumed_run_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole = Experience([-0.01, -0.02, -0.03]).learner()
    expected = run(whole, whole.init(), 3)
    again = Experience([-0.01, -0.02, -0.03]).learner()
    half = run(again, again.init(), 1)
    checkpoint.save(tmp_path / "kept", half, "run")
    kept = checkpoint.load(tmp_path / "kept", again.init(), "run")
    assert kept is not None
    state = run(again, kept, 2)
    assert state.best.tobytes() == expected.best.tobytes()
    assert state.searched.tobytes() == expected.searched.tobytes()


def test_one_project_is_not_enough() -> None:
    one = trials(projects=1)
    data = rows(one, FEATURES, PROBLEM, GainSettings(), 0)
    with pytest.raises(TrialsError, match="several projects"):
        predict_across(SETTINGS.trees, data, GainSettings(), 0)


def test_there_is_no_policy_before_the_first_round() -> None:
    learner = Experience([0.0]).learner(replace(SETTINGS, rounds=1))
    with pytest.raises(ValueError, match="before the first round"):
        learner.policy(learner.init())
