"""``nestor make``: build, summarise, build again what changes, and keep the summary."""

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from nestor.cli.make import records, running
from nestor.cli.make import words as own_words
from nestor.cli.make.place import (
    BY_LTO,
    FIRST,
    LINKED,
    POLICY,
    UNDER_POLICY_BY_LTO,
    compilers_folder,
    is_plain,
)
from nestor.cli.make.words import Words
from nestor.cli.remarks import remark
from nestor.cli.wrong_words import WrongWordsError, answer
from nestor.errors import NestorError

if TYPE_CHECKING:
    from nestor.cli.make.compilers import Compilers
    from nestor.cli.make.report import Report

HELP: Final = """\
usage: nestor make [--policy POLICY]… [--summary DIR] [--link MODE] [--jobs N] [--again PERCENT]
       [--renew] [--llvm PREFIX] [--json] -- COMMAND…

Run COMMAND, which builds something, under policies for its level: 'distilled' decides inlining at
-Oz, 'shipped-os' at -Os, and 'shipped-speed' at -O2 and -O3. --policy (a file or a built-in, once
for each kind of decision) takes others in the place of all of these. CC and CXX name the compilers
for COMMAND, and they are first on PATH as clang and clang++, so configure the build under 'nestor
make' too. For size, ask for -ffunction-sections -fdata-sections in CFLAGS and CXXFLAGS as well.

At -Oz and -Os the policies read a summary of the program: what one module cannot see, such as how
many modules hold a copy of a function. The first build knows none: C is compiled by the stock
heuristic, C++ under the policy as it decides without one. Then the objects are summarised, those
whose decisions change with the summary are compiled again in their places, without their front end
where they can, and COMMAND runs once more to link. The summary is kept, and later builds compile
each module once, with it. A build after 'make clean' with the same summary gives the same objects.

Under LTO (-flto) objects are stock's, and 'shipped-lto' decides in links at -Oz, inside lld.

Compiling again takes at most 30 % of the time of the first build (as sizes tell it): modules that
would save least for their size stay as they are, and later builds leave them so. --again 100
compiles all of them, in the first build or later; another PERCENT counts in the first build.

--summary is the folder for all this; default: NESTOR_PROGRAM, or .nestor in the present folder.
Run later builds from the same folder. --link says how the programs are linked: gc (with
--gc-sections, the default), no-gc, or icf (with --icf=all too). --jobs is how many modules are
compiled again at a time; default: -j of COMMAND, or the number of processors. --renew makes the
summary anew, when much has changed since. --json prints a report as JSON, and what COMMAND prints
goes to standard error.

The exit status is COMMAND's if that is not 0. Without an object of the compilers it is 1.

examples:
  nestor make -- make -j8 CFLAGS="-Oz -ffunction-sections -fdata-sections"
  nestor make -- cmake -B build -DCMAKE_BUILD_TYPE=MinSizeRel && nestor make -- cmake --build build
  nestor make -- meson setup build -Dbuildtype=minsize && nestor make -- ninja -C build
  nestor make -- ./configure CFLAGS="-Oz -ffunction-sections" && nestor make -- make -j8
  nestor make --policy distilled --policy shipped-eviction -- make CFLAGS="-Oz -g"
  nestor make --renew -- make -j8
"""
_JOBS: Final = re.compile(r"(?:-j|--jobs=|--parallel=)(\d+)")
_JOBS_NEXT: Final = re.compile(r"-j|--jobs|--parallel")
"""The number may be the next word."""


def run(name: str, given_words: list[str]) -> int:
    """Run ``nestor make`` with the words after it."""
    try:
        own = own_words.split(given_words)
    except WrongWordsError as error:
        return answer("make", HELP, given_words, error)
    return _Build(own).run()


class _Build:
    """One run of ``nestor make``."""

    def __init__(self, own: Words) -> None:
        self._own = own
        self._place = Path(own.folder)

    def run(self) -> int:
        """Build, and finish what the build has begun."""
        from nestor.cli.make.compilers import prepare
        from nestor.files import claimed

        own = self._own
        compilers = compilers_folder(own.folder)
        if not is_plain(compilers):
            raise NestorError(
                f"{own.folder} cannot be named in a makefile, and neither can the cache,"
                f" {compilers}: name a folder without blanks and quotes by --summary."
            )
        with claimed(self._place, remedy="name another folder by --summary"):
            for folder in ("compiles", "objects"):
                (self._place / folder).mkdir(exist_ok=True)
            return self._run(prepare(own))

    def _run(self, compilers: "Compilers") -> int:
        own = self._own
        reads = bool(compilers.reading)
        first = reads and (own.renew or not Path(own.summary).is_file())
        if own.all_again and not first and Path(own.left).is_file():
            Path(own.left).replace(own.lifted)
            Path(own.unfinished).touch()
        if first:
            Path(own.unfinished).touch()
            Path(own.left).unlink(missing_ok=True)
        changed = compilers.write(FIRST if first else POLICY, with_summary=not first)
        pending = Path(own.unfinished).is_file()
        has_objects = any((self._place / "objects").iterdir())
        if changed and not pending and has_objects:
            remark(
                "the policy, the summary or the compiler changed: what is up to date stays as it is"
                " until it is built again"
            )
        status = running.run(own.command, own.folder, cached=not first, quiet=own.json)
        if status != 0:
            return self._ended(status, first=first)
        compiles = records.of_last_build(self._place)
        every = records.collect(self._place)
        from nestor.cli.make import report as said

        others = (LINKED, BY_LTO, UNDER_POLICY_BY_LTO)
        of_build = [r for r in records.of_the_build(every) if r.mode not in others]
        programs = [r for r in records.of_the_build(compiles) if r.is_linked]
        programs = [record for record in programs if record.outputs[0].is_file()]
        linked = [r for r in programs if r.mode == LINKED and r.level in compilers.reading]
        report = said.Report(objects=len(of_build))
        if linked:
            report.warnings.append(said.linked_at_once(linked, compilers.reading))
        has_linker = compilers.plugin.toolchain.lld.exists()
        by_lto = [record for record in programs if record.mode != LINKED]
        if by_lto and not own.json:
            remark(said.linked_by_lto(by_lto, compilers.in_links, has_linker=has_linker))
        if not compiles and not every and not has_objects and (first or not reads):
            raise NestorError(_no_objects())
        if of_build and said.decides_nothing(of_build, compilers.policies):
            report.warnings.append(said.wrong_level(of_build, compilers.policies))
        if of_build and not own.json:
            from nestor.cli.lto_remarks import remark_on_lto

            remark_on_lto(own.policies, lto=False)
        reading = any(record.level in compilers.reading for record in of_build)
        finished = reading and pending and self._finish(of_build, report, compilers, first=first)
        if finished:
            status = running.run(own.command, own.folder, cached=True, quiet=own.json)
            if status != 0:
                return self._ended(status, first=False)
            compilers.write(POLICY, with_summary=True)  # for later builds: files are settled now
        if of_build and not reading and not report.warnings and not own.json:
            remark(said.without_summary(of_build, compilers.policies))
        self._say(report, finished=finished)
        return 1 if report.failed else 0

    def _finish(
        self,
        every: list[records.Record],
        report: "Report",
        compilers: "Compilers",
        *,
        first: bool,
    ) -> bool:
        """Make the summary if this is a first build, and bring the objects under it.

        :return: False if there is nothing to summarise: the objects stay as they are.
        """
        from nestor.cli.console import progress
        from nestor.cli.make import finish, selection
        from nestor.cli.make.recompile import Recompiler
        from nestor.corpus.relink import LinkMode
        from nestor.problem.registry import find_policy
        from nestor.problems.inlining_size.summary import program_summary

        own, jobs = self._own, jobs_of(self._own)

        def recompiler(*, with_summary: bool) -> Recompiler:
            options = compilers.options(with_summary=with_summary)
            return Recompiler(compilers.plugin.toolchain, options, self._place)

        policies = {}
        for level, word in compilers.reading.items():
            _, named = find_policy(word, [compilers.policies[word].problem])
            assert named.policy is not None  # "default" reads no summary
            policies[level] = named.policy
        with progress() as bars:
            before = recompiler(with_summary=not first)
            if first:
                every = finish.make_first(every, before, jobs, bars)
                try:
                    summary = finish.summarise(every, cast(LinkMode, own.link), report)
                except finish.NothingToSummariseError as error:
                    report.warnings.append(f"{error} They are as they would be without a summary.")
                    return False
            else:
                summary = program_summary.load(Path(own.summary))
                report.functions = len(summary.functions)
            lifted = selection.load(Path(own.lifted))
            found = finish.consider(every, lifted, policies, summary, before, jobs, bars)
            if first:
                percent = None if own.again is None else int(own.again)
                left = selection.left_as_they_are(found, percent)
                selection.save(Path(own.left), left, found)
                summary.save(Path(own.summary))
                compilers.write(POLICY, with_summary=True)
            modules = selection.load(Path(own.left))
            finish.apply(found, modules, recompiler(with_summary=True), jobs, report, bars)
        records.collect(self._place)
        if not report.failed:
            Path(own.lifted).unlink(missing_ok=True)
            Path(own.unfinished).unlink(missing_ok=True)
        return True

    def _ended(self, status: int, *, first: bool) -> int:
        """Say that the build failed, and return its exit status."""
        rest = ": mend it, and what was compiled counts in the next run" if first else ""
        remark(f"the build ended with the exit status {status}{rest}")
        return status

    def _say(self, report: "Report", *, finished: bool) -> None:
        own = self._own
        if own.json:
            from nestor.cli.console import print_json

            print_json(
                {
                    "policies": own.policies,
                    "summary": own.summary if Path(own.summary).is_file() else None,
                    "objects": report.objects,
                    "compiled_again": report.compiled_again,
                    "from_source": report.from_source,
                    "left": report.left,
                    "functions": report.functions,
                    "failed": report.failed,
                    "warnings": report.warnings,
                }
            )
        elif finished:
            from nestor.cli.console import counted

            remark(
                f"{report.compiled_again} of {counted(report.objects, 'object')} compiled again"
                f" with the summary of {counted(report.functions, 'function')}, {own.summary}"
            )
            if report.left:
                stay = "object stays as it is" if report.left == 1 else "objects stay as they are"
                remark(
                    f"{report.left} {stay}, for an expected"
                    f" {report.saving_left:,.0f} of {report.saving:,.0f} bytes; --again 100"
                    " compiles all"
                )
        for warning in report.warnings:
            remark(f"warning: {warning}")
        for failure in report.failed:
            remark(f"error: stays as it is: {failure}")


def jobs_of(own: Words) -> int:
    """Return how many modules to compile at a time: as many as the build does."""
    if own.jobs is not None:
        return int(own.jobs)
    for word, following in pairwise([*own.command, ""]):
        found = _JOBS.fullmatch(word)
        number = found[1] if found else following if _JOBS_NEXT.fullmatch(word) else ""
        if number.isdecimal():
            return max(1, int(number))
    return len(os.sched_getaffinity(0))


def _no_objects() -> str:
    return (
        "The build has made no object with the compilers of 'nestor make'. If it was up to date,"
        " clean it. If it was configured before (CMake, Meson, autotools), configure it anew under"
        " 'nestor make'. If a makefile sets CC itself, name the compiler: nestor make -- make"
        " CC=clang CXX=clang++ …"
    )
