"""``nestor tune``: search for the decisions that make one program smallest."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape

from nestor.build.build import Build, inside_lto
from nestor.change import change_pct, change_text
from nestor.cli.console import counted, json_text, percent, print_json, stdout
from nestor.cli.options import OutputFolder, refuse_idle
from nestor.cli.policies.builds import chosen_build, remark_on_build
from nestor.cli.remarks import remark
from nestor.cli.setup import DEFAULT_PROBLEM, program_named, ready_pool, usual_policy
from nestor.compiler.invocation import LtoKind
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.errors import NestorError
from nestor.files import claimed, write_atomically
from nestor.policy.names import NamedPolicy
from nestor.problem.in_builds import search_starts
from nestor.problem.levels import decides, instead, require_decided
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.problem.score import Report
from nestor.rollout.local_pool import PoolSettings
from nestor.tune.compiler_search import compiler_search_of
from nestor.tune.inside import InsideSettings, Spent, tune_inside
from nestor.tune.moves import moves_of
from nestor.tune.result import Tuned
from nestor.tune.search import Point, SearchSettings
from nestor.tune.session import TuneSettings, summary_for_search, tune


@dataclass(frozen=True)
class Tune:
    r"""Search for the decisions that make one program of a corpus smallest, or cost least.

    Many decisions are turned around in each compile, and what each of them did is read off the
    linked bytes of the functions that it can reach. The result is OUT/overrides.txt, a text file
    to review and to keep beside the source, and OUT/summary.txt if the policy reads a summary of
    the program: 'nestor clang POLICY --overrides FILE --summary FILE' compiles with them. It is
    never larger than stock in the modes that --mode names, and its size in the others is shown. The
    search can be stopped at any time; the same command goes on, and more --compiles go further.

    Where the score is what runs execute (--problem inlining-speed), the program needs a workload:
    docs/guide/workloads.md says how to give it one.

    Where register allocation is decided the compiler itself searches: --trials allocations of each
    function, the most expensive functions first. These overrides are for the policy 'default', and
    under them no function costs more than stock.

    Examples:
        nestor tune ninja --corpus corpus/bench --out tuned/ninja
        nestor tune ninja --corpus corpus/bench --out tuned/ninja --compiles 60
        nestor tune lua --corpus corpus/bench --out tuned/lua --policy default --mode gc no-gc
        nestor tune ninja --corpus corpus/bench --out tuned/ninja-lto --lto full
        nestor tune lz4 --corpus corpus/speed --out tuned/lz4-fast --problem inlining-speed
        nestor tune lz4 --corpus corpus/speed --out tuned/lz4-cycles --problem inlining-speed \
            --score cycles
        nestor tune lz4 --corpus corpus/tiny-O2 --out tuned/lz4 --problem regalloc-eviction
    """

    program: tyro.conf.Positional[str]
    """The program's name, or the last part of it."""
    corpus: Path
    """The corpus that holds it."""
    out: OutputFolder
    """The folder for the result and what is needed to go on."""
    problem: str = DEFAULT_PROBLEM
    """The problem whose decisions are searched."""
    policy: str | None = None
    """Where to start: a policy file or a built-in; 'default' tries cost thresholds first (default:
    the best of stock and the problem's packaged policies)."""
    mode: tuple[str, ...] = ()
    """Modes of the build whose mean size is made small, and none of which may grow (default: the
    build's usual one, gc)."""
    compiles: float = 25.0
    """Whole-program compiles to spend."""
    trials: int = 400
    """Allocations to spend on each function, where the compiler itself searches."""
    sweep: bool = True
    """From the default, try cost thresholds first."""
    build: str | None = None
    """How programs are built: link, full-lto or thin-lto (default: the problem's usual way)."""
    lto: LtoKind | None = None
    """Search inside the linker, under LTO of this kind."""
    score: str | None = None
    """What is made small where runs are judged: 'J', or 'cycles' as the model of whole programs
    predicts them (inlining-speed only; default: J)."""
    summary: bool = True
    """Give a summary of the stock program to the search, and to policies that read one."""
    seed: int = 0
    """Seed of the moves' order."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Search, write the overrides and print what they save."""
        if not 0 <= self.compiles < math.inf:
            raise NestorError("--compiles must be a number of at least 0.")
        if self.trials < 1:
            raise NestorError("--trials must be at least 1.")
        problem = find_problem(self.problem)
        if self.score is not None:
            problem = problem.scored_by(self.score)
        build = chosen_build(problem, self.build, self.lto)
        if compiler_search_of(problem) is None:
            refuse_idle(self, f"for {problem.name}", "trials")
        else:
            refuse_idle(self, f"for {problem.name}", "compiles", "mode", "summary", "sweep")
        modes = tuple(dict.fromkeys(self.mode)) or build.modes[:1]
        remark_on_build(build, () if self.policy is None else (self.policy,))
        corpus = store.load(self.corpus)
        policy = self._start(problem, build, corpus)
        program = program_named(corpus, self.program)
        with claimed(self.out):
            result, spent = self._search(problem, build, modes, policy, corpus, program)
            options = [corpus.level, *shlex.split(build.options), *_profile_use(corpus, program)]
            return self._report(result, spent, problem, options)

    def _search(
        self,
        problem: Problem,
        build: Build,
        modes: Sequence[str],
        policy: NamedPolicy,
        corpus: Corpus,
        program: Program,
    ) -> tuple[Tuned, Spent | None]:
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            if compiler_search_of(problem) is not None:
                inside = InsideSettings(self.trials)
                return tune_inside(
                    pool, build, program, policy, inside, self.seed, self.out, progress=report
                )
            summary = None
            if self.summary:
                summary = summary_for_search(pool, build, program, modes[0], report)
            result = tune(
                pool,
                build,
                program,
                policy,
                TuneSettings(tuple(modes), self.sweep, self._further(problem, build)),
                SearchSettings(compiles=self.compiles),
                self.seed,
                self.out,
                summary=summary,
                progress=report,
            )
            return result, None

    def _start(self, problem: Problem, build: Build, corpus: Corpus) -> NamedPolicy:
        """Return the policy to start from; the default where no policy decides anything."""
        if self.policy is not None:
            policy = problem.policy(self.policy)
            require_decided(problem, corpus, [policy])
            return policy
        if decides(problem, corpus):
            return problem.policy(usual_policy(problem, lto=inside_lto(build)))
        remark(
            f"policies for {problem.name} decide nothing at {corpus.level}, the corpus's level: the"
            " search starts from stock and changes single decisions"
            f"{instead(problem, corpus.level)}"
        )
        return problem.policy("default")

    def _further(self, problem: Problem, build: Build) -> tuple[str, ...]:
        """Return policies to start from, where the user has not chosen."""
        if self.policy is not None:
            return ()
        return tuple(
            name
            for name in search_starts(moves_of(problem).policies, lto=inside_lto(build))
            if self._can_read(problem, build, problem.policy(name))
        )

    def _can_read(self, problem: Problem, build: Build, policy: NamedPolicy) -> bool:
        """Tell whether a policy has the summary that it reads."""
        return build.whole or self.summary or not problem.reads_summary(policy.policy)

    def _report(
        self, result: Tuned, spent: Spent | None, problem: Problem, options: Sequence[str]
    ) -> int:
        """Write what was found, and print it."""
        path = self.out / "overrides.txt"
        write_atomically(path, result.text(problem))
        kept = self._keep(result)
        command = _command(result, options, path, kept)
        content = _as_json(result) | {
            "overrides": str(path),
            "summary": None if kept is None else str(kept),
            "command": command,
        }
        content |= {} if spent is None else {"search": spent.to_json()}
        write_atomically(self.out / "result.json", json_text(content))
        for mode in result.other_outputs:
            remark(
                f"on the input {mode} the tuned program printed or left something else than stock."
                " Unless it does so from run to run, it reads what was never written or compares"
                " addresses: do not use the overrides before you know"
            )
        if self.json:
            print_json(content)
        else:
            _show(result, path, problem.report)
            if spent is not None:
                _show_spent(spent)
            stdout.print(f"use them:  {escape(command)}", soft_wrap=True)
        return 0

    def _keep(self, result: Tuned) -> Path | None:
        """Keep the summary under which the overrides were found; no other may lie there."""
        path = self.out / "summary.txt"
        if result.summary is None:
            path.unlink(missing_ok=True)
            return None
        write_atomically(path, result.summary)
        return path


def _profile_use(corpus: Corpus, program: Program) -> list[str]:
    """Return the option that names the profile with which the program is compiled, if it is one."""
    modules = [corpus.module(name) for name in program.modules]
    found = {m.profile: corpus.profile(m) for m in modules if m.profile is not None}
    return [f"-fprofile-use={path}" for path in found.values()] if len(found) == 1 else []


def _command(result: Tuned, options: Sequence[str], overrides: Path, summary: Path | None) -> str:
    """Return the command that compiles with what was found.

    :param options: those of the user's compiler without which it is another search's result.
    """
    words = ["nestor", "clang", result.policy.name, "--overrides", str(overrides)]
    words += [] if summary is None else ["--summary", str(summary)]
    return " ".join((shlex.join([*words, "--", *options]), "…"))


def _as_json(result: Tuned) -> dict[str, Any]:
    return {
        "program": result.program,
        "policy": result.policy.name,
        "policy_digest": result.policy.digest,
        "objective": list(result.modes),
        "overrides_count": len(result.overrides),
        "sizes": {
            mode: {"stock": dict(before), "tuned": dict(result.best.columns[mode])}
            for mode, before in result.stock.columns.items()
        },
        "other_outputs": list(result.other_outputs),
        "curve": [point.to_json() for point in result.curve],
    }


def _show(result: Tuned, path: Path, report: Report) -> None:
    first = result.curve[0]
    others = list(first.others)
    stdout.print("compiles  " + " ".join(f"{name:>8}" for name in (report.score, *others)))
    for point in result.curve:
        pairs = zip(_values(first), _values(point), strict=True)
        changes = " ".join(f"{change_text(change_pct(*pair)):>8}" for pair in pairs)
        stdout.print(f"{point.compiles:8.1f}  {changes}")
    for mode, before in result.stock.columns.items():
        after = result.best.columns[mode]
        note = "" if mode in result.modes else "  (not searched for)"
        sizes = [f"{side[report.score]:>11,.{report.decimals}f}" for side in (before, after)]
        changes = "".join(
            f", {name} {percent(change_pct(before[name], after[name]))}" for name in others
        )
        change = percent(change_pct(before[report.score], after[report.score]))
        stdout.print(f"{mode:6} {' → '.join(sizes)} {report.unit} {change}{changes}{note}")
    stdout.print(
        f"{counted(len(result.overrides), 'override')} on top of the policy"
        f" {escape(result.policy.name)}: {escape(str(path))}",
        soft_wrap=True,
    )


def _show_spent(spent: Spent) -> None:
    stdout.print(
        f"{spent.better:,} of {spent.functions:,} functions are better; {spent.trials:,} trials in"
        f" {spent.cpu_seconds:,.0f} CPU-seconds, {len(spent.failures)} compiles failed"
    )
    for failure in spent.failures:
        stdout.print(escape(failure), soft_wrap=True)


def _values(point: Point) -> tuple[float, ...]:
    return (point.total, *point.others.values())
