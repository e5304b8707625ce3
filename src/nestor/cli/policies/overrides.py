"""``nestor overrides check``: lines of a file of overrides that match nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.markup import escape

from nestor.build.build import BuildError, Job, inside_lto, summary_for
from nestor.cli.console import print_json, stdout
from nestor.cli.options import refuse_idle
from nestor.cli.policies.builds import chosen_build, overrides_text
from nestor.cli.setup import (
    DEFAULT_PROBLEM,
    corpus_for,
    program_named,
    ready_pool,
    usual_policy,
)
from nestor.compiler.invocation import LtoKind
from nestor.compiler.toolchain import find
from nestor.errors import NestorError
from nestor.evaluate.unmatched import Unmatched, unmatched
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.problem.trajectory import Trajectory
from nestor.rollout.local_pool import PoolSettings


@dataclass(frozen=True)
class Check:
    """Find the lines of a file of overrides that match nothing in a program.

    A site's key changes when its function or the called one is renamed, and its line is then
    ignored. A file serves a whole program, so only all its modules together show which lines match
    nothing: a program of a corpus is compiled under the overrides, or the logs are read that your
    own build wrote into a folder. Where the file says what a line was about, as 'nestor tune'
    writes it, sites of a similar name are proposed. The exit status is 1 if a line matches
    nothing.

    Examples:
        nestor overrides check tuned/ninja/overrides.txt --corpus corpus/bench --program ninja
        nestor overrides check fixes --corpus corpus/mine --program app --policy default
        make CFLAGS="-Oz $(nestor flags shipped --overrides fixes) -Xclang -mllvm -Xclang \
-nestor-log=$PWD/logs/"
        nestor overrides check fixes --logs logs
    """

    file: tyro.conf.Positional[Path]
    """The overrides."""
    corpus: Path | None = None
    """The corpus that holds --program."""
    program: str | None = None
    """The program to compile: its name, or the last part of it."""
    logs: tuple[Path, ...] = ()
    """Logs of one build under the overrides, or folders of them, in place of a program."""
    policy: str | None = None
    """The policy under which the overrides are used, since other answers lead to other questions
    (default: the problem's packaged one called 'shipped', or 'default' if there is none)."""
    summary: bool = True
    """Give a summary of the stock program to policies that read one."""
    build: str | None = None
    """How programs are built: link, full-lto or thin-lto (default: the problem's usual way)."""
    lto: LtoKind | None = None
    """Decide inside the linker, under LTO of this kind."""
    problem: str = DEFAULT_PROBLEM
    """The problem whose answers they are."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print the lines that match nothing; 0 if there are none."""
        problem = find_problem(self.problem)
        text = overrides_text(problem, self.file) or ""
        if bool(self.logs) == (self.corpus is not None and self.program is not None):
            raise NestorError("Name a program, --corpus DIR --program NAME, or --logs of a build.")
        if self.logs:
            refuse_idle(self, "with --logs", "corpus", "program", "policy", "build", "lto")
        trajectories = _read(problem, self.logs) if self.logs else self._compiled(problem, text)
        found = unmatched(problem.overrides(), text, trajectories, find(self.llvm))
        lines = len(problem.overrides().parse(text))
        if self.json:
            print_json({"lines": lines, "unmatched": [_as_json(line) for line in found]})
        else:
            _show(self.file, lines, found)
        return 1 if found else 0

    def _compiled(self, problem: Problem, text: str) -> list[Trajectory]:
        assert self.corpus is not None and self.program is not None
        build = chosen_build(problem, self.build, self.lto)
        policy = problem.policy(self.policy or usual_policy(problem, lto=inside_lto(build)))
        corpus = corpus_for(problem, self.corpus, [policy])
        program = program_named(corpus, self.program)
        mode = build.modes[0]
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            summary = None
            if self.summary:
                summary = summary_for(pool, build, program, policy, mode, report)
            job = Job(program, mode, policy, overrides=text, summary=summary, log=True, names=True)
            (built,) = build.run(pool, [job], report)
        failures = [f"{done.unit}: {done.failure}" for done in built.compiles if done.failure]
        if failures or built.failure:
            raise BuildError(f"{(failures or [f'{program.name}: {built.failure}'])[0]}.")
        return [log for _, log in built.trajectories]


def _read(problem: Problem, paths: Sequence[Path]) -> list[Trajectory]:
    files: list[Path] = []
    for path in paths:
        files += sorted(path.iterdir()) if path.is_dir() else [path]
    missing = [path for path in files if not path.is_file()]
    if missing or not files:
        what = missing[0] if missing else paths[0]
        raise NestorError(f"There is no log {what}; compile with -mllvm -nestor-log=FOLDER/.")
    return [problem.read_log(path) for path in files]


def _show(file: Path, lines: int, found: Sequence[Unmatched]) -> None:
    stdout.print(
        f"{escape(str(file))}: {len(found):,} of {lines:,} lines match nothing", soft_wrap=True
    )
    for line in found:
        comment = f"  # {escape(line.comment)}" if line.comment else ""
        stdout.print(f"  {line.key}{comment}", soft_wrap=True)
        for key, words in line.similar.items():
            stdout.print(f"    similar: {key}  # {escape(words)}", soft_wrap=True)


def _as_json(line: Unmatched) -> dict[str, object]:
    similar = [{"key": str(key), "comment": words} for key, words in line.similar.items()]
    return {"key": str(line.key), "comment": line.comment, "similar": similar}
