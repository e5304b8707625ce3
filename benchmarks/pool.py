"""What most benchmarks of inlining begin with: the problem, its policies, and a pool."""

from typing import Final

from nestor.cli.setup import DEFAULT_PROBLEM, ready_plugin
from nestor.corpus.model import Corpus
from nestor.policy.names import NamedPolicy, named_policy
from nestor.problem.registry import find_problem
from nestor.progress import silent
from nestor.rollout.local_pool import LocalPool, PoolSettings

PROBLEM: Final = find_problem(DEFAULT_PROBLEM)
LINK: Final = PROBLEM.builds()["link"]
"""The usual way to build a program."""


def policy_named(name: str) -> NamedPolicy:
    """Return a built-in policy, or that of a file.

    :raises PolicyError: if there is none.
    """
    return named_policy(name, PROBLEM.builtins)


def local_pool(corpus: Corpus, settings: PoolSettings | None = None) -> LocalPool:
    """Return a pool on this machine, its plugin through the identity gate.

    :raises ToolchainError: if there is no usable LLVM.
    """
    return LocalPool(PROBLEM, corpus, ready_plugin(PROBLEM, None, silent), settings)
