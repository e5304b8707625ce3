"""What episodes are made of: modules of a corpus, or the built-in one; and what a compiler asks."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nestor.compiler.channel import Channel, Tensor
from nestor.compiler.invocation import compile_command
from nestor.compiler.toolchain import INSTALL_HINT, Toolchain, ToolchainError
from nestor.corpus import store
from nestor.corpus.model import Corpus, CorpusError, Module, Split
from nestor.problem.live import Live
from nestor.rollout.gate import probe_folder
from nestor.temporary import temporary_folder

PROBE: Final = "probe.cpp"
"""The built-in module that is compiled where no corpus is given."""


@dataclass(frozen=True)
class Unit:
    """Something to compile; ``module`` is None for the built-in module."""

    name: str
    module: Module | None

    def command(
        self, live: Live, toolchain: Toolchain, corpus: Corpus | None, out: Path
    ) -> list[str]:
        """Return the command that compiles it to ``out``."""
        if self.module is None or corpus is None:
            return [str(toolchain.clang), *_probe_words(live), "-o", str(out)]
        return compile_command(toolchain, self.module.options, corpus.bitcode(self.module), out)


def units(
    folder: str | os.PathLike[str] | None, module: str | None, split: Split | Literal["all"] | None
) -> tuple[Corpus | None, tuple[Unit, ...]]:
    """Return the corpus and what episodes are made of."""
    if folder is None:
        if module is not None or split is not None:
            raise CorpusError("A module or a split is one of a corpus: give corpus=DIR.")
        return None, (Unit(PROBE, None),)
    if module is not None and split is not None:
        raise CorpusError("Give a module or a split, not both.")
    corpus = store.load(Path(folder))
    if module is not None:
        return corpus, (Unit(module, corpus.module(module)),)
    modules = corpus.modules if split == "all" else corpus.modules_of(split or "train")
    if not modules:
        raise CorpusError(
            f"The corpus {corpus.root} has no modules in the split {split or 'train'}; take "
            "another split."
        )
    return corpus, tuple(Unit(module.name, module) for module in modules)


def _probe_words(live: Live) -> tuple[str, ...]:
    return (live.level, "-c", str(probe_folder() / PROBE))


@functools.cache
def announced(live: Live, toolchain: Toolchain) -> tuple[Tensor, ...]:
    """Ask the compiler for the tensors that it asks with.

    :raises NestorError: if it has no channel or asks nothing.
    """
    live.require(toolchain)
    with temporary_folder("probe") as folder:
        out = Path(folder) / "probe.o"
        with Channel([toolchain.clang, *_probe_words(live), "-o", out], live.options) as channel:
            if channel.observe() is None:
                raise ToolchainError(f"LLVM {toolchain.version} asks nothing: {INSTALL_HINT}.")
            return channel.features
