"""Vocabularies for embeddings of functions (``-nestor-vocabulary``, docs/studies/richer-state.md).

A vocabulary gives each of LLVM's IR2Vec entities (opcodes, types, kinds of operands, predicates)
a vector of whole numbers; a function's embedding is the sum over its instructions. That is
IR2Vec's symbolic embedding (VenkataKeerthy et al., ACM TACO 2020), with the weights of opcodes,
types and operands multiplied in.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.compiler.process import Limits, run
from nestor.compiler.releases import VOCABULARIES
from nestor.compiler.toolchain import Toolchain, ToolchainError
from nestor.errors import NestorError
from nestor.files import read_regular

F64 = npt.NDArray[np.float64]

WEIGHTS: Final = {"Opcodes": 1.0, "Types": 0.5, "Arguments": 0.2}
"""LLVM's sections of a vocabulary and what it multiplies their vectors by."""

_LARGEST: Final = 1 << 20


class VocabularyError(NestorError):
    """A vocabulary that cannot be used."""


def text(vectors: Mapping[str, F64]) -> str:
    """Return the file for ``vectors``, rounded to whole numbers.

    :raises VocabularyError: if there are none, or a number is beyond 2^20.
    """
    if not vectors:
        raise VocabularyError("A vocabulary needs at least one entity.")
    rows = {name: np.rint(vector) for name, vector in vectors.items()}
    if max(float(np.abs(row).max(initial=0)) for row in rows.values()) > _LARGEST:
        raise VocabularyError("A vocabulary's numbers must be at most 2^20: scale it down.")
    dimension = len(next(iter(rows.values())))
    lines = [f"entity {name} {' '.join(str(int(n)) for n in row)}" for name, row in rows.items()]
    return "\n".join(["nestor-vocabulary 1", f"dimension {dimension}", *lines, ""])


def identity(entities: tuple[str, ...]) -> dict[str, F64]:
    """Return the vocabulary under which an embedding is how often each entity occurs."""
    return dict(zip(entities, np.eye(len(entities)), strict=True))


def from_llvm(path: Path, scale: float = 1000.0) -> dict[str, F64]:
    """Return a vocabulary in LLVM's format, such as seedEmbeddingVocab75D.json of its sources.

    :param scale: whole numbers for 1.0.
    :raises NestorError: if it cannot be read or is not one.
    """
    try:
        sections = json.loads(read_regular(path, "a vocabulary"))
        found = {
            name: scale * weight * np.array(vector, dtype=np.float64)
            for section, weight in WEIGHTS.items()
            for name, vector in sections[section].items()
        }
        if len({vector.shape for vector in found.values()}) != 1:
            raise ValueError("its vectors have several lengths")
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise VocabularyError(f"'{path}' is no vocabulary of LLVM's ({error}).") from None


def entities(toolchain: Toolchain, folder: Path) -> tuple[str, ...]:
    """Return the names of all entities in LLVM's order.

    :param folder: for a temporary file.
    :raises ToolchainError: if this LLVM has no llvm-ir2vec.
    """
    out = folder / "entities.txt"
    _tool(toolchain, "entities", "-o", str(out))
    return tuple(line.split("\t")[0] for line in out.read_text().splitlines()[1:])


def triplets(toolchain: Toolchain, bitcode: Path, folder: Path) -> dict[tuple[int, int, int], int]:
    """Return how often each (entity, entity, relation) occurs in a module, by numbers.

    :param folder: for a temporary file.
    :raises ToolchainError: if this LLVM has no llvm-ir2vec, or it cannot read the module.
    """
    out = folder / "triplets.txt"
    _tool(toolchain, "triplets", str(bitcode), "-o", str(out))
    found: dict[tuple[int, int, int], int] = {}
    for line in out.read_text().splitlines():
        words = line.split()
        if len(words) == 3:
            key = (int(words[0]), int(words[1]), int(words[2]))
            found[key] = found.get(key, 0) + 1
    return found


def _tool(toolchain: Toolchain, *words: str) -> None:
    toolchain.require(VOCABULARIES)
    tool = toolchain.clang.parent / "llvm-ir2vec"
    done = run([tool, *words], Limits())
    if not done.ok:
        raise ToolchainError(
            f"'{tool}' is needed and failed ({done.reason}): install the package"
            f" llvm-{toolchain.major}."
        )
