"""Summaries of programs, made from the objects of their stock builds."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from nestor.compiler.object_uses import summarise
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent
from nestor.rollout.cache import baselines
from nestor.rollout.pool import Pool

Summaries = Mapping[tuple[str, LinkMode], Path]
"""Files by the program's name and the mode in which it is to be linked."""


def reads_program(policy: Policy | None) -> bool:
    """Tell whether what ``policy`` (None: the default) decides depends on a program's summary."""
    return policy is not None and any(name.startswith("program_") for name in policy.features)


def summaries(
    pool: Pool,
    programs: Sequence[Program],
    modes: Sequence[LinkMode],
    folder: Path,
    progress: Progress = silent,
) -> Summaries:
    """Write a summary of every program for every mode into ``folder``.

    A program of which a module fails to compile has none.

    :raises ObjectError: if there are objects for another processor than x86-64.
    """
    names = dict.fromkeys(chain.from_iterable(p.modules for p in programs))
    modules = tuple(pool.corpus.module(name) for name in names)
    objects = baselines(pool, modules, None, progress, "Compiling stock objects")
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for number, program in enumerate(programs):
        progress("Summarising programs", number, len(programs))
        if all(name in objects for name in program.modules):
            for mode in modes:
                made[program.name, mode] = folder / f"{number}.{mode}"
                own = [objects[name] for name in program.modules]
                summarise(own, mode).save(made[program.name, mode])
    progress("Summarising programs", len(programs), len(programs))
    return made
