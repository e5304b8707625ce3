"""Eviction question by question, for the Gymnasium environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import ChannelOptions, Tensor
from nestor.compiler.toolchain import Toolchain
from nestor.problem.live import LiveQuestion, Questions
from nestor.problems.regalloc_eviction.channel import OpenQuestion, channel_options, layout_of
from nestor.problems.regalloc_eviction.default import default_answer
from nestor.problems.regalloc_eviction.object_cost import function_code, static_cost
from nestor.problems.regalloc_eviction.question import CANDIDATES, Layout


@dataclass(frozen=True)
class EvictionQuestions:
    """See :class:`nestor.problem.live.Questions`.

    An observation has a row for each of the 33 candidates; those that may not be chosen are 0.
    """

    layout: Layout

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of an observation ``[33, features]``."""
        return self.layout.features

    @cached_property
    def observation_space(self) -> gymnasium.spaces.Box:
        """Any numbers that a 32-bit float holds."""
        largest = float(np.finfo(np.float32).max)
        shape = (CANDIDATES, len(self.features))
        return gymnasium.spaces.Box(-largest, largest, shape, dtype=np.float64)

    @cached_property
    def action_space(self) -> gymnasium.spaces.Discrete:
        """The index of a candidate; the last evicts nothing."""
        return gymnasium.spaces.Discrete(CANDIDATES)

    def question(self, tensors: npt.NDArray[Any]) -> LiveQuestion:
        """See :meth:`nestor.problem.live.Questions.question`."""
        question = OpenQuestion(self.layout, tensors)
        observation = np.zeros((CANDIDATES, len(self.features)))
        observation[question.allowed] = question.matrix(self.features)
        allowed = np.zeros(CANDIDATES, dtype=np.bool_)
        allowed[question.allowed] = True
        return LiveQuestion(observation, default_answer(question), allowed)


@dataclass(frozen=True)
class LiveEviction:
    """See :class:`nestor.problem.live.Live`."""

    level: str = "-O2"
    score: str = "cost"
    options: ChannelOptions = channel_options

    def require(self, toolchain: Toolchain) -> None:
        """Accept every toolchain: a compiler without the channel says so when it is started."""

    def questions(self, tensors: Sequence[Tensor]) -> Questions:
        """See :meth:`nestor.problem.live.Live.questions`."""
        return EvictionQuestions(layout_of(tensors))

    def measure(self, path: Path) -> Mapping[str, float]:
        """Return the cost of the object and its parts.

        The plugin, which says what will execute, and the channel exclude each other.
        """
        cost = static_cost(function_code(path))
        return {name: cost.total(name) for name in ("cost", "instructions", "reads", "writes")}


LIVE: Final = LiveEviction()
