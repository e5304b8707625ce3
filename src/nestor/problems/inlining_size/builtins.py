"""Policies that need no file: the packaged ones, simple rules, and the published one of 2020."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nestor.policy import bundle
from nestor.policy.spec import Metadata, Policy, PolicyError
from nestor.policy.trees import TreesPolicy

NAME: Final = "inlining-size"

MAX_THRESHOLD: Final = 1_000_000
"""Far beyond LLVM's own thresholds (at most some thousands) and safe as a C++ int."""

PACKAGED: Final = ("shipped", "shipped-lto", "distilled", "distilled-lto", "mlgo2020")
"""``shipped`` is the one to use, ``shipped-lto`` inside LTO; ``distilled`` reads a summary of the
program (docs/studies/policies.md), ``distilled-lto`` makes inlining trials inside LTO, ``mlgo2020``
is the published one of 2020."""

DATA: Final = Path(__file__).parent / "data"


@dataclass(frozen=True)
class InliningBuiltins:
    """See :class:`nestor.policy.names.Builtins`."""

    problem: str
    data: Path
    """The folder of the packaged ones."""
    packaged: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """See :class:`nestor.policy.names.Builtins`."""
        return (*self.packaged, "never", "always", "threshold:N")

    def resolve(self, name: str) -> Policy | None:
        """Return the policy of this name, None if it is not a built-in.

        :raises PolicyError: for a threshold that is no integer within ±MAX_THRESHOLD.
        """
        if name in ("never", "always"):
            return constant(inline=name == "always", problem=self.problem)
        if name in self.packaged:
            return bundle.load(self.data / f"{name}.safetensors")
        if not name.startswith("threshold:"):
            return None
        text = name.removeprefix("threshold:")
        # Stricter than int(), which also takes blanks, underscores and other scripts' digits.
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", text) or abs(int(text)) > MAX_THRESHOLD:
            raise PolicyError(
                f"{name!r} is no threshold: write threshold:N with an integer N from "
                f"-{MAX_THRESHOLD} to {MAX_THRESHOLD}, or ./ before the name of a file."
            )
        return threshold(int(text), self.problem)


BUILTINS: Final = InliningBuiltins(NAME, DATA, PACKAGED)


def constant(*, inline: bool, problem: str = NAME) -> TreesPolicy:
    """Return the policy that always gives the same answer."""
    return TreesPolicy(
        _metadata("always" if inline else "never", problem),
        root=np.zeros(1, dtype=np.int32),
        feature=np.full(1, -1, dtype=np.int32),
        threshold=np.zeros(1),
        left=np.zeros(1, dtype=np.int32),
        right=np.zeros(1, dtype=np.int32),
        value=np.array([1.0 if inline else -1.0]),
    )


def threshold(n: int, problem: str = NAME) -> TreesPolicy:
    """Return the policy that inlines where ``cost_estimate`` < n."""
    # The trees' test is `<=`: below n means up to the last double before it.
    below = np.nextafter(np.float64(n), -np.inf)
    return TreesPolicy(
        _metadata(f"threshold:{n}", problem),
        root=np.zeros(1, dtype=np.int32),
        feature=np.array([0, -1, -1], dtype=np.int32),
        threshold=np.array([below, 0.0, 0.0]),
        left=np.array([1, 0, 0], dtype=np.int32),
        right=np.array([2, 0, 0], dtype=np.int32),
        value=np.array([0.0, 1.0, -1.0]),
    )


def _metadata(name: str, problem: str) -> Metadata:
    return Metadata(
        kind="trees",
        features=("cost_estimate",),
        answers="decision",
        transform="none",
        provenance={"builtin": name},
        problem=problem,
    )
