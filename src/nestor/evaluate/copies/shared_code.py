"""How much of a program's code has training seen? By the hashes of its functions.

The hashes of all functions of the training and validation projects are kept in a file, so that a
package can be judged without the corpus that policies were trained on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.corpus.model import Split
from nestor.evaluate.copies.overlap import Compiled, functions
from nestor.files import read_regular_text, write_atomically

_LETTERS: Final = 16
"""Of a hash, in a file: 64 bits, so that among a million functions none is equal by accident."""


@dataclass(frozen=True)
class SharedCode:
    """Code that training has seen, of functions of at least 64 bytes, each once."""

    functions: int
    bytes: int
    shared_functions: int
    shared_bytes: int

    @property
    def pct(self) -> float:
        """The shared part in per cent of the bytes."""
        return 100.0 * self.shared_bytes / self.bytes if self.bytes else 0.0


def hashes_of(
    corpora: Sequence[Compiled], splits: Iterable[Split] = ("train", "validation")
) -> frozenset[str]:
    """Return the hashes of the functions of all projects in ``splits``.

    :param corpora: corpora with the objects that the stock compiler makes of their modules; a
        module without one is left out.
    :raises ObjectError: if an object cannot be read.
    """
    chosen = frozenset(splits)
    return frozenset(
        digest[:_LETTERS]
        for compiled in corpora
        for module in compiled.corpus.modules
        if compiled.corpus.splits.get(module.project, "train") in chosen
        and module.name in compiled.objects
        for digest, _, _ in functions(compiled.objects[module.name])
    )


def write_hashes(path: Path, hashes: Iterable[str]) -> None:
    """Write hashes to a file, one a line."""
    write_atomically(path, "".join(f"{digest}\n" for digest in sorted(hashes)))


def read_hashes(path: Path) -> frozenset[str]:
    """Read what :func:`write_hashes` has written.

    :raises ReadError: if the file cannot be read.
    """
    return frozenset(read_regular_text(path, "a file of hashes").split())


def shared_code(objects: Iterable[Path], seen: frozenset[str]) -> SharedCode:
    """Return how much of the code in ``objects`` is ``seen``.

    :param objects: what the stock compiler makes of the modules of a program or package.
    :param seen: hashes of functions.
    :raises ObjectError: if an object cannot be read.
    """
    found = {digest[:_LETTERS]: size for path in objects for digest, size, _ in functions(path)}
    shared = found.keys() & seen
    return SharedCode(
        functions=len(found),
        bytes=sum(found.values()),
        shared_functions=len(shared),
        shared_bytes=sum(found[digest] for digest in shared),
    )
