"""Numbers that no setting can be are refused from Python as on the command line."""

import math
import re
from pathlib import Path

import pytest

import nestor
from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from nestor.learn.algorithms.distil import DistilSettings
from nestor.learn.distil.gain_trees import Trees
from nestor.numbers import refuse_numbers
from nestor.policy.boosting import Boosting
from nestor.rollout.local_pool import PoolSettings


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (PoolSettings(jobs=0), "jobs is 1 or more, not 0."),
        (PoolSettings(timeout=math.nan), "timeout is a finite number, not nan."),
        (PoolSettings(timeout=-1), "timeout is above 0, not -1."),
        (PoolSettings(memory=-5), "memory is 1 or more, not -5."),
        (DistilSettings(trees=Trees(learning_rate=0)), "learning_rate is above 0, not 0."),
    ],
)
def test_a_number_that_cannot_be_is_refused(settings: object, why: str) -> None:
    with pytest.raises(NestorError, match=re.escape(why)):
        refuse_numbers(settings)


def test_the_functions_of_python_refuse_it(small_corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(NestorError, match="timeout is above 0"):
        nestor.open_pool(small_corpus, timeout=0)
    with nestor.open_pool(small_corpus) as pool:
        with pytest.raises(NestorError, match="compiles is a finite number"):
            nestor.tune_program(pool, "one", tmp_path, compiles=math.nan)
        with pytest.raises(NestorError, match="learning_rate is above 0"):
            nestor.train_policy(pool, tmp_path, learner="bc", settings={"learning_rate": 0})
    with pytest.raises(NestorError, match="above 0, and finite"):
        nestor.Budget(cpu_minutes=math.inf)


@pytest.mark.parametrize(("rounds", "leaves"), [(0, 31), (10, 1)])
def test_no_model_is_boosted_of_nothing(rounds: int, leaves: int) -> None:
    with pytest.raises(NestorError, match=f"with 2 leaves or more, not {rounds} with {leaves}"):
        Boosting(rounds=rounds, leaves=leaves, learning_rate=0.1, least_rows=1)
