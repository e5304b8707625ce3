"""What most benchmarks of inlining begin with: the problem, its policies, and a pool."""

from typing import Final

from nestor.cli.setup import ready_plugin
from nestor.corpus.model import Corpus
from nestor.policy.names import NamedPolicy, named_policy
from nestor.problems.inlining_size import PROBLEM as PROBLEM
from nestor.progress import silent
from nestor.rollout.local_pool import LocalPool, PoolSettings

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
