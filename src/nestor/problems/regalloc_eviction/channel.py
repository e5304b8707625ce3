"""Eviction over LLVM's interactive channel: the same questions without the plugin.

The stock clang stops at each question and Python answers. It is slow; it is the oracle against
which the plugin is tested, and what the Gymnasium environment plays on. The channel does not say
what the stock heuristic would choose, so it serves only policies that do not read that.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.compiler.channel import ChannelError, Tensor, compile_over_channel
from nestor.policy.names import NamedPolicy
from nestor.policy.spec import Policy
from nestor.problem.decide import feature_columns
from nestor.problem.identity import Circumstances, Command, Way
from nestor.problem.trajectory import F64, I64
from nestor.problems.regalloc_eviction.question import DEFAULT, OF_DEFAULT, Layout, Questions


def channel_options(base: Path) -> tuple[str, ...]:
    """Return LLVM's options that make the eviction advisor use the channel at ``base``."""
    return (
        "-regalloc-enable-advisor=release",
        f"-regalloc-evict-interactive-channel-base={base}",
    )


def layout_of(tensors: Sequence[Tensor]) -> Layout:
    """Return the layout of the tensors that a compiler announces.

    :raises ChannelError: if it asks in a way that is not supported.
    """
    try:
        return Layout.of((tensor.name, tensor.shape) for tensor in tensors)
    except ValueError as error:
        raise ChannelError(
            f"This compiler asks about eviction in a way that is not supported ({error});"
            " use LLVM 22."
        ) from None


class OpenQuestion:
    """One question, as the channel sends it."""

    def __init__(self, layout: Layout, tensors: npt.NDArray[Any]) -> None:
        """Hold ``tensors``, a structured scalar."""
        self._questions = Questions(layout, tensors.reshape(1))
        self.allowed: I64 = self._questions.index
        """Candidates that may be chosen, ascending, ``[rows]``."""
        self.columns: dict[str, F64] = self._questions.columns()
        """The features ``layout.features`` of these candidates, ``[rows]`` each."""

    def matrix(self, names: Sequence[str]) -> F64:
        """Return the features ``names``, ``[rows, names]``."""
        return np.column_stack([self.columns[name] for name in names])


def channel_ways(policy: NamedPolicy) -> tuple[Way, ...]:
    """Return the channel as a way to compile under ``policy``; none if it cannot serve it."""
    if policy.policy is None or policy.policy.range is not None:
        return ()  # where the default decides, the channel does not say how
    own = policy.policy
    if any(name == DEFAULT or name.endswith(OF_DEFAULT) for name in own.features):
        return ()

    def compile_once(command: Command, out: Path, use: Circumstances) -> int | None:
        words = [*command, "-o", out]
        compile_over_channel(
            words, partial(policy_answer, own), channel_options, use.limits, use.cancelled
        )
        return None

    return (Way("channel, Python", compile_once),)


def policy_answer(policy: Policy, tensors: npt.NDArray[Any]) -> int:
    """Return the candidate that ``policy`` picks.

    :raises PolicyError: if the compiler lacks a feature of the policy.
    """
    fields = [(name, tensors.dtype[name].shape) for name in tensors.dtype.names or ()]
    question = OpenQuestion(Layout.of(fields), tensors)
    feature_columns(policy, policy.rule.name, tuple(question.columns))
    together = np.zeros(len(question.allowed), dtype=np.int64)
    (row,) = policy.actions(question.matrix(policy.features), together)
    return int(question.allowed[row])
