"""How the stock compiler asks about inlining over LLVM's interactive channel."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.policy.spec import FeatureSpec, Policy, columns
from nestor.problems.inlining_size.log import DEFAULT

Answer = Callable[[npt.NDArray[Any]], int]
"""From the features of one question (a structured scalar) to the answer, 0 or 1."""


def channel_options(base: Path) -> tuple[str, ...]:
    """Return LLVM's options that make the inliner use the channel at ``base``."""
    return (
        "-enable-ml-inliner=release",
        f"-inliner-interactive-channel-base={base}",
        "-inliner-interactive-include-default",
    )


def echo(row: npt.NDArray[Any]) -> int:
    """Answer as the stock heuristic does."""
    return int(row[DEFAULT][0])


def evaluate(policy: Policy) -> Answer:
    """Return ``policy``, evaluated in Python, as something that answers on the channel.

    What is returned raises PolicyError if the compiler lacks one of the policy's features.
    """
    names: list[str] = []

    def answer(row: npt.NDArray[Any]) -> int:
        if not names:
            fields: Mapping[str, Any] = row.dtype.fields or {}
            offered = [FeatureSpec(n, str(f[0].base), f[0].shape) for n, f in fields.items()]
            columns(policy, offered, DEFAULT)
            names.extend(policy.features)
        x = np.array([[row[name][0] for name in names]])
        return int(policy.answer(x, np.array([echo(row) != 0]))[0])

    return answer
