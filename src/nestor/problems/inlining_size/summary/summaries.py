"""Summaries of programs, made from the objects of their stock builds."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final, cast

from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.problem.problem import Pool
from nestor.problems.inlining_size.summary.object_uses import summarise
from nestor.progress import Progress, silent
from nestor.rollout.cache import baselines

_EXPORTING: Final = re.compile(
    r"-shared|-Bshareable|-rdynamic|-E|--?export-dynamic(-symbol.*)?|--?dynamic-list.*"
)
"""Options of a link under which functions of default visibility can be named from outside."""


def summaries(
    pool: Pool,
    programs: Sequence[Program],
    modes: Sequence[str],
    progress: Progress = silent,
) -> Mapping[tuple[str, str], str]:
    """Return the text of a summary of every program for every link mode.

    A program of which a module fails to compile has none.

    :raises ObjectError: if there are objects for another processor than x86-64.
    """
    names = dict.fromkeys(chain.from_iterable(p.modules for p in programs))
    modules = tuple(pool.corpus.module(name) for name in names)
    objects = baselines(pool, modules, None, progress, "Compiling stock objects")
    texts = {}
    for number, program in enumerate(programs):
        progress("Summarising programs", number, len(programs))
        if all(name in objects for name in program.modules):
            own = [objects[name] for name in program.modules]
            exports = exports_functions(program)
            for mode in modes:
                summary = summarise(own, cast(LinkMode, mode), exports=exports)
                texts[program.name, mode] = summary.to_text()
    progress("Summarising programs", len(programs), len(programs))
    return texts


def exports_functions(program: Program) -> bool:
    """Tell whether the linked program has its functions for other files, as a shared library."""
    options = (item.value for item in program.inputs if item.kind == "option")
    words = chain.from_iterable(option.removeprefix("-Wl,").split(",") for option in options)
    return any(_EXPORTING.fullmatch(word) for word in words)
