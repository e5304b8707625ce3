"""What most benchmarks of inlining begin with: the problem, its policies, and a pool."""

from collections.abc import Sequence
from typing import Final

from nestor.build.incremental import ProgramBuild
from nestor.cli.setup import ready_plugin
from nestor.corpus.model import Corpus, Program
from nestor.policy.names import NamedPolicy, named_policy
from nestor.problem.overrides import Overrides
from nestor.problem.problem import Pool
from nestor.problems.inlining_size import PROBLEM as PROBLEM
from nestor.problems.inlining_size_os import PROBLEM as AT_OS
from nestor.progress import silent
from nestor.rollout.local_pool import LocalPool, PoolSettings

AT_LEVEL: Final = {"-Oz": PROBLEM, "-Os": AT_OS}
"""Inlining for size, by the level of a corpus."""
LINK: Final = PROBLEM.builds()["link"]
"""The usual way to build a program."""


def policy_named(name: str) -> NamedPolicy:
    """Return a built-in policy, or that of a file.

    :raises PolicyError: if there is none.
    """
    return named_policy(name, PROBLEM.builtins)


def local_pool(corpus: Corpus, settings: PoolSettings | None = None) -> LocalPool:
    """Return a pool on this machine, its plugin through the identity gate.

    It is for inlining for size at the level of ``corpus``; at levels of another problem, at -Oz.

    :raises ToolchainError: if there is no usable LLVM.
    """
    problem = AT_LEVEL.get(corpus.level, PROBLEM)
    return LocalPool(problem, corpus, ready_plugin(problem, None, silent), settings)


def build_program(
    pool: Pool,
    program: Program,
    policy: NamedPolicy,
    modes: Sequence[str],
    summary: str | None,
    overrides: Overrides,
) -> ProgramBuild:
    """Build ``program`` once, with what each of its functions takes of the link in every mode.

    :param summary: the text of the program's summary, if there is one.
    :raises nestor.build.build.BuildError: if a module or a link fails.
    """
    builder = LINK.incremental(pool, program, policy, modes, summary)
    try:
        return builder.build(overrides)
    finally:
        builder.close()
