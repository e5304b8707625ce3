"""Draw source packages at random: the same ones for the same seed and index.

Packages are ordered by a hash of seed and name, and the first ones are taken. So a larger draw
begins with the smaller one, and a package that enters or leaves the archive moves no other.
"""

import hashlib
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from nestor.corpus.fetch.tiers import TIERS, recipes
from nestor.corpus.packages.index import Index, Language, SourcePackage

Half = Literal["development", "final"]
_HALVES: Final[tuple[Half, Half]] = ("development", "final")


@dataclass(frozen=True)
class SampleSettings:
    """What is drawn."""

    seed: int = 0
    count: int = 10
    """How many packages."""
    language: Language | Literal["both"] = "both"
    """The language of the packages; C++ packages may have C code, too."""
    least_kb: int = 20
    """The smallest source package, in kB of its compressed files."""
    most_kb: int = 2_000
    """The largest source package, in kB of its compressed files."""


@dataclass(frozen=True)
class Drawn:
    """One drawn package."""

    package: SourcePackage
    half: Half
    """Every other package is for development; the other half is for one look at the end."""


@dataclass(frozen=True)
class Sample:
    """A draw, with what makes it repeatable."""

    settings: SampleSettings
    index: str
    """The digest of the index."""
    candidates: int
    """Packages that could have been drawn."""
    drawn: tuple[Drawn, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the draw as plain data."""
        return {
            **asdict(self.settings),
            "index": self.index,
            "candidates": self.candidates,
            "packages": [asdict(one.package) | {"half": one.half} for one in self.drawn],
        }


def draw(index: Index, settings: SampleSettings, excluded: Collection[str]) -> Sample:
    """Draw packages of ``index``, none of them in ``excluded``."""
    limits = range(1000 * settings.least_kb, 1000 * settings.most_kb + 1)
    candidates = [
        package
        for package in index.packages
        if package.language is not None
        and settings.language in ("both", package.language)
        and package.bytes in limits
        and package.name not in excluded
    ]
    candidates.sort(key=lambda package: _rank(settings.seed, package.name))
    drawn = tuple(
        Drawn(package, _half(settings.seed, package.name))
        for package in candidates[: settings.count]
    )
    return Sample(settings, index.digest, len(candidates), drawn)


def packages_seen_in_training() -> frozenset[str]:
    """Return the source packages of the tiers' projects for training and validation."""
    return frozenset(
        recipe.package
        for tier in TIERS
        for recipe in recipes(tier)
        if recipe.split in ("train", "validation")
    )


def _rank(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


def _half(seed: int, name: str) -> Half:
    """Return the half of a package, which does not depend on what else is drawn."""
    return _HALVES[_rank(seed, f"{name} half")[0] % 2]
