"""Inlining for size question by question, for the Gymnasium environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import ChannelOptions, Tensor
from nestor.compiler.objects import measure
from nestor.compiler.releases import CHANNEL_DEFAULT
from nestor.compiler.toolchain import INSTALL_HINT, Toolchain, ToolchainError, capabilities
from nestor.problem.live import LiveQuestion, Questions, type_limits
from nestor.problems.inlining_size.channel import channel_options, echo
from nestor.problems.inlining_size.log import DEFAULT


@dataclass(frozen=True)
class InliningQuestions:
    """See :class:`nestor.problem.live.Questions`; the default heuristic's answer is a feature."""

    tensors: tuple[Tensor, ...]

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the entries of an observation ``[features]``, as the compiler sends them."""
        return tuple(tensor.name for tensor in self.tensors)

    @cached_property
    def observation_space(self) -> gymnasium.spaces.Box:
        """All that the tensors' types can hold."""
        limits = type_limits(self.tensors)
        return gymnasium.spaces.Box(-limits, limits, dtype=np.float64)

    @cached_property
    def action_space(self) -> gymnasium.spaces.Discrete:
        """1 inlines the call, 0 does not."""
        return gymnasium.spaces.Discrete(2)

    def question(self, tensors: npt.NDArray[Any]) -> LiveQuestion:
        """See :meth:`nestor.problem.live.Questions.question`."""
        values = np.array([tensors[name][0] for name in self.features], dtype=np.float64)
        return LiveQuestion(values, echo(tensors))


@dataclass(frozen=True)
class LiveInlining:
    """See :class:`nestor.problem.live.Live`."""

    level: str = "-Oz"
    score: str = "loadable"
    options: ChannelOptions = channel_options

    def require(self, toolchain: Toolchain) -> None:
        """See :meth:`nestor.problem.live.Live.require`."""
        if "inliner" not in capabilities(toolchain).channels:
            raise ToolchainError(
                f"LLVM {toolchain.version} in {toolchain.prefix} cannot ask about inlining: "
                f"{INSTALL_HINT}."
            )
        toolchain.require(CHANNEL_DEFAULT)

    def questions(self, tensors: Sequence[Tensor]) -> Questions:
        """See :meth:`nestor.problem.live.Live.questions`."""
        names = [tensor.name for tensor in tensors]
        if any(tensor.shape != (1,) for tensor in tensors) or DEFAULT not in names:
            raise ToolchainError(
                "This LLVM asks about inlining in a way that is not supported here: "
                f"{INSTALL_HINT}."
            )
        return InliningQuestions(tuple(tensors))

    def measure(self, path: Path) -> Mapping[str, float]:
        """Return the object's loadable bytes."""
        return {"loadable": measure(path).loadable}


LIVE: Final = LiveInlining()
