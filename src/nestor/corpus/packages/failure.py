"""Why a source package gives nothing, or less than it has: reasons from a fixed list."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from nestor.errors import NestorError

Reason = Literal[
    "no source",
    "build dependencies",
    "build failed",
    "too long",
    "too big",
    "no modules",
    "no program",
    "link fails again",
]
"""``no source``: the archive has none, or it cannot be unpacked. ``build dependencies``: they
cannot be installed. ``build failed``, ``too long``, ``too big``: how the build ended. ``no
modules``: it compiled nothing with the wrappers. ``no program``: it linked nothing that a corpus
can describe. ``link fails again``: no program can be linked from the modules alone."""

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


class PackageError(NestorError):
    """A package that cannot be captured."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: Reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Failure:
    """A package, or a part of one, that was not captured."""

    package: str
    reason: Reason
    detail: str
    """What the tool said that failed, in one line."""
    partial: bool = False
    """The package has programs in the corpus all the same."""


def by_reason(failures: Iterable[Failure]) -> dict[str, int]:
    """Return how many packages failed for each reason, in the order of :data:`REASONS`."""
    counts = Counter(failure.reason for failure in failures if not failure.partial)
    return {reason: counts[reason] for reason in REASONS if counts[reason]}
