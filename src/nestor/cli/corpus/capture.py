"""``nestor corpus capture``: make a corpus from one's own build."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import progress, stderr
from nestor.cli.corpus.show import show
from nestor.compiler import toolchain
from nestor.corpus import store
from nestor.corpus.capture import build, merge
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import JOURNAL, MANIFEST
from nestor.corpus.level import DEFAULT_LEVEL, Level
from nestor.corpus.model import require_level

_NOT_CALLED = (
    "nestor: the build called no compiler through Nestor. Either all was up to date: build again "
    "from clean. Or it keeps the compiler that it was configured with, as CMake does: "
    "configure and build a new folder after --, or capture the folder as it is with "
    "--compile-commands BUILD_FOLDER."
)


@dataclass(frozen=True)
class Capture:
    """Make a corpus from your own project: run its build, or read its compile_commands.json.

    The build runs as always, with clang 22 as its compiler; objects and programs come out
    unchanged. CMake, Meson and configure keep the compiler that they found, so configure after --
    too, in a new folder; or let the build run without Nestor, with any compiler, and name its
    folder with --compile-commands: nothing is built then. Without either, what 'nestor cc' and
    'nestor c++' have left in the corpus is merged (NESTOR_LEVEL is the level at which they record).

    Examples:
        nestor corpus capture --out corpus/mine -- make -j2
        nestor corpus capture --out corpus/mine-o2 --level -O2 -- make
        nestor corpus capture --out corpus/mine -- sh -c 'cmake -B new && cmake --build new'
        nestor corpus capture --out corpus/mine --compile-commands build
        NESTOR_CORPUS=corpus/mine make CC='nestor cc' && nestor corpus capture --out corpus/mine
    """

    command: tyro.conf.Positional[tuple[str, ...]] = ()
    """The build to run, after --."""
    out: Path = Path("corpus")
    """The corpus to make or to add to."""
    compile_commands: Path | None = None
    """Capture this compile_commands.json, or this folder of a build by Ninja or CMake, instead of
    running a build. Of programs those that are built already are captured; a database without
    the files of Ninja or CMake beside it has modules only."""
    project: str | None = None
    """The project's name (default: that of the source folder)."""
    level: Level = DEFAULT_LEVEL
    """The optimisation level of the modules, as the problem wants it: -Oz for inlining for size."""
    jobs: int = 2
    """Compilations at the same time (only with --compile-commands)."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang (default: found on this machine)."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Capture and merge; the build's own exit status if it failed."""
        found = toolchain.find(self.llvm)
        out = self.out.absolute()
        if (self.command or self.compile_commands is not None) and (out / MANIFEST).exists():
            require_level(store.load(out), self.level)
        status = 0
        journal = Journal(out / JOURNAL)
        if self.compile_commands is not None:
            with progress() as report:
                replayed = build.replay_database(
                    self.compile_commands, out, self.project, found, self.level, self.jobs, report
                )
            if replayed.unbuilt or not replayed.links:
                stderr.print(_without_programs(replayed), soft_wrap=True)
        if self.command:
            stdout = sys.stderr if self.json else None  # Only JSON may stand on standard output.
            status = build.run_for_user(self.command, out, self.project, found, self.level, stdout)
        with progress() as report:
            corpus = merge.finalise(out, journal, toolchain=found.version, progress=report)
        show(corpus, self.json)
        if self.command and status == 0 and not journal.was_called():
            stderr.print(_NOT_CALLED, soft_wrap=True)
        return status or (0 if corpus.modules else 1)


def _without_programs(replayed: build.Replayed) -> str:
    if not replayed.links:
        return (
            "nestor: no links are on record beside the compile commands, so only modules were "
            "captured: programs need a build by Ninja or by CMake's makefiles."
        )
    return (
        f"nestor: {replayed.unbuilt} of {replayed.links} programs are not built, so only their "
        "modules were captured: build them and give the same command again."
    )
