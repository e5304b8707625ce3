"""The functions of object files, each with its blocks."""

from dataclasses import dataclass, field
from pathlib import Path

from nestor.cost.sources import objects
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.splitting import Pieces


@dataclass(frozen=True)
class Function:
    """The code of one function."""

    name: str
    """Empty where it has none."""
    source: str
    """The file, or the library with its member."""
    blocks: tuple[bytes, ...]
    """In the order of their addresses."""


@dataclass
class _Functions(Collection):
    """Keeps functions whole, where a table wants their blocks apart."""

    found: list[Function] = field(default_factory=list)

    def add_function(self, pieces: Pieces, source: str, function: str) -> None:
        """Add what a function was cut into."""
        super().add_function(pieces, source, function)
        if pieces.blocks:
            self.found.append(Function(function, source, tuple(pieces.blocks)))


def read(path: Path) -> tuple[Function, ...]:
    """Return the functions of an object, a program or a static library.

    :raises NestorError: if it is none of these.
    """
    into = _Functions()
    objects.read(path, into)
    return tuple(into.found)
