"""``nestor corpus capture``: make a corpus from one's own build."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import progress
from nestor.cli.corpus.show import show
from nestor.compiler import toolchain
from nestor.corpus import store
from nestor.corpus.capture import build, merge
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import JOURNAL, MANIFEST
from nestor.corpus.level import DEFAULT_LEVEL, Level
from nestor.corpus.model import require_level


@dataclass(frozen=True)
class Capture:
    """Make a corpus from your own project: run its build, or read its compile_commands.json.

    The build runs as always, with clang 22 as its compiler; objects and programs come out
    unchanged. Only with a build, not with compile_commands.json, are programs recorded. Without
    either, what 'nestor cc' and 'nestor c++' have left in the corpus is merged (NESTOR_LEVEL is
    the level at which they record).

    Examples:
        nestor corpus capture --out corpus/mine -- make -j2
        nestor corpus capture --out corpus/mine-o2 --level -O2 -- make
        nestor corpus capture --out corpus/mine --compile-commands build/compile_commands.json
        NESTOR_CORPUS=corpus/mine make CC='nestor cc' && nestor corpus capture --out corpus/mine
    """

    command: tyro.conf.Positional[tuple[str, ...]] = ()
    """The build to run, after --."""
    out: Path = Path("corpus")
    """The corpus to make or to add to."""
    compile_commands: Path | None = None
    """A compilation database to capture instead of running a build."""
    project: str | None = None
    """The project's name (default: the folder's)."""
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
        with progress() as report:
            if self.compile_commands is not None:
                build.replay_database(
                    self.compile_commands, out, self.project, found, self.level, self.jobs, report
                )
        if self.command:
            name = self.project or Path.cwd().name
            stdout = sys.stderr if self.json else None  # Only JSON may stand on standard output.
            status = build.run_for_user(self.command, out, name, found, self.level, stdout)
        with progress() as report:
            corpus = merge.finalise(
                out, Journal(out / JOURNAL), toolchain=found.version, progress=report
            )
        show(corpus, self.json)
        return status or (0 if corpus.modules else 1)
