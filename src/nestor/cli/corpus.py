"""``nestor corpus``: fetch, capture, look at, check, import and export modules and programs."""

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import progress
from nestor.cli.setup import ready_plugin
from nestor.compiler import toolchain
from nestor.corpus import build, exchange, merge, store
from nestor.corpus.fetch import Fetched, fetch
from nestor.corpus.journal import FOLDER, Journal
from nestor.corpus.model import Corpus
from nestor.corpus.tiers import TIERS, Tier
from nestor.errors import NestorError
from nestor.evaluate.overlap import Compiled, overlap
from nestor.evaluate.overlap import Overlap as OverlapResult
from nestor.evaluate.sweep import Sweep as SweepResult
from nestor.evaluate.sweep import sweep
from nestor.rollout.cache import baselines
from nestor.rollout.pool import Pool, PoolSettings


@dataclass(frozen=True)
class Fetch:
    """Fetch a ready-made tier of open-source projects and build it into a corpus.

    The sources are Debian's, pinned by version and sha256 and downloaded by apt from the mirrors
    that this machine already uses. A project that is there already is not fetched again.

    Examples:
        nestor corpus fetch tiny corpus/tiny        six projects, 44 modules, under a minute
        nestor corpus fetch demo corpus/demo        the same and ninja, a held-out C++ program
        nestor corpus fetch bench corpus/bench      the projects that results are reported on
        nestor corpus fetch fresh corpus/fresh      projects for one look at the end
    """

    tier: tyro.conf.Positional[Tier]
    """Which set of projects."""
    directory: tyro.conf.Positional[Path]
    """The corpus to make or to complete."""
    jobs: int = 2
    """Projects built at the same time."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang (default: found on this machine)."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Fetch; 1 if not one project of the tier came."""
        found = toolchain.find(self.llvm)
        with progress() as report:
            result = fetch(TIERS[self.tier], self.directory, found, self.jobs, report)
        if self.json:
            _print_json(_fetched_as_json(result))
        else:
            _show(result.corpus, present=result.present)
        return 0 if result.fresh or result.present else 1


@dataclass(frozen=True)
class Capture:
    """Make a corpus from your own project: run its build, or read its compile_commands.json.

    The build runs as always, with clang 22 as its compiler; objects and programs come out
    unchanged. Only with a build, not with compile_commands.json, are programs recorded. Without
    either, what 'nestor cc' and 'nestor c++' have left in the corpus is merged.

    Examples:
        nestor corpus capture --out corpus/mine -- make -j2
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
        status = 0
        with progress() as report:
            if self.compile_commands is not None:
                build.replay_database(
                    self.compile_commands, out, self.project, found, self.jobs, report
                )
        if self.command:
            name = self.project or Path.cwd().name
            talk = sys.stderr if self.json else None  # Only JSON may stand on standard output.
            status = build.run_for_user(self.command, out, name, found, talk)
        with progress() as report:
            corpus = merge.finalise(
                out, Journal(out / FOLDER), toolchain=found.version, progress=report
            )
        if self.json:
            _print_json(_as_json(corpus))
        else:
            _show(corpus)
        return status or (0 if corpus.modules else 1)


@dataclass(frozen=True)
class Info:
    """Show what is in a corpus: projects, splits, modules, programs, and what is missing.

    Examples:
        nestor corpus info corpus/tiny
        nestor corpus info corpus/tiny --verify --json
    """

    directory: tyro.conf.Positional[Path]
    """The corpus."""
    verify: bool = False
    """Read every file and compare its sha256 with the manifest."""
    json: bool = False
    """Print as JSON."""

    def run(self) -> int:
        """Print; errors are raised."""
        corpus = store.load(self.directory)
        if self.verify:
            with progress() as report:
                store.verify(corpus, report)
        if self.json:
            _print_json(_as_json(corpus))
        else:
            _show(corpus)
        return 0


@dataclass(frozen=True)
class Import:
    """Copy a corpus in LLVM's layout (X.bc, X.cmd, corpus_description.json) to one of ours.

    Options that are not on the list of safe ones are left out and counted.

    Examples:
        nestor corpus import extracted/ corpus/theirs
    """

    source: tyro.conf.Positional[Path]
    """The corpus to copy."""
    directory: tyro.conf.Positional[Path]
    """The new corpus."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Copy; errors are raised."""
        with progress() as report:
            corpus = exchange.import_(self.source, self.directory, report)
        if self.json:
            _print_json(_as_json(corpus))
        else:
            _show(corpus)
        return 0


@dataclass(frozen=True)
class Export:
    """Copy a corpus to LLVM's layout, for LLVM's own MLGO tools.

    Examples:
        nestor corpus export corpus/tiny for-llvm/
    """

    directory: tyro.conf.Positional[Path]
    """The corpus."""
    out: tyro.conf.Positional[Path]
    """The new folder."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Copy; errors are raised."""
        corpus = store.load(self.directory)
        with progress() as report:
            exchange.export(corpus, self.out, report)
        if self.json:
            _print_json({"modules": len(corpus.modules), "out": str(self.out)})
            return 0
        Console().print(f"{len(corpus.modules)} modules written to {self.out}", highlight=False)
        return 0


@dataclass(frozen=True)
class Sweep:
    """Compile every module of a corpus once with the stock compiler, and show what it costs.

    Nothing is kept, and nothing is taken from the cache.

    Examples:
        nestor corpus sweep corpus/bench
        nestor corpus sweep corpus/bench --jobs 1 --json
    """

    directory: tyro.conf.Positional[Path]
    """The corpus."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print as JSON."""

    def run(self) -> int:
        """Compile and print; 1 if a module failed."""
        corpus = store.load(self.directory)
        with progress() as report:
            plugin = ready_plugin(self.llvm, report)
            with Pool(corpus, plugin, self.pool) as pool:
                result = sweep(pool, corpus.modules, report)
        if self.json:
            _print_json(result.to_json())
        else:
            _show_sweep(result)
        return 1 if result.failures else 0


@dataclass(frozen=True)
class Overlap:
    """Check that held-out projects share no code with training, by the hash of each function.

    Functions of 64 bytes and more are compared as the stock compiler makes them, relocations
    masked; templates of the standard library do not count. A project of the split validation or
    test may have 1 % of its code in common with training. Several corpora are compared as if they
    were one.

    Examples:
        nestor corpus overlap corpus/bench
        nestor corpus overlap corpus/bench corpus/fresh
    """

    directory: tyro.conf.Positional[tuple[Path, ...]]
    """The corpus, or several."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print as JSON."""

    def run(self) -> int:
        """Compare and print; 1 if a held-out project shares too much."""
        corpora = [store.load(directory) for directory in self.directory]
        if not corpora:
            raise NestorError("Nothing to compare: name a corpus.")
        with progress() as report:
            plugin = ready_plugin(self.llvm, report)
            compiled = []
            for corpus in corpora:
                with Pool(corpus, plugin, self.pool) as pool:
                    objects = baselines(pool, corpus.modules, None, report)
                compiled.append(Compiled(corpus, objects))
            result = overlap(compiled, report)
        if self.json:
            _print_json(result.to_json())
        else:
            _show_overlap(result)
        return 0 if result.ok else 1


def _show_sweep(result: SweepResult) -> None:
    """Print a sweep."""
    console = Console()
    for name, reason in result.failures:
        console.print(f"[red]failed[/red] {escape(name)}: {escape(reason)}", highlight=False)
    slowest = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in result.slowest)
    console.print(
        f"{result.modules} modules, {len(result.failures)} failures, {result.jobs} jobs: "
        f"{result.cpu_seconds:.1f} CPU seconds, {result.wall_seconds:.1f} seconds, "
        f"{result.modules_per_second:.1f} modules a second, peak {result.peak_mib:.0f} MiB\n"
        f"slowest: {escape(slowest)}",
        highlight=False,
    )


def _show_overlap(result: OverlapResult) -> None:
    """Print the held-out projects, then the pairs that share code."""
    console = Console()
    table = Table("project", "split", box=SIMPLE)
    for column in ("functions", "bytes", "in training", "share"):
        table.add_column(column, justify="right")
    for project in result.projects:
        table.add_row(
            project.project,
            project.split,
            str(project.functions),
            f"{project.bytes:,}",
            f"{project.shared_bytes:,}",
            f"{project.shared_pct:.2f} %",
        )
    console.print(table)
    for pair in result.pairs:
        console.print(
            f"{pair.project} ({pair.split}) and {pair.other} ({pair.other_split}): "
            f"{pair.bytes:,} bytes in {pair.functions} functions, as {escape(pair.examples[0])}",
            highlight=False,
        )
    for name in result.unread:
        console.print(f"[red]no object[/red] {escape(name)}", highlight=False)
    verdict = "no held-out project shares" if result.ok else "[red]a held-out project shares[/red]"
    console.print(f"{verdict} more than 1 % of its code with training", highlight=False)


def _show(corpus: Corpus, present: tuple[str, ...] = ()) -> None:
    """Print what is missing, then one row a project."""
    console = Console()
    for lost in corpus.missing:
        console.print(f"[red]missing[/red] {lost.project}: {escape(lost.reason)}", highlight=False)
    table = Table("project", "version", "split", box=SIMPLE)
    table.add_column("style", overflow="fold")
    table.add_column("modules", justify="right")
    table.add_column("programs", overflow="fold")
    table.add_column("licence", overflow="fold")
    modules = Counter(module.project for module in corpus.modules)
    for project in corpus.projects:
        programs = [p.name.partition("/")[2] for p in corpus.programs_of_project(project.name)]
        table.add_row(
            project.name,
            project.version,
            project.split,
            project.style,
            str(modules[project.name]),
            ", ".join(programs),
            project.licence,
        )
    console.print(table)
    console.print(
        f"{len(corpus.modules)} modules, {len(corpus.programs)} programs, "
        f"{corpus.dropped_options} options left out, corpus {corpus.digest[:12]}, "
        f"clang {corpus.toolchain or 'unknown'}"
        + (f"; {len(present)} projects were complete already" if present else ""),
        highlight=False,
    )


def _as_json(corpus: Corpus) -> dict[str, object]:
    modules = Counter(module.project for module in corpus.modules)
    return {
        "root": str(corpus.root),
        "digest": corpus.digest,
        "toolchain": corpus.toolchain,
        "modules": len(corpus.modules),
        "bytes": sum(corpus.bitcode(m).stat().st_size for m in corpus.modules),
        "dropped_options": corpus.dropped_options,
        "projects": [
            {
                "name": p.name,
                "version": p.version,
                "split": p.split,
                "style": p.style,
                "licence": p.licence,
                "modules": modules[p.name],
                "programs": [program.name for program in corpus.programs_of_project(p.name)],
                "dropped_options": p.dropped_options,
            }
            for p in corpus.projects
        ],
        "missing": [{"project": m.project, "reason": m.reason} for m in corpus.missing],
    }


def _fetched_as_json(result: Fetched) -> dict[str, object]:
    return _as_json(result.corpus) | {
        "fetched": list(result.fresh),
        "already_present": list(result.present),
    }


def _print_json(value: dict[str, object]) -> None:
    print(json.dumps(value, indent=1))
