"""From the objects of a first build to their summary, and to the objects under it."""

import os
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

from nestor.cli.make import products
from nestor.cli.make.place import FIRST
from nestor.cli.make.recompile import CompileError, Recompiler, Way
from nestor.cli.make.records import Record
from nestor.cli.make.report import Report
from nestor.cli.make.selection import Candidate, candidates_of, concerns
from nestor.compiler.objects import ObjectError
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.summary import object_uses
from nestor.problems.inlining_size.summary.program_summary import (
    ProgramSummary,
    function_id,
)
from nestor.progress import Progress

if TYPE_CHECKING:
    from nestor.policy.spec import Policy

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_POSITION: Final = re.compile(r"-f(no-)?(pic|PIC|pie|PIE)")
"""Of several such options the compiler follows the last."""
_TOGETHER: Final = 64
"""Modules whose decisions are compared at once: their logs are in memory."""


class NothingToSummariseError(NestorError):
    """The objects of a build are for other processors, or no objects at all."""


def make_first(
    records: Sequence[Record], recompiler: Recompiler, jobs: int, progress: Progress
) -> list[Record]:
    """Compile as a first build does what is not, and return the records of all.

    Where no summary is read nothing is compiled again.

    :raises CompileError: if a compile fails.
    """

    def first(record: Record) -> Record:
        logs = recompiler.place / "logs" / f"again-{os.urandom(8).hex()}"
        recompiler.as_first(record, logs)
        again = replace(record, mode=FIRST, logs=logs)
        again.save(recompiler.place / "objects")
        return again

    reading = recompiler.options.reading
    others: list[Record] = []
    kept: list[Record] = []
    for record in records:
        is_other = record.mode != FIRST and record.level in reading
        (others if is_other else kept).append(record)
    again = _each(first, others, jobs, "Compiling objects to summarise", progress)
    return [*kept, *again]


def summarise(records: Sequence[Record], link: LinkMode, report: Report) -> ProgramSummary:
    """Return the summary of the objects of ``records``; why others have none is in ``report``.

    :raises NothingToSummariseError: if none can be read.
    """
    exporting = {out: for_shared_library(record) for record in records for out in record.outputs}
    for path in list(exporting):
        # libtool compiles each source of a library twice; one of the two goes into a shared one.
        twin = path.parent.parent / path.name
        if path.parent.name == ".libs" and twin in exporting:
            exporting[twin] |= exporting.pop(path)
    uses = {}
    for path in exporting:
        try:
            uses[path] = object_uses.read(path)
        except ObjectError as error:
            report.warnings.append(str(error))
    if not uses:
        raise NothingToSummariseError("No object of the build can be summarised.")
    others = object_uses.users_of_exports(own for path, own in uses.items() if exporting[path])
    summary = object_uses.combine([*uses.values(), others], link)
    report.functions = len(summary.functions)
    together = sum(not item.apart for item in uses.values())
    if together:
        report.warnings.append(
            f"{together} of {len(uses)} objects were compiled without -ffunction-sections: calls"
            " within them cannot be seen."
        )
    main = summary.functions.get(function_id("main"))
    if main is not None and main.copies > 1:
        report.warnings.append(
            f"{main.copies} objects define main: the summary adds up the programs of this build."
        )
    return summary


def for_shared_library(record: Record) -> bool:
    """Tell whether an object is position-independent code of a library, which may be a shared one.

    What is linked from it the compilers do not see. A shared library keeps what it exports, so the
    summary must not say that the linker drops it; of a static library that says too little.
    """
    kinds = [word for word in record.arguments if _POSITION.fullmatch(word)]
    return bool(kinds) and kinds[-1].lower() == "-fpic"


def consider(
    records: Sequence[Record],
    lifted: Collection[Key],
    policies: Mapping[str, "Policy"],
    summary: ProgramSummary,
    recompiler: Recompiler,
    jobs: int,
    progress: Progress,
) -> list[Candidate]:
    """Return what it would be to compile each object of a first build again.

    :param lifted: modules whose objects were left as they were, whatever their records say.
    :param policies: that read a summary, by the levels at which they decide.
    """
    groups = []
    for level in policies:
        own = [r for r in records if r.level == level and (r.mode == FIRST or concerns(r, lifted))]
        groups += [own[start : start + _TOGETHER] for start in range(0, len(own), _TOGETHER)]

    def look(group: Sequence[Record]) -> list[Candidate]:
        return candidates_of(group, policies[group[0].level], summary, recompiler)

    return [*chain.from_iterable(_each(look, groups, jobs, "Comparing decisions", progress))]


def apply(
    candidates: Sequence[Candidate],
    left: Collection[Key],
    recompiler: Recompiler,
    jobs: int,
    report: Report,
    progress: Progress,
) -> None:
    """Bring each object under the summary, except those of the modules ``left``.

    An object whose decisions stay is not compiled, and one that cannot be compiled stays as it is.
    """
    lock = threading.Lock()

    def bring(candidate: Candidate) -> None:
        stays = not candidate.saving
        leaves = not stays and candidate.module in left
        try:
            if stays or leaves:
                way = recompiler.unchanged(candidate.record)
            else:
                way = recompiler.under_policy(candidate.record, from_bitcode=candidate.from_bitcode)
        except CompileError as error:
            with lock:
                report.failed.append(str(error))
            return
        if not leaves:  # what is left can be compiled again later, from its bitcode
            candidate.record.under_policy().save(recompiler.place / "objects")
        with lock:
            report.compiled_again += way is not Way.STAYS
            report.from_source += way is Way.SOURCE
            report.left += leaves
            if candidate.saving < float("inf"):
                report.saving += candidate.saving
                report.saving_left += candidate.saving if leaves else 0.0

    _each(bring, candidates, jobs, "Compiling again with the summary", progress)
    outputs = [out for candidate in candidates for out in candidate.record.outputs]
    for folder in {products.ninja_folder(out) for out in outputs} - {None}:
        assert folder is not None
        products.make_older(folder)


def _each(
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    jobs: int,
    stage: str,
    progress: Progress,
) -> list[_Result]:
    """Do ``work`` for each item, ``jobs`` at a time, and return the results in order."""
    results: list[_Result] = []
    with ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(work, items):
            results.append(result)
            progress(stage, len(results), len(items))
    return results
