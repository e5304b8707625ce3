"""``nestor identity``: the identity gate on every module of a corpus."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro
from rich.markup import escape

from nestor.cli.console import counted, print_json, progress, stdout
from nestor.cli.policies.builds import chosen_build
from nestor.cli.policies.failures import show_failures
from nestor.cli.setup import DEFAULT_PROBLEM
from nestor.compiler.invocation import LtoKind
from nestor.compiler.plugin import ensure_plugin
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.evaluate.compare import select_programs
from nestor.evaluate.identity import CorpusIdentity, check_programs, check_units, select_modules
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool, PoolSettings

_SHOWN = 20


@dataclass(frozen=True)
class Identity:
    """Compile every module of a corpus in all ways that must agree, and compare the objects.

    Which ways there are is the problem's. Without a policy, they are for example: stock, the plugin
    idle, following the default heuristic, and with the log, and LLVM's interactive channel
    answered with the default. With a policy: the plugin evaluating it in C++, the same with the
    log, and the channel answered by the same policy in Python. Objects must be equal bit for bit,
    and the compiler must have asked equally often. The exit status is 0 if all comparisons were
    made and held.

    Examples:
        nestor identity corpus/tiny
        nestor identity corpus/tiny --policy runs/es/policy.safetensors --split test --json
        nestor identity corpus/tiny --lto full thin
        nestor identity corpus/tiny --build link
    """

    corpus: tyro.conf.Positional[Path]
    """A corpus."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policy decides."""
    policy: str = "default"
    """A policy file or a built-in."""
    split: Literal["train", "validation", "test", "all"] = "all"
    """Which projects to compile."""
    lto: tuple[LtoKind, ...] = ()
    """Link their programs by LTO of these kinds instead, the plugin inside the linker."""
    build: tuple[str, ...] = ()
    """Build their programs in these ways instead: stock, through the plugin and with the log."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Compare and print; 0 if everything is identical."""
        problem = find_problem(self.problem)
        policy = problem.policy(self.policy)
        builds = [chosen_build(problem, None, kind) for kind in dict.fromkeys(self.lto)]
        builds += [chosen_build(problem, name) for name in dict.fromkeys(self.build)]
        corpus = store.load(self.corpus)
        modules = select_modules(corpus, self.split)
        with progress() as report:
            # Not through the gate on the built-in modules: this is how to look closer.
            plugin = ensure_plugin(find(self.llvm), report)
            start = time.monotonic()
            with LocalPool(problem, corpus, plugin, self.pool) as pool:
                if builds:
                    programs = select_programs(corpus, self.split)
                    result = check_programs(pool, builds, programs, policy, report)
                else:
                    result = check_units(pool, modules, policy, report)
            seconds = time.monotonic() - start
        if self.json:
            print_json(result.to_json())
        else:
            show(result, seconds)
        failed = show_failures(result.failures)
        return failed or (0 if result.holds else 1)


def show(result: CorpusIdentity, seconds: float) -> None:
    """Print the counts, then what differs."""
    differing = result.differing
    verdict = "[green]identical[/]" if result.holds else "[bold red]not identical[/]"
    stdout.print(
        f"{escape(result.policy)}: {verdict}; {counted(len(result.modules), 'module')},"
        f" {result.identical:,} of {result.comparisons:,} comparisons hold,"
        f" {len(differing)} differ, {len(result.failures)} compiles failed;"
        f" {counted(result.decisions, 'decision')}, {seconds:.0f} s",
        soft_wrap=True,
    )
    lines = [
        f"  [red]differs[/] {escape(d.module)} ({escape(d.way)} against {escape(d.reference)}):"
        f" {escape(d.what)}"
        for d in differing
    ]
    for line in lines[:_SHOWN]:
        stdout.print(line, soft_wrap=True)
    if len(lines) > _SHOWN:
        stdout.print(f"  and {len(lines) - _SHOWN} more (--json shows all)")
