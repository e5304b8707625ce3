"""Policies that need no file: the shipped ones, the baselines, and the published one of 2020."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np

from nestor.policy import bundle
from nestor.policy.spec import Metadata, Policy, PolicyError
from nestor.policy.trees import TreesPolicy

#: What `resolve("default")` gives: no policy, the compiler's own heuristic decides.
DefaultPolicy: Final[None] = None

#: How the built-ins are written, for messages and help texts.
BUILTINS: Final = (
    "default",
    "shipped",
    "distilled",
    "never",
    "always",
    "threshold:N",
    "mlgo2020",
)

#: Far beyond LLVM's own thresholds (at most some thousands) and safe as a C++ int.
MAX_THRESHOLD: Final = 1_000_000

#: Policies that come with the package: `shipped` is the one to use, `distilled` reads a summary of
#: the program and works inside LTO (docs/studies/policies.md), `mlgo2020` is the published one of
#: 2020.
_PACKAGED: Final = ("shipped", "distilled", "mlgo2020")
_DATA: Final = Path(__file__).parent / "data"


def resolve(name_or_path: str) -> Policy | None:
    """
    The policy that a user means; `DefaultPolicy` (None) for `default`.

    A built-in name wins over a file: write `./never` for a file of that name. Raises
    PolicyError for a file that is missing or unsound, and for a threshold that is no integer
    within ±MAX_THRESHOLD.
    """
    if name_or_path == "default":
        return DefaultPolicy
    if name_or_path == "never":
        return constant(inline=False)
    if name_or_path == "always":
        return constant(inline=True)
    if name_or_path in _PACKAGED:
        return bundle.load(_DATA / f"{name_or_path}.safetensors")
    if name_or_path.startswith("threshold:"):
        text = name_or_path.removeprefix("threshold:")
        # Stricter than int(), which also takes blanks, underscores and other scripts' digits.
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", text) or abs(int(text)) > MAX_THRESHOLD:
            raise PolicyError(
                f"{name_or_path!r} is no threshold: write threshold:N with an integer N from "
                f"-{MAX_THRESHOLD} to {MAX_THRESHOLD}, or ./ before the name of a file."
            )
        return threshold(int(text))
    try:
        found = Path(name_or_path).exists()
    except (OSError, ValueError):  # too long, or with a NUL: `load` words the reason
        found = True
    if not found:
        raise PolicyError(
            f"There is no policy file {name_or_path!r}; give the path of one, or a built-in "
            f"policy: {', '.join(BUILTINS)}."
        )
    return bundle.load(name_or_path)


def constant(*, inline: bool) -> TreesPolicy:
    """The policy that always gives the same answer."""
    return TreesPolicy(
        _metadata("always" if inline else "never"),
        root=np.zeros(1, dtype=np.int32),
        feature=np.full(1, -1, dtype=np.int32),
        threshold=np.zeros(1),
        left=np.zeros(1, dtype=np.int32),
        right=np.zeros(1, dtype=np.int32),
        value=np.array([1.0 if inline else -1.0]),
    )


def threshold(n: int) -> TreesPolicy:
    """The policy that inlines where `cost_estimate` < n."""
    # The trees' test is `<=`: below n means up to the last double before it.
    below = np.nextafter(np.float64(n), -np.inf)
    return TreesPolicy(
        _metadata(f"threshold:{n}"),
        root=np.zeros(1, dtype=np.int32),
        feature=np.array([0, -1, -1], dtype=np.int32),
        threshold=np.array([below, 0.0, 0.0]),
        left=np.array([1, 0, 0], dtype=np.int32),
        right=np.array([2, 0, 0], dtype=np.int32),
        value=np.array([0.0, 1.0, -1.0]),
    )


def _metadata(name: str) -> Metadata:
    return Metadata("trees", ("cost_estimate",), "decision", "none", {"builtin": name})
