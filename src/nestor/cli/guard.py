"""``nestor guard``: a list of modules to leave to stock, so that no program grows."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import percent, print_json, progress, stdout
from nestor.cli.setup import program_named, ready_plugin
from nestor.compiler.lto import LtoKind
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.evaluate.compare import select_programs
from nestor.evaluate.guard import Guard as Guarding
from nestor.evaluate.guard import Guarded, Objects, guard
from nestor.evaluate.lto_guard import guard_lto
from nestor.evaluate.statistics import change_pct
from nestor.policy.overrides import Key, to_text
from nestor.progress import Progress
from nestor.rollout.cache import baselines
from nestor.rollout.policy_file import PolicyFile, policy_file
from nestor.rollout.pool import Pool, PoolSettings
from nestor.rollout.program import compile_program
from nestor.rollout.summaries import reads_program, summaries


@dataclass(frozen=True)
class Guard:
    r"""Find the modules that a policy makes larger where it counts, and list them as overrides.

    With the list, no program is larger than stock in any of the link modes. Its lines say
    "module … stock"; 'nestor build', 'nestor flags' and 'nestor clang' take it as --overrides, so
    it is made once and kept beside the source. One list serves all programs that it was made
    with; modules whose source files have the same name go back to stock together.

    Examples:
        nestor guard --corpus corpus/tiny --policy mlgo2020 --out guard.txt
        nestor guard --corpus corpus/tiny --policy mlgo2020 --out lz4.txt --program lz4 --mode gc
        nestor guard --corpus corpus/bench --policy distilled --out ninja.txt --program ninja \
            --lto full --mode gc
    """

    corpus: Path
    """A corpus with programs."""
    policy: str
    """A policy file or a built-in."""
    out: Path
    """The overrides file to write."""
    program: str | None = None
    """One program, by its name or the last part of it (default: all of the split)."""
    split: Literal["train", "validation", "test", "all"] | None = None
    """Which projects (default: held-out ones)."""
    mode: tuple[LinkMode, ...] = ("gc", "no-gc", "icf")
    """The link modes in which no program may grow."""
    lto: LtoKind | None = None
    """Compare with stock LTO of this kind; under full LTO a program goes back as a whole."""
    summary: bool = False
    """Tell a policy that reads it what the rest of the program does."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Guard, write the list and print; nothing is written if a program cannot be built."""
        policy = policy_file(self.policy)
        modes = tuple(dict.fromkeys(self.mode))
        if not modes:
            raise NestorError("Nothing to guard: name a link mode.")
        if self.lto is not None and self.summary:
            raise NestorError("LTO sees the whole program: leave --summary out.")
        corpus = store.load(self.corpus)
        if self.program is None:
            programs = select_programs(corpus, self.split)
        else:
            programs = (program_named(corpus, self.program),)
        with progress() as report, tempfile.TemporaryDirectory(prefix="nestor-guard-") as text:
            plugin = ready_plugin(self.llvm, report)
            with Pool(corpus, plugin, self.pool) as pool:
                if self.lto is not None:
                    result = guard_lto(pool, programs, policy, self.lto, modes, report)
                else:
                    builds = self._builds(pool, programs, policy, modes, Path(text), report)
                    result = guard(pool, builds, modes, report)
        self.out.parent.mkdir(parents=True, exist_ok=True)
        partial = self.out.with_name(self.out.name + ".partial")
        partial.write_text(_list(result, policy, modes))
        partial.replace(self.out)
        if self.json:
            print_json(
                {
                    "policy": policy.name,
                    "out": str(self.out),
                    "lines": len(result.keys),
                    "programs": [p.to_json() for p in result.programs],
                }
            )
        else:
            show(result, policy, modes)
            stdout.print(f"{escape(str(self.out))}: {len(result.keys)} lines", soft_wrap=True)
        return 0

    def _builds(
        self,
        pool: Pool,
        programs: Sequence[Program],
        policy: PolicyFile,
        modes: Sequence[LinkMode],
        folder: Path,
        report: Progress,
    ) -> list[Objects]:
        """Compile both ways what is in no cache."""
        names = dict.fromkeys(name for program in programs for name in program.modules)
        modules = tuple(pool.corpus.module(name) for name in names)
        stock = baselines(pool, modules, None, report, "Compiling stock")
        _require(names, stock, "the stock compiler")
        if not (self.summary and reads_program(policy.policy)):
            stage = f"Compiling {policy.name}"
            same = baselines(pool, modules, policy.argument, report, stage)
            _require(names, same, policy.name)
            return [Objects(program, stock, dict.fromkeys(modes, same)) for program in programs]
        told = summaries(pool, programs, modes, folder / "summaries", report)
        return [
            Objects(
                program,
                stock,
                {
                    mode: compile_program(
                        pool,
                        program,
                        policy,
                        folder / f"{number}.{mode}",
                        summary=told[program.name, mode],
                        progress=report,
                    )
                    for mode in modes
                },
            )
            for number, program in enumerate(programs)
        ]


def show(result: Guarding, policy: PolicyFile, modes: Sequence[LinkMode]) -> None:
    """Print each program's bytes in each mode, the worst growth under the bare policy first."""
    table = Table(title=f"{escape(policy.name)} guarded, loadable bytes")
    for name in ("program", "mode", "stock", "policy", "guarded", "back to stock"):
        left = name in ("program", "mode")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    for program in sorted(result.programs, key=_worst_first):
        for mode in modes:
            first, stock = mode == modes[0], program.stock[mode]
            table.add_row(
                escape(program.program.rpartition("/")[2]) if first else "",
                mode,
                f"{stock:,}",
                percent(change_pct(stock, program.policy[mode])),
                percent(change_pct(stock, program.guarded[mode])),
                f"{len(program.back)} of {program.modules}" if first else "",
                end_section=mode == modes[-1],
            )
    stdout.print(table)


def _worst_first(program: Guarded) -> tuple[float, str]:
    growth = max(change_pct(before, program.policy[m]) for m, before in program.stock.items())
    return -growth, program.program


def _require(names: Iterable[str], objects: Mapping[str, Path], compiler: str) -> None:
    for name in names:
        if name not in objects:
            raise NestorError(
                f"{name} cannot be compiled by {compiler}; 'nestor evaluate' says why."
            )


def _list(result: Guarding, policy: PolicyFile, modes: Sequence[LinkMode]) -> str:
    """Return the overrides file."""
    title = (
        f"Modules that the stock compiler keeps, so that no program is larger than stock.\n"
        f"policy {policy.name} {policy.digest}\nlink modes {', '.join(modes)}\n"
        f"programs {', '.join(p.program for p in result.programs)}"
    )
    keys = {Key("module", key): key for key in result.keys}
    comments = {line: ", ".join(result.names[key]) for line, key in keys.items()}
    return to_text(dict.fromkeys(keys, False), comments, title)
