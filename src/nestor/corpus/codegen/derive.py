"""What corpora that are made of another one share: the checks before, and module by module."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, CorpusError, Missing, Module
from nestor.corpus.release import require_readable
from nestor.progress import Progress


def require_source(corpus: Corpus, out: Path, toolchain: Toolchain) -> None:
    """Refuse what no corpus can be made of, or where none can be written.

    :raises CorpusError: if ``out`` is not empty, or ``corpus`` is a codegen corpus or one of a
        newer LLVM.
    """
    if out.exists() and any(out.iterdir()):
        raise CorpusError(f"{out} is not empty; name a new folder.")
    if corpus.is_codegen:
        raise CorpusError(f"{corpus.root} is a codegen corpus already; name what it was made of.")
    require_readable(corpus, toolchain)


def place_of(out: Path, module: Module) -> Path:
    """Return where the bitcode of ``module`` goes in the corpus ``out``; its folder is there."""
    path = out / f"{module.name}.bc"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def written(path: Path, module: Module, options: Sequence[str]) -> Module:
    """Write the cc1 line beside the bitcode ``path``, and return the new module."""
    path.with_suffix(".cmd").write_bytes("\0".join(options).encode())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(module, digest=digest, options=tuple(options))


def all_modules(
    modules: Sequence[Module],
    write: Callable[[Module], Module | Missing],
    jobs: int,
    progress: Progress,
    stage: str,
) -> tuple[tuple[Module, ...], list[Missing]]:
    """Return the modules that were written, and those that the compiler refused."""
    found: list[Module] = []
    missing: list[Missing] = []
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        for done, result in enumerate(pool.map(write, modules)):
            progress(stage, done, len(modules))
            if isinstance(result, Module):
                found.append(result)
            else:
                missing.append(result)
    progress(stage, len(modules), len(modules))
    return tuple(found), missing
