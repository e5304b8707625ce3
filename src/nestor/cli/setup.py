"""What most commands begin with: a toolchain with its plugin, a pool, a program of a corpus."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.toolchain import find
from nestor.errors import NestorError, meant
from nestor.progress import Progress

if TYPE_CHECKING:
    from nestor.corpus.model import Corpus, Program
    from nestor.policy.names import NamedPolicy
    from nestor.problem.problem import Problem
    from nestor.rollout.local_pool import LocalPool, PoolSettings

DEFAULT_PROBLEM: Final = "inlining-size"
"""The problem of commands whose user names no other one."""


def ready_plugin(problem: "Problem", llvm: str | None, progress: Progress) -> Plugin:
    """Return the plugin of the toolchain to use, built and through the problem's identity gate.

    :raises ToolchainError: if there is no usable LLVM, or it does not pass.
    """
    from nestor.rollout.gate import require  # Takes numpy.

    return require(problem, ensure_plugin(find(llvm), progress))


@contextlib.contextmanager
def ready_pool(
    problem: "Problem",
    corpus: "Corpus",
    llvm: str | None,
    settings: "PoolSettings | None" = None,
) -> "Iterator[tuple[LocalPool, Progress]]":
    """Yield a pool that compiles the modules of ``corpus``, and what shows the progress of it.

    :raises ToolchainError: if there is no usable LLVM, or it does not pass the identity gate.
    """
    from nestor.cli.console import progress  # These take rich and numpy.
    from nestor.rollout.local_pool import LocalPool, PoolSettings

    with progress() as report:
        plugin = ready_plugin(problem, llvm, report)
        with LocalPool(problem, corpus, plugin, settings or PoolSettings()) as pool:
            yield pool, report


def usual_policy(problem: "Problem", *, lto: bool = False) -> str:
    """Return the policy of commands whose user names none: the packaged one, or the default.

    :param lto: whether it decides inside LTO.
    """
    names = ("shipped-lto",) if lto else ("shipped", "shipped-os")
    return next((name for name in names if name in problem.builtins.names), "default")


def corpus_for(
    problem: "Problem", folder: Path, policies: "Sequence[NamedPolicy] | None"
) -> "Corpus":
    """Return the corpus in ``folder``, on which ``policies`` are to decide.

    :param policies: None for one that is still to be made.
    :raises CorpusError: if there is none, or policies of ``problem`` decide nothing at its level.
    """
    from nestor.corpus import store
    from nestor.problem.levels import require_decided  # Takes numpy.

    corpus = store.load(folder)
    require_decided(problem, corpus, policies)
    return corpus


def program_named(corpus: "Corpus", name: str) -> "Program":
    """Return the program that a user means by its name or the last part of it.

    :raises NestorError: if that is not exactly one.
    """
    named = [p for p in corpus.programs if name in (p.name, p.name.rsplit("/", 1)[-1])]
    if len(named) != 1:
        names = [p.name for p in (named or corpus.programs)]
        near = "" if named else meant(name, [n.rpartition("/")[2] for n in names])
        raise NestorError(
            f"'{name}' is not one program of the corpus {corpus.root}{near}; there are:"
            f" {', '.join(names)}."
        )
    return named[0]


def programs_named(corpus: "Corpus", names: Sequence[str]) -> "tuple[Program, ...]":
    """Return the programs that a user means, each once, in the order of ``names``.

    :raises NestorError: if a name is not that of exactly one.
    """
    return tuple(dict.fromkeys(program_named(corpus, name) for name in names))
