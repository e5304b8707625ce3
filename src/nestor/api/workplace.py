"""Open a corpus, load a policy, and start compilers."""

import os
from pathlib import Path
from typing import Final

from nestor.compiler.plugin import ensure_plugin
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.numbers import refuse_numbers
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool, Problem
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request, Rollout
from nestor.progress import Progress, silent
from nestor.rollout.gate import require
from nestor.rollout.local_pool import LocalPool, PoolSettings

USUAL_PROBLEM: Final = "inlining-size"
"""The problem where none is named."""


def open_corpus(folder: str | os.PathLike[str]) -> Corpus:
    """Return the corpus in a folder that ``nestor corpus fetch`` or ``capture`` wrote.

    :raises CorpusError: if there is none, or it is damaged.
    """
    return store.load(Path(folder))


def load_policy(name_or_path: str | os.PathLike[str], problem: str = USUAL_PROBLEM) -> NamedPolicy:
    """Return a policy: a built-in such as ``shipped``, ``default``, or a file.

    :param problem: whose built-ins may be named, and for which the policy must have been trained.
    :raises PolicyError: if there is no such policy, or it is one for another problem.
    """
    return find_problem(problem).policy(os.fspath(name_or_path))


def open_pool(
    corpus: Corpus,
    problem: str = USUAL_PROBLEM,
    *,
    llvm: str | None = None,
    jobs: int | None = None,
    timeout: float = 120.0,
    memory: int = 4096,
    progress: Progress = silent,
) -> LocalPool:
    """Return a pool that compiles modules of ``corpus``: a context manager.

    The first pool on a machine builds the plugin, which takes 35 CPU-seconds, and compares
    its objects with those of the stock compiler.

    :param problem: what policies decide in it.
    :param llvm: a prefix such as ``/usr/lib/llvm-22``, or a clang; None looks for one.
    :param jobs: compilers at once; None is one for each core.
    :param timeout: seconds until a compile is killed.
    :param memory: MiB that a compile may use.
    :raises ToolchainError: if there is no usable LLVM.
    :raises NestorError: if a number cannot be what it is.
    """
    decided = find_problem(problem)
    usual = PoolSettings(timeout=timeout, memory=memory)
    settings = usual if jobs is None else PoolSettings(jobs, timeout, memory)
    refuse_numbers(settings)
    plugin = require(decided, ensure_plugin(find(llvm), progress))
    return LocalPool(decided, corpus, plugin, settings)


def roll_out(
    pool: Pool,
    unit: Module | str,
    policy: NamedPolicy | str | None = None,
    *,
    seed: int | None = None,
    overrides: str | None = None,
    log: bool = True,
) -> Rollout:
    """Compile one unit and return what came of it; a failed compile is a result with its reason.

    :param unit: a module of the pool's corpus, or its name.
    :param policy: None is the stock compiler, which is not observed: it has no trajectory.
    :param seed: sample answers with this seed; None takes the most probable ones.
    :param overrides: the text of a file of overrides.
    :param log: return the trajectory, which holds every question with its answer.
    """
    decides = policy_of(pool.problem, policy) if policy is not None else None
    module = pool.corpus.module(unit) if isinstance(unit, str) else unit
    request = Request(
        module, decides, seed=seed, overrides=overrides, log=log and policy is not None
    )
    return pool.run([request])[0]


def policy_of(problem: Problem, policy: NamedPolicy | str) -> NamedPolicy:
    """Return a policy that is passed as such, or by its name or path."""
    return problem.policy(policy) if isinstance(policy, str) else policy
