"""A small program under two policies, compiled for real, for the tests of the page."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.capture import merge
from nestor.corpus.capture.build import Wrappers
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import JOURNAL
from nestor.corpus.model import Corpus
from nestor.problem.places import Places
from nestor.report.page import page
from nestor.report.sides import ModuleSide, Side, Sides, compile_sides
from nestor.report.tables import page_data
from nestor.rollout.local_pool import LocalPool
from tests.inlining import PROBLEM, policy_named

LARGE: Final = " + ".join(["getchar()"] * 12)
BULK: Final = "\n".join(
    f"int bulk_{number}(int v) {{ return v + getchar() * getchar(); }}" for number in range(100)
)
"""Lets the module grow without coming near the cap of LLVM, which is twice its size."""
ONE: Final = f"""
extern int getchar(void);
{BULK}
static int large(int v) {{ return v * ({LARGE}); }}
int one(int v) {{ return large(v) + large(v + 1); }}
int two(int v) {{ return one(v) + large(v + 2); }}
"""
MAIN: Final = "extern int two(int);\nint main(int c, char **v) { return two(c) + two(c + 1); }\n"
MAKEFILE: Final = "p: one.o main.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -O2 -c $<\n"

HOSTILE: Final = (
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "a\nsite 0123456789abcdef inline",
    '"><b id=planted>bold</b>',
    "@SCRIPT@ @BLOBS@ \u202e ' \" & <!--",
)


def with_lines(
    root: Path, toolchain: Toolchain, source: Path, makefile: str, *, lines: bool = True
) -> Corpus:
    """Capture the project ``p`` in a folder, with the numbers of its lines."""
    (source / "Makefile").write_text(makefile)
    wrappers = Wrappers(toolchain, root / JOURNAL / "bin", root, "p", source, lines=lines).write()
    subprocess.run(
        ["make"], cwd=source, env=wrappers.environment(), check=True, capture_output=True
    )
    return merge.finalise(root, Journal(root / JOURNAL), toolchain=toolchain.version)


def compiled(folder: Path, plugin: Plugin, measure: int = 0) -> Sides:
    """Compile the program under ``always`` and ``never``."""
    sources = folder / "sources"
    sources.mkdir()
    (sources / "one.c").write_text(ONE)
    (sources / "main.c").write_text(MAIN)
    corpus = with_lines(folder / "corpus", plugin.toolchain, sources, MAKEFILE)
    policies = [policy_named("always"), policy_named("never")]
    with LocalPool(PROBLEM, corpus, plugin) as pool:
        return compile_sides(pool, corpus.programs[0], policies, measure=measure)


def hostile(sides: Sides) -> Sides:
    """Return the same with names of functions that are markup, scripts and lines of a file."""
    symbols = sorted(
        {name for side in sides.all for m in side.modules.values() for name in m.parts}
    )
    other = {name: HOSTILE[i % len(HOSTILE)] + str(i) for i, name in enumerate(symbols)}

    def module(own: ModuleSide) -> ModuleSide:
        names = {key: other.get(name, HOSTILE[0]) for key, name in own.trajectory.names.items()}
        parts = {other[name]: score for name, score in own.parts.items()}
        places = Places(
            tuple(f"{HOSTILE[n % 5]}/{place}" for n, place in enumerate(own.places.questions)),
            {other.get(name, name): f"{HOSTILE[1]}:1" for name in own.places.functions},
        )
        log = replace(own.trajectory, names=names)
        return replace(own, trajectory=log, parts=parts, places=places)

    def side(own: Side) -> Side:
        modules = {f"{HOSTILE[1]}/{n}": module(m) for n, m in own.modules.items()}
        return replace(own, modules=modules)

    return Sides(HOSTILE[1], sides.level, side(sides.default), tuple(map(side, sides.policies)))


def text_of(sides: Sides, source: str = "") -> str:
    """Return the page, with links to ``source``."""
    return page(*page_data(PROBLEM, sides, source=source))
