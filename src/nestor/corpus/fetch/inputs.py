"""Where the files come from that the runs of a workload read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nestor.corpus.fetch.generated import generate


class InputSource(Protocol):
    """One input; equal sources give equal files, and ``repr`` tells different ones apart."""

    def content(self, source: Path) -> bytes:
        """Return the bytes of the input.

        :param source: the folder of the project's sources, once built.
        """
        ...


@dataclass(frozen=True)
class FromSources:
    """Files of the project's own sources, one after the other."""

    paths: tuple[str, ...]

    def content(self, source: Path) -> bytes:
        """Return the files' content."""
        return b"".join((source / path).read_bytes() for path in self.paths)


@dataclass(frozen=True)
class FromText:
    """A text that the workload itself spells out, such as a script."""

    text: str

    def content(self, source: Path) -> bytes:
        """Return the text."""
        return self.text.encode()


@dataclass(frozen=True)
class FromSeed:
    """Computed data (:mod:`nestor.corpus.fetch.generated`)."""

    kind: str
    size: int
    seed: int

    def content(self, source: Path) -> bytes:
        """Return the data."""
        return generate(self.kind, self.size, self.seed)
