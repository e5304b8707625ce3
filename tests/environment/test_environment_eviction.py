"""The environment of register eviction: rows of candidates and a mask."""

from collections.abc import Iterator

import numpy as np
import pytest

from nestor.environment import CompileEnvironment, make
from tests.environment.episodes import play


@pytest.fixture
def eviction() -> Iterator[CompileEnvironment]:
    """The environment of register eviction on the built-in module."""
    made = make("regalloc-eviction")
    assert isinstance(made, CompileEnvironment)
    yield made
    made.close()


def test_candidates_are_rows_and_a_mask(eviction: CompileEnvironment) -> None:
    observation, info = eviction.reset()
    mask = info["action_mask"]
    assert observation.shape == (33, len(eviction.features))
    assert mask.shape == (33,)
    assert mask[info["default"]] == 1
    assert mask.sum() >= 2
    assert not observation[mask == 0].any()
    own = observation[:, eviction.features.index("is_own")]
    assert own.tolist() == [0.0] * 32 + [1.0]


def test_default_evictions_give_the_stock_object(eviction: CompileEnvironment) -> None:
    end = play(eviction)
    assert end["digest"] == end["stock_digest"]
    assert end["cost"] == end["stock"]


def test_other_evictions_change_the_cost(eviction: CompileEnvironment) -> None:
    _, info = eviction.reset()
    done = False
    while not done:
        first = int(np.flatnonzero(info["action_mask"])[0])
        _, reward, terminated, truncated, info = eviction.step(first)
        done = terminated or truncated
    assert info["digest"] != info["stock_digest"]
    assert reward == pytest.approx(100 * (info["stock"] - info["cost"]) / info["stock"])
    assert reward != 0


def test_an_action_that_may_not_be_chosen_is_the_default(eviction: CompileEnvironment) -> None:
    _, info = eviction.reset()
    done, count = False, 0
    while not done:
        masked = int(np.flatnonzero(info["action_mask"] == 0)[0])
        count += 1
        _, _, terminated, truncated, info = eviction.step(masked)
        done = terminated or truncated
    assert info["replaced"] == count
    assert info["digest"] == info["stock_digest"]
