"""The checker of decision problems passes what is sound and names what is not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest

from nestor.environment import PROBE, InliningForSize
from nestor.problems.check import Answer, Compile, Play, ProblemError, check_problem
from nestor.problems.inlining_size import INLINING_SIZE
from nestor.problems.problem import Problem

COIN = Problem("coin", 2, "default", "decision", "-Oz", "heads")


def play(_unit: str, answer: Answer | None) -> Play:
    """Two questions; heads costs 1."""
    x = np.array([[0.0, 1.0], [1.0, 0.0]])
    default = np.array([0, 1])
    answers = np.array([answer(row, d) if answer else d for row, d in zip(x, default, strict=True)])
    return Play(x, default, answers, float(answers.sum()))


def changed(**fields: Any) -> Compile:
    """Return ``play`` with some of what it returns replaced."""
    return lambda unit, answer: replace(play(unit, answer), **fields)


def noisy() -> Compile:
    generator = np.random.default_rng(0)
    return lambda unit, answer: replace(play(unit, answer), score=float(generator.random()))


def deaf(unit: str, _answer: Answer | None) -> Play:
    return play(unit, None)


def test_sound_problem_passes() -> None:
    check_problem(COIN, ["a", "b"], play)


@pytest.mark.parametrize(
    ("compile_unit", "said"),
    [
        (changed(score=1.0), "nothing to learn"),
        (changed(score=float("nan")), "its score is nan"),
        (noisy(), "compiled twice"),
        (deaf, "was given and not taken"),
        (changed(answers=np.array([1, 1])), "not the default's"),
        (changed(default=np.array([0, 2])), "not among the 2 actions"),
        (changed(x=np.zeros((3, 1))), "do not belong together"),
        (changed(x=np.full((2, 2), np.inf)), "not finite"),
        (changed(x=np.zeros((0, 2)), default=np.zeros(0), answers=np.zeros(0)), "has a question"),
    ],
)
def test_unsound_compiles_are_named(compile_unit: Compile, said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        check_problem(COIN, ["a"], compile_unit)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: replace(p, name="A coin"), "no name"),
        (lambda p: replace(p, actions=1), "no choice"),
        (lambda p: replace(p, decision_tensor="default"), "one tensor"),
        (lambda p: replace(p, capture_level="Oz"), "optimisation level"),
        (lambda p: replace(p, score=" "), "score"),
    ],
)
def test_unsound_descriptions_are_named(change: Callable[[Problem], Problem], said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        check_problem(change(COIN), ["a"], play)


def test_inlining_for_size_is_a_problem() -> None:
    """Through the compiler itself, question by question."""
    env = InliningForSize()
    assert isinstance(env, gymnasium.Env)

    def compile_unit(_unit: str, answer: Answer | None) -> Play:
        observation, info = env.reset(seed=0)
        rows, defaults, answers = [], [], []
        while True:
            default = info["default"]
            given = answer(observation, default) if answer else default
            rows.append(observation)
            defaults.append(default)
            answers.append(given)
            observation, _reward, ended, truncated, info = env.step(given)
            if ended or truncated:
                break
        score = float(info["loadable"])
        return Play(np.array(rows), np.array(defaults), np.array(answers), score)

    try:
        check_problem(INLINING_SIZE, [PROBE], compile_unit)
    finally:
        env.close()
