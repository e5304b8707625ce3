"""``nestor corpus capture``: make a corpus from one's own build."""

import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tyro

from nestor.cli.console import progress
from nestor.cli.corpus.show import show
from nestor.cli.options import OutputFolder, refuse_idle
from nestor.cli.remarks import remark
from nestor.compiler import toolchain
from nestor.corpus import store
from nestor.corpus.capture import build, merge
from nestor.corpus.capture.drafts import last_compiles, left_out, of_the_build
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import JOURNAL, MANIFEST
from nestor.corpus.level import DEFAULT_LEVEL, LEVELS, Level
from nestor.corpus.model import Program, require_level
from nestor.corpus.release import require_readable
from nestor.corpus.runs_file import add_runs, read_runs_file
from nestor.errors import NestorError

_NOT_CALLED = (
    "The build called no compiler through Nestor. Either all was up to date: build again "
    "from clean. Or it keeps the compiler that it was configured with, as CMake does: "
    "configure and build a new folder after --, or capture the folder as it is with "
    "--compile-commands BUILD_FOLDER."
)

_SHOWN: Final = 6
"""Options that are named when they were left out, each with so many characters:"""
_LONG: Final = 40


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
        nestor corpus capture --out corpus/mine --runs runs.toml
        NESTOR_CORPUS=$PWD/corpus make CC='nestor cc' && nestor corpus capture --out corpus
    """

    command: tyro.conf.Positional[tuple[str, ...]] = ()
    """The build to run, after --."""
    out: OutputFolder = Path("corpus")
    """The corpus to make or to add to."""
    compile_commands: Path | None = None
    """Capture this compile_commands.json, or the folder of a build by Ninja or CMake, as it is.
    Programs are captured if they are built; without the files of Ninja or CMake there are none."""
    project: str | None = None
    """The project's name; without one, that of the source folder."""
    level: Level = DEFAULT_LEVEL
    """The optimisation level of the modules, as the problem wants it: -Oz for inlining for size."""
    lines: bool = False
    """Keep the numbers of source lines, for 'nestor report' and 'nestor explain'. Decisions and
    code stay the same; modules become larger."""
    runs: Path | None = None
    """A TOML file with runs of programs: smoke tests (docs/guide/corpus.md) and workloads, for
    problems of speed (docs/guide/workloads.md). Nothing runs now: they execute the programs, so
    only 'nestor evaluate --smoke' does it, and what takes a workload."""
    jobs: int = 2
    """Compilations at the same time (only with --compile-commands)."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang; without it, one is looked for."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Capture and merge; the build's own exit status if it failed."""
        out = self.out.absolute()
        found = toolchain.find(self.llvm)
        existed = out.exists()
        journal = Journal(out / JOURNAL)
        captures = bool(self.command) or self.compile_commands is not None
        if self.compile_commands is None:
            refuse_idle(self, "without --compile-commands", "jobs")
        if not captures:
            refuse_idle(self, "where nothing is captured", "level", "lines", "project")
        if captures and (out / MANIFEST).exists():
            earlier = store.load(out)
            require_level(earlier, self.level)
            require_readable(earlier, found)
        if not captures and not journal.root.exists() and not (out / MANIFEST).exists():
            raise NestorError(
                f"There is nothing to capture, and {self.out} is no corpus: write the build after "
                "--, as in 'nestor corpus capture --out corpus/mine -- make'."
            )
        runs = read_runs_file(self.runs) if self.runs is not None else None
        status = 0
        if self.compile_commands is not None:
            with progress() as report:
                replayed = build.replay_database(
                    self.compile_commands,
                    out,
                    self.project,
                    found,
                    self.level,
                    self.jobs,
                    report,
                    lines=self.lines,
                )
            if replayed.unbuilt or not replayed.links:
                remark(_without_programs(replayed))
        if self.command:
            stdout = sys.stderr if self.json else None  # Only JSON may stand on standard output.
            status = build.run_for_user(
                self.command, out, self.project, found, self.level, stdout, lines=self.lines
            )
            if status != 0:
                remark(f"the build ended with the exit status {status}")
            if not journal.was_called():
                if not existed:
                    shutil.rmtree(out)  # nothing is in it but the wrappers
                if status != 0:
                    return status
                raise NestorError(_NOT_CALLED)
        with progress() as report:
            corpus = merge.finalise(out, journal, toolchain=found.version, progress=report)
        if runs is not None:
            corpus = add_runs(corpus, runs)
        show(corpus, self.json)
        if captures:
            compiles = last_compiles(journal)
            if options := left_out(compiles):
                remark(_without_options(options))
            if text := _at_other_levels(of_the_build(compiles, "level"), corpus.level):
                remark(text)
            if text := _for_lto(of_the_build(compiles, "lto")):
                remark(text)
            for program in corpus.programs:
                _remark_objects_without_module(program)
        return status or (0 if corpus.modules else 1)


def _remark_objects_without_module(program: Program) -> None:
    foreign = sum(item.kind == "foreign" for item in program.inputs)
    if foreign:
        modules = sum(item.kind == "module" for item in program.inputs)
        remark(
            f"{program.name}: {foreign} of {foreign + modules} objects have no module and stay as "
            "they are: assembly, or compiled before the capture (build again from clean)."
        )


def _without_options(options: Counter[str]) -> str:
    names = [
        option if len(option) <= _LONG else f"{option[:_LONG]}…"
        for option, _ in options.most_common(_SHOWN)
    ]
    more = len(options) - len(names)
    return (
        f"modules of a corpus are compiled without these options of the build: {', '.join(names)}"
        + (f" and {more} more" if more else "")
        + "; so their code may be other than the build's."
    )


def _at_other_levels(levels: Counter[str], level: Level) -> str | None:
    """Return what to say if the build compiled at other levels than the corpus has."""
    others = [(name, number) for name, number in levels.most_common() if name != level]
    if not others:
        return None
    named = ", ".join(f"{number} at {name}" for name, number in others)
    most = others[0][0]
    remedy = (
        f" For the build's own, name a new folder and '--level {most}'." if most in LEVELS else ""
    )
    return (
        f"of {levels.total()} objects the build compiled {named}; the corpus has their modules at"
        f" {level}, where a compiler decides otherwise.{remedy}"
    )


def _for_lto(kinds: Counter[str]) -> str | None:
    """Return what to say if the build compiled for LTO."""
    if not (kinds.total() - kinds[""]):
        return None
    kind = max((kind for kind in kinds if kind), key=lambda one: kinds[one])
    return (
        f"of {kinds.total()} objects the build compiled {kinds[kind]} for {kind} LTO; commands on"
        f" this corpus build without LTO unless they are given '--lto {kind}'."
    )


def _without_programs(replayed: build.Replayed) -> str:
    if not replayed.links:
        return (
            "no links are on record beside the compile commands, so only modules were "
            "captured: programs need a build by Ninja or by CMake's makefiles."
        )
    return (
        f"{replayed.unbuilt} of {replayed.links} programs are not built, so only their "
        "modules were captured: build them and give the same command again."
    )
