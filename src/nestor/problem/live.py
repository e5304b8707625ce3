"""How a problem is asked live: the stock compiler stops at each question and waits for the answer.

A problem that LLVM's interactive channel serves has one :class:`Live`, and thereby an environment
of its own (:mod:`nestor.environment`).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import gymnasium
import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import ChannelOptions, Tensor
from nestor.compiler.toolchain import Toolchain
from nestor.problem.trajectory import F64, Bools


@dataclass(frozen=True)
class LiveQuestion:
    """One open question."""

    observation: F64
    """In the observation space."""
    default: int
    """The action of the default heuristic."""
    allowed: Bools | None = None
    """Which actions may be chosen, ``[actions]``; None where all may."""


class Questions(Protocol):
    """What one compiler asks, in the order of its own announcement."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the entries (of the columns) of an observation."""

    @property
    def observation_space(self) -> "gymnasium.spaces.Box":
        """All observations."""

    @property
    def action_space(self) -> "gymnasium.spaces.Discrete":
        """All actions; an action is sent to the compiler as it is."""

    def question(self, tensors: npt.NDArray[Any]) -> LiveQuestion:
        """Return the question in the tensors of the channel (a structured scalar)."""


class Live(Hashable, Protocol):
    """What an environment must know of a problem; see the attributes."""

    @property
    def level(self) -> str:
        """The level at which the built-in module is compiled, such as ``-Oz``."""

    @property
    def score(self) -> str:
        """The entry of :meth:`measure` that is to fall."""

    @property
    def options(self) -> ChannelOptions:
        """LLVM's options that make the advisor ask."""

    def require(self, toolchain: Toolchain) -> None:
        """Check that a toolchain can ask.

        :raises ToolchainError: if it cannot.
        """

    def questions(self, tensors: Sequence[Tensor]) -> Questions:
        """Return what a compiler asks that announces ``tensors``.

        :raises NestorError: if it asks in a way that is not supported.
        """

    def measure(self, path: Path) -> Mapping[str, float]:
        """Return what an object comes to, by name.

        :raises NestorError: if it cannot be measured.
        """


def type_limits(tensors: Sequence[Tensor]) -> F64:
    """Return for each tensor what no value of its element type exceeds in size, ``[tensors]``."""

    def limit(dtype: str) -> float:
        if dtype.startswith("int"):
            return 2.0 ** (int(dtype.removeprefix("int").removesuffix("_t")) - 1)
        return float(np.finfo(np.float64 if dtype == "double" else np.float32).max)

    return np.array([limit(tensor.dtype) for tensor in tensors])
