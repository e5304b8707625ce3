"""Builds of one program that differ in how its modules were compiled.

Nothing but the command line differs: levels, thresholds of inlining, loops that are not unrolled or
vectorized, and another register allocator. Every build runs the same input.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nestor.build.linking import link
from nestor.compiler.invocation import compile_command
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, Program
from nestor.temporary import temporary_folder

BASE: Final = "O2"
BUILDS: Final[Mapping[str, tuple[str, ...]]] = {
    BASE: (),
    "O1": ("-O1",),
    "O3": ("-O3",),
    "Os": ("-Os",),
    "inline0": ("-mllvm", "-inline-threshold=0"),
    "inline1000": ("-mllvm", "-inline-threshold=1000"),
    "scalar": ("-vectorize-loops", "-vectorize-slp"),  # these two are taken off
    "rolled": ("-fno-unroll-loops",),
    "basic": ("-mllvm", "-regalloc=basic"),
}
"""By name, what is added to the options of each module."""
PROGRAMS: Final = (
    "mujs/mujs",
    "lua/lua",
    "lzip/lzip",
    "mawk/mawk",
    "mksh/mksh",
    "voro++/voro++",
)
"""Programs of few modules that are fitted."""
_LIMITS: Final = Limits(1200.0)
"""Of the compile of a module."""


def build(
    toolchain: Toolchain, corpus: Corpus, program: Program, name: str, out: Path
) -> str | None:
    """Build ``program`` as ``name`` says into ``out``; return why it cannot be done."""
    with temporary_folder("builds") as text:
        objects = {}
        for number, module in enumerate(corpus.module(one) for one in program.modules):
            own = Path(text) / f"{number}.o"
            options = _options(module.options, name)
            done = run(compile_command(toolchain, options, corpus.bitcode(module), own), _LIMITS)
            if not done.ok:
                return f"{module.name}: {done.reason}"
            objects[module.name] = own
        return link(toolchain, corpus, program, objects, out=out).failure


def _options(recorded: Sequence[str], name: str) -> list[str]:
    added = BUILDS[name]
    if name == "scalar":
        return [option for option in recorded if option not in added]
    if len(added) == 1 and added[0].startswith("-O"):
        return [added[0] if option == "-O2" else option for option in recorded]
    return [*recorded, *added]
