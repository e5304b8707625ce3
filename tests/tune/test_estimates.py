"""What combinations of answers are hoped to come to, after some were tried."""

from itertools import product

import numpy as np
import pytest

from nestor.tune.steps.estimates import Terms, hopes

CALLS = {0: 48.0, 1: 48.0, 2: 48.0}
"""What the three calls of a function are believed to add."""
GONE = {-1: -100.0}
"""The function, which goes away when all are inlined."""


def terms(answers: tuple[bool, ...]) -> Terms:
    own = {number: CALLS[number] for number, answer in enumerate(answers) if answer}
    return own | (GONE if all(answers) else {})


ALL = list(product((False, True), repeat=3))


def bytes_of(answers: tuple[bool, ...]) -> float:
    """Return what was not believed: a call adds 20 bytes only."""
    return 300.0 + 20 * sum(answers) - (100 if all(answers) else 0)


def test_what_was_tried_corrects_beliefs() -> None:
    none = (terms(ALL[0]), bytes_of(ALL[0]))
    before = hopes([terms(answers) for answers in ALL], [none])
    assert before[0] == pytest.approx(300, abs=3), "nothing else is known so well"
    singles = [a for a in ALL if sum(a) == 1]
    seen = [none, *((terms(a), bytes_of(a)) for a in singles)]
    after = hopes([terms(answers) for answers in ALL], seen)
    for answers, hope in zip(ALL, after, strict=True):
        if not all(answers):
            assert hope == pytest.approx(bytes_of(answers), abs=8), answers
    assert np.argmin(after) == ALL.index((True, True, True)), "tried next, before any pair"
    assert after[-1] < 260 < before[0]


def test_a_belief_of_which_nothing_was_seen_stays() -> None:
    """Its optimism is half of the belief; a unit scales what bytes are compared with."""
    (hope,) = hopes([{7: 40.0}], [({}, 100.0)])
    assert hope == pytest.approx(100 + 40 - 20, abs=1)
    (small,) = hopes([{7: 0.0}], [({}, 100.0)])
    assert small == pytest.approx(100 - 8, abs=1)
    (scaled,) = hopes([{7: 0.0}], [({}, 100.0)], unit=0.1)
    assert scaled == pytest.approx(100 - 0.8, abs=0.1)
