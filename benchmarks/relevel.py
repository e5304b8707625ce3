"""A corpus at -Oz or -Os from one at -O2 or -Os, where building it again would take too long.

    python -m benchmarks.relevel SPEED OUT [--level=-Os] [--compare TINY] [--json FILE]

The front end writes the same IR at all of them, but for the attributes ``minsize`` (-Oz) and
``optsize`` (both), which every function gets here, and for what sources make of
``__OPTIMIZE_SIZE__``, which they do not get. ``--compare`` compiles the modules that a corpus
fetched at that level has too, and says how many objects are the same from both.
"""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from benchmarks import record
from benchmarks.machine import describe
from nestor.compiler import toolchain as toolchains
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.level import Level
from nestor.corpus.model import Corpus, Module
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.temporary import temporary_folder

ForSize = Literal["-Oz", "-Os"]

_ATTRIBUTES: Final[dict[ForSize, tuple[str, ...]]] = {
    "-Oz": ("minsize", "optsize"),
    "-Os": ("optsize",),
}


def options_for_size(options: Sequence[str], before: Level, level: ForSize) -> tuple[str, ...]:
    """Return the cc1 line that clang's driver writes at ``level`` instead of ``options``.

    It lets loops be vectorised at -Os, but not at -Oz.

    :param before: the level that ``options`` are for.
    """
    words = (level if word == before else word for word in options)
    return tuple(word for word in words if level == "-Os" or word != "-vectorize-loops")


def relevel(toolchain: Toolchain, corpus: Corpus, out: Path, level: ForSize) -> Corpus:
    """Write ``corpus`` to ``out`` at ``level``; modules that are there already are kept.

    :raises NestorError: if a module cannot be read.
    """
    new, modules = replace(corpus, root=out), list[Module]()
    marks = [f"-force-attribute={name}" for name in _ATTRIBUTES[level]]
    passes = ["-passes=forceattrs", *marks, "-preserve-bc-uselistorder"]
    for module in corpus.modules:
        bitcode = new.bitcode(module)
        options = options_for_size(module.options, corpus.level, level)
        if not bitcode.exists():
            bitcode.parent.mkdir(parents=True, exist_ok=True)
            scratch = bitcode.with_suffix(".tmp")
            tool = toolchain.clang.parent / "opt"
            done = run([tool, *passes, str(corpus.bitcode(module)), "-o", str(scratch)], Limits())
            if not done.ok:
                raise NestorError(f"{module.name}: {done.reason}")
            scratch.replace(bitcode)
        write_atomically(out / f"{module.name}.cmd", "\0".join(options).encode())
        digest = hashlib.sha256(bitcode.read_bytes()).hexdigest()
        modules.append(replace(module, digest=digest, options=options))
    others = (
        [corpus.input(digest) for project in corpus.projects for _, digest in project.inputs],
        [corpus.foreign(i.value) for p in corpus.programs for i in p.inputs if i.kind == "foreign"],
    )
    for file in (each for group in others for each in group):
        write_atomically(out / file.relative_to(corpus.root), file.read_bytes())
    new = replace(new, modules=tuple(modules), level=level)
    store.save(new)
    return new


def compare(toolchain: Toolchain, one: Corpus, other: Corpus) -> tuple[int, int]:
    """Return how many modules of both corpora give the same object, and how many there are."""
    theirs = {module.name: module for module in other.modules}
    same = compared = 0
    with temporary_folder("relevel") as name:
        for module in one.modules:
            if module.name not in theirs:
                continue
            objects = []
            for corpus, each in ((one, module), (other, theirs[module.name])):
                out = Path(name) / "o"
                words = ["-x", "ir", str(corpus.bitcode(each)), "-o", str(out)]
                done = run([toolchain.clang, *each.options, *words], Limits())
                objects.append(out.read_bytes() if done.ok else None)
            compared += 1
            same += objects[0] == objects[1]
    return same, compared


def main() -> int:
    """Make the corpus, and compare it if there is one to compare with."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--level", choices=tuple(_ATTRIBUTES), default="-Oz")
    parser.add_argument("--compare", type=Path, help="a corpus that was fetched at that level")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    toolchain = toolchains.find()
    made = relevel(toolchain, store.load(options.corpus), options.out, options.level)
    print(f"{options.out}: {len(made.modules)} modules, corpus {store.load(options.out).digest}")
    if options.compare is not None:
        same, compared = compare(toolchain, made, store.load(options.compare))
        print(f"{same} of {compared} objects are the same")
        if options.json:
            columns = [("objects compared", "{:,}"), ("the same", "{:,}")]
            tables = {"relevelled": record.table(columns, [[compared, same]])}
            about = "A policy and a search inside LTO against stock LTO: linked bytes / code."
            record.write(options.json, about, tables, describe(toolchain))
    return 0


if __name__ == "__main__":
    sys.exit(main())
