"""The objects of one program, all or none."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.progress import Progress, silent
from nestor.rollout.policy_file import PolicyFile
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request


class CompileError(NestorError):
    """A module of a program that must be compiled cannot be."""


def compile_program(
    pool: Pool,
    program: Program,
    policy: PolicyFile | None,
    folder: Path,
    *,
    overrides: Path | None = None,
    summary: Path | None = None,
    known: Mapping[str, Path] = MappingProxyType({}),
    progress: Progress = silent,
) -> dict[str, Path]:
    """Compile the modules of ``program`` into ``folder``; return the objects by module.

    :param policy: None is the stock compiler.
    :param known: objects of modules that need no compile.
    :raises CompileError: with the first module that failed, and the reason.
    """
    requests = [
        Request(
            pool.corpus.module(name),
            None if policy is None else policy.argument,
            overrides=overrides,
            program=summary,
            keep=folder / f"{number}.o",
        )
        for number, name in enumerate(program.modules)
        if name not in known
    ]
    stage = f"Compiling {policy.name if policy else 'stock'}"
    objects = {name: known[name] for name in program.modules if name in known}
    for done in pool.run(requests, progress, stage):
        if done.failure is not None or done.request.keep is None:
            raise CompileError(f"{done.request.module.name}: {done.failure}.")
        objects[done.request.module.name] = done.request.keep
    return objects
