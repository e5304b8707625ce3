"""Linking a program of a corpus again, from objects compiled from its modules."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, CorpusError, Program

LinkMode = Literal["gc", "no-gc", "icf"]
"""``gc``: unused sections go (the default everywhere); ``icf``: equal functions are merged too."""

_MODE_OPTIONS: Mapping[LinkMode, tuple[str, ...]] = {
    "gc": ("-Wl,--gc-sections",),
    "no-gc": (),
    "icf": ("-Wl,--gc-sections", "-Wl,--icf=all"),
}

_GROUPS = frozenset({"-Wl,--start-group", "-Wl,--end-group"})
"""lld looks at every library as often as it must, and refuses ``--start-lib`` inside of a group."""


def link_command(
    toolchain: Toolchain,
    corpus: Corpus,
    program: Program,
    objects: Mapping[str, Path],
    out: Path,
    mode: LinkMode = "gc",
) -> list[str]:
    """Return the command that links ``program`` with lld into ``out``.

    ``objects`` maps every module of ``program.modules`` to an object file; raises
    :class:`CorpusError` when one is missing. The source tree is not needed.
    """
    driver = toolchain.clangxx if program.language == "c++" else toolchain.clang
    command = [str(driver), "-fuse-ld=lld", *_MODE_OPTIONS[mode]]
    for item in program.inputs:
        if item.kind == "option":
            if item.value not in _GROUPS:
                command.append(item.value)
        elif item.kind == "foreign":
            command.append(str(corpus.foreign(item.value)))
        elif item.value in objects:
            command.append(str(objects[item.value]))
        else:
            raise CorpusError(f"The program {program.name} needs an object for {item.value}.")
    return [*command, "-o", str(out)]
