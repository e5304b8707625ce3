"""What an update of distillation chooses and keeps, from rounds that are given."""

import numpy as np
import pytest

from nestor.learn.algorithms.distil import Candidate, Distil, DistilSettings, Round, choose
from nestor.learn.distil.searches import start_digest
from nestor.learn.distil.validation import Verdict
from nestor.policy import bundle
from nestor.policy.network import MlpPolicy
from tests.learn.worlds import acts_below, threshold_world

PROBLEM = threshold_world(1, 1).reference.problem
FIRST, SECOND, START = acts_below(1), acts_below(2), acts_below(3)


def candidate(policy: MlpPolicy, mean: float, worst: float = 0.0, number: int = 0) -> Candidate:
    return Candidate(number, 0.5, policy, Verdict(mean, worst))


def learner(start: MlpPolicy | None = None) -> Distil:
    def never(*_args: object) -> None:
        raise AssertionError("an update neither searches nor validates")

    settings = DistilSettings(tolerance=0.001, worthwhile=0.002)
    return Distil(settings, 0, ("benefit",), PROBLEM, never, never, start)  # type: ignore[arg-type]


def test_columns_beside_the_score_have_a_tolerance_of_their_own() -> None:
    def grown(mean: float, detail: float) -> Candidate:
        return Candidate(0, 0.5, FIRST, Verdict(mean, 0.0, detail))

    found = [grown(-0.05, 0.02), grown(-0.03, 0.004), grown(-0.01, -0.01)]
    assert choose(found, 0.001, 0.005).verdict.mean == -0.03
    assert choose(found[:1], 0.001, 0.005).verdict.mean == -0.05, "there is no better one"
    assert choose(found, 0.001).verdict.mean == -0.05, "without a tolerance none counts"


def test_best_on_average_of_those_that_make_no_program_grow() -> None:
    within = [candidate(FIRST, -0.03, 0.001), candidate(SECOND, -0.01, -0.02)]
    assert choose([*within, candidate(START, -0.2, 0.002)], 0.001) is within[0]
    grown = [candidate(FIRST, -0.3, 0.003), candidate(SECOND, -0.1, 0.002)]
    assert choose(grown, 0.001) is grown[1], "all grow: the one that grows least"


def test_first_round_is_kept_and_a_later_one_must_be_clearly_better() -> None:
    own = learner()
    state = own.init()
    assert (state.step, state.change, state.policy.size, state.best.size) == (0, 0, 0, 0)
    found = (candidate(FIRST, 0.01, 0.01, 4), candidate(SECOND, 0.03, 0.02, 5))
    one, metrics = own.update(state, Round(found, None, {"trials": 7.0}))
    assert bundle.digest(own.policy(one)) == bundle.digest(FIRST)
    assert (one.step, one.change) == (1, 0.01)
    assert one.searched.tobytes() == bytes(32), "it began at the default"
    assert metrics == {
        "trials": 7.0, "candidate": 4.0, "caution": 0.5, "validation change": 0.01,
        "validation change, worst program": 0.01, "validation change, worst candidate": 0.03,
    }  # fmt: skip
    for change, better in ((0.0081, False), (0.008, False), (0.0079, True)):
        two, _metrics = own.update(one, Round((candidate(SECOND, change),), None, {}))
        assert two.policy.tobytes() == bundle.to_bytes(SECOND), "the next search starts there"
        assert (two.best.tobytes() == bundle.to_bytes(SECOND)) is better
        assert two.change == (change if better else 0.01)
        assert two.searched.tobytes() == bytes(32) + bytes.fromhex(bundle.digest(FIRST))
        assert two.step == 2


@pytest.mark.parametrize(("change", "beaten"), [(-0.03, True), (-0.021, False)])
def test_a_policy_to_start_from_has_to_be_beaten(change: float, beaten: bool) -> None:
    own = learner(START)
    state = own.init()
    assert state.policy.tobytes() == bundle.to_bytes(START)
    found = Round((candidate(FIRST, change),), Verdict(-0.02, 0.0), {})
    after, _metrics = own.update(state, found)
    kept = FIRST if beaten else START
    assert bundle.digest(own.policy(after)) == bundle.digest(kept)
    assert after.change == (change if beaten else -0.02)
    assert after.searched.tobytes().hex() == start_digest(START)


def test_there_is_no_policy_before_the_first_round() -> None:
    own = learner()
    with pytest.raises(ValueError, match="before the first round"):
        own.policy(own.init())
    assert own.steps == 1
    assert np.array_equal(own.init().searched, np.zeros(0, np.uint8))
