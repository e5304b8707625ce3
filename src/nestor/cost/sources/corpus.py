"""Blocks of a corpus: every module compiled at -O2."""

from collections.abc import Collection as Names

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, CorpusError
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.compiling import Unit, compile_and_read
from nestor.cost.sources.settings import CompileSettings
from nestor.progress import Progress, silent


def read(
    corpus: Corpus,
    toolchain: Toolchain,
    settings: CompileSettings,
    into: Collection,
    projects: Names[str] = (),
    progress: Progress = silent,
) -> None:
    """Add the blocks of a corpus to ``into``; of ``projects`` only, if any are named.

    Modules of the same bitcode and options are compiled once.

    :raises CorpusError: if the corpus has no such project.
    """
    present = {module.project for module in corpus.modules}
    if unknown := sorted(set(projects) - present):
        raise CorpusError(
            f"The corpus {corpus.root} has no project {', '.join(unknown)}; 'nestor corpus info'"
            " lists them."
        )
    units = {
        (module.digest, module.options): Unit(
            module.name, module.digest, module.options, corpus.bitcode(module)
        )
        for module in reversed(corpus.modules)
        if not projects or module.project in projects
    }
    done = 0

    def finished(_unit: Unit) -> None:
        nonlocal done
        done += 1
        progress("Compiling at -O2", done, len(units))

    compile_and_read(reversed(units.values()), toolchain, settings, into, finished)
