"""Scores in linked bytes: what a program weighs once the linker has done its work.

Objects lie. A linker drops functions that nobody calls and all but one copy of a COMDAT function,
so bytes saved in an object may save nothing in the program. Hence two scores:

* :func:`link` gives the exact size of a program;
* :func:`shares` weighs every function of every module by what the link kept of it, so that the
  program's bytes can be put down to its modules and functions.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler.objects import Measure, ObjectError, measure
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, Program
from nestor.corpus.relink import LinkMode, link_command
from nestor.temporary import temporary_folder

# A line of lld's map for one input section: VMA, LMA, size, alignment, then object:(section).
_MAP_LINE = re.compile(r"^\s*[0-9a-f]+\s+[0-9a-f]+\s+[0-9a-f]+\s+\d+\s+(\S.*):\((\.text\.[^)]+)\)$")
_TEXT_PREFIXES = re.compile(r"^\.text\.(unlikely\.|startup\.|exit\.|hot\.)?")


LINKED: Final = "linked"
TEXT: Final = "text"
"""The columns that a linked program has: its loadable bytes, and those of code among them."""


@dataclass(frozen=True)
class Link:
    """The result of linking one program."""

    measure: Measure | None
    kept: frozenset[tuple[str, str]]
    """(module, function) of every function in the program, if a map was asked for."""
    failure: str | None


def link(
    toolchain: Toolchain,
    corpus: Corpus,
    program: Program,
    objects: Mapping[str, Path],
    *,
    mode: LinkMode = "gc",
    out: Path | None = None,
    want_kept: bool = False,
    limits: Limits | None = None,
) -> Link:
    """Link ``program`` from ``objects`` (by module name) and measure it.

    A failed link is a result with its reason. The file is kept only if ``out`` is given.
    """
    missing = [name for name in program.modules if name not in objects]
    if missing:
        return Link(None, frozenset(), f"not linked: no object for {missing[0]}")
    with temporary_folder("link") as folder:
        binary = out or Path(folder) / "program"
        # Modules with equal objects share a file; in the map each must have a name of its own.
        objects = _named_apart(objects, Path(folder))
        map_file = Path(folder) / "map"
        command = link_command(toolchain, corpus, program, objects, binary, mode)
        if want_kept:
            command.append(f"-Wl,-Map={map_file}")
        outcome = run(command, limits)
        if not outcome.ok:
            return Link(None, frozenset(), f"link {outcome.reason}")
        try:
            sizes = measure(binary)
        except ObjectError as error:
            return Link(None, frozenset(), f"link failed: {error}")
        kept = _read_map(map_file, objects) if want_kept else frozenset()
    return Link(sizes, kept, None)


def _named_apart(objects: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Return a link to each object under a name of its own in ``folder``."""
    found = {name: folder / f"{number}.o" for number, name in enumerate(objects)}
    for name, link_to in found.items():
        link_to.symlink_to(objects[name].resolve())
    return found


def _read_map(path: Path, objects: Mapping[str, Path]) -> frozenset[tuple[str, str]]:
    modules = {str(file): name for name, file in objects.items()}
    found = set()
    with path.open(errors="replace") as lines:
        for line in lines:
            match = _MAP_LINE.match(line.rstrip())
            if match and match[1] in modules:
                found.add((modules[match[1]], _TEXT_PREFIXES.sub("", match[2])))
    return frozenset(found)


@dataclass(frozen=True)
class Shares:
    """How much of each function's bytes one link kept: 1, 0, or 1/k of each of k equal copies."""

    functions: Mapping[tuple[str, str], float]
    """By (module, function)."""
    constants: Mapping[str, float]
    """By module, for its read-only data."""

    def score(self, module: str, sizes: Measure) -> float:
        """Return the bytes of the program that are one module's; lower is better."""
        functions = sum(
            self.functions.get((module, function.name), 0.0) * function.size
            for function in sizes.functions
        )
        return functions + self.constants.get(module, 0.0) * sizes.sections[".rodata"]

    def code(self, module: str, sizes: Measure) -> float:
        """Return the bytes of code among them."""
        return sum(
            self.functions.get((module, function.name), 0.0) * function.code
            for function in sizes.functions
        )


def shares(
    program: Program, linked: Link, sizes: Mapping[str, Measure], least_copies: int = 1
) -> Shares:
    """Weigh every function by what the link kept of it.

    A function with external linkage counts fully where the program keeps it. Of a COMDAT
    function the program keeps one copy out of k; a policy makes the same decisions in all of
    them, so each copy counts 1/k, and their sum is what the program holds. A function that the
    link dropped counts nothing.

    :param linked: the program linked with ``want_kept``.
    :param sizes: the measures of the same objects by module.
    :param least_copies: copies of each COMDAT function to assume where there are fewer, as if the
        modules were a part of a larger program.
    """
    modules = [name for name in program.modules if name in sizes]
    weak = {name: {f.name for f in sizes[name].functions if f.weak} for name in modules}
    copies = Counter(function for names in weak.values() for function in names)
    kept_anywhere = {function for _, function in linked.kept}
    functions: dict[tuple[str, str], float] = {}
    constants: dict[str, float] = {}
    for name in modules:
        for function in sizes[name].functions:
            if function.name in weak[name]:
                if function.name in kept_anywhere:
                    count = max(copies[function.name], least_copies)
                    functions[name, function.name] = 1 / count
            elif (name, function.name) in linked.kept:
                functions[name, function.name] = 1.0
        if any((name, f.name) in linked.kept for f in sizes[name].functions):
            constants[name] = 1.0
    return Shares(functions, constants)
