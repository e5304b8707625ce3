"""The settings of the sources of blocks, without what the work itself imports."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from nestor.cost.sources.licences import accepts


@dataclass(frozen=True)
class CompileSettings:
    """How modules are compiled."""

    jobs: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    """Compilers at once."""
    timeout: float = 120.0
    """Seconds until a compile is killed."""
    memory: int = 4096
    """MiB of address space that a compile may use."""
    objects: Path | None = None
    """Folder that keeps the objects, so that a run that was stopped goes on; None keeps nothing."""


@dataclass(frozen=True)
class Columns:
    """What the columns of a list without headings are."""

    cycles_column: int | None = None
    """Column of the labels in a list without headings, counted from 0; the code is in column 0."""
    frequency_column: int | None = None
    """Column of how often the block occurs; without one every row counts once."""
    iterations: float = 100.0
    """Iterations that a label in a list without headings covers: BHive's are cycles per 100."""


@dataclass(frozen=True)
class Filter:
    """Which rows of ComPile's bitcode are used."""

    licences: tuple[str, ...] = ()
    """SPDX licences of ComPile's rows to use; expressions must be met with these. None: all."""
    languages: tuple[str, ...] = ()
    """Languages of ComPile's rows to use (c, c++, rust, swift, julia). None: all."""

    def takes(self, licence: str | None, language: str | None) -> bool:
        """Tell whether a row of this licence and language is used."""
        wanted = {name.lower() for name in self.languages}
        return (not wanted or (language or "").lower() in wanted) and (
            not self.licences or accepts(licence, self.licences)
        )


@dataclass(frozen=True)
class ExtractSettings:
    """What each kind of source needs."""

    projects: tuple[str, ...] = ()
    """Projects of a corpus to use; empty: all."""
    compiling: CompileSettings = field(default_factory=CompileSettings)
    columns: Columns = field(default_factory=Columns)
    wanted: Filter = field(default_factory=Filter)
    assembly: str | None = None
    """Assembly text to read in addition to the sources."""
    intel: bool = False
    """Assembly is in Intel's syntax."""
