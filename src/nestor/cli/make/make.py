"""``nestor make``: build, summarise, build again what changes, and keep the summary."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from nestor.cli.make import quick, records, running, scripts
from nestor.cli.make import words as own_words
from nestor.cli.make.place import FIRST, LINKED, POLICY
from nestor.cli.make.words import Words
from nestor.cli.remarks import remark, report_once
from nestor.cli.wrong_words import WrongWordsError, answer
from nestor.errors import NestorError

if TYPE_CHECKING:
    from nestor.cli.make.finish import Report
    from nestor.compiler.plugin import Plugin
    from nestor.compiler.toolchain import Toolchain

HELP: Final = """\
usage: nestor make [--policy POLICY] [--summary DIR] [--link MODE] [--jobs N] [--again PERCENT]
       [--renew] [--llvm PREFIX] [--json] -- COMMAND…

Run COMMAND, which builds something, under POLICY (a file or a built-in; default: distilled) with a
summary of the program: what one module cannot see, such as how many modules hold a copy of a
function. CC and CXX name the compilers for COMMAND, and they are first on PATH as clang and
clang++, so configure the build under 'nestor make' too. Ask for -Oz -ffunction-sections
-fdata-sections in CFLAGS and CXXFLAGS, as for 'nestor clang'; for -Os there is 'shipped-os'.

The first build knows no summary: C is compiled by the stock heuristic, C++ under the policy as it
decides without one. Then the objects are summarised, those whose decisions change with the summary
are compiled again in their places, without their front end where they can, and COMMAND runs once
more to link. The summary is kept, and later builds compile each module once, with it. A build after
'make clean' with the same summary gives the same objects.

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
  nestor make --policy shipped-os -- cmake -B build -DCMAKE_BUILD_TYPE=MinSizeRel
  nestor make --policy shipped-os -- cmake --build build
  nestor make -- meson setup build -Dbuildtype=minsize && nestor make -- ninja -C build
  nestor make -- ./configure CFLAGS="-Oz -ffunction-sections" && nestor make -- make -j8
  nestor make --renew -- make -j8
"""
_JOBS: Final = re.compile(r"-j(\d*)|--jobs=(\d+)|--parallel=?(\d*)")


def run(name: str, given_words: list[str]) -> int:
    """Run ``nestor make`` with the words after it."""
    quick.run(given_words)
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
        self._plugin: Plugin | None = None

    def run(self) -> int:
        """Build, and finish what the build has begun."""
        from nestor.files import claimed

        own = self._own
        if "\n" in own.folder or "'" in own.folder:
            raise NestorError(f"{own.folder} has a character that no build can cope with.")
        for folder in ("bin", "compiles", "objects"):
            (self._place / folder).mkdir(parents=True, exist_ok=True)
        with claimed(self._place):
            return self._run()

    def _run(self) -> int:
        own = self._own
        reads = _reads_summary(own)
        first = reads and (own.renew or not Path(own.summary).is_file())
        mode = FIRST if first else POLICY
        if own.all_again and not first and Path(own.left).is_file():
            Path(own.left).replace(own.lifted)
            Path(own.unfinished).touch()
        if first:
            Path(own.unfinished).touch()
            Path(own.left).unlink(missing_ok=True)
        changed = self._write_compilers(mode, with_summary=not first)
        pending = Path(own.unfinished).is_file()
        if changed and not pending and any((self._place / "objects").iterdir()):
            remark(
                "the policy, the summary or the compiler changed: what is up to date stays as it is"
                " until it is built again"
            )
        status = running.run(own.command, own.folder, cached=not first, quiet=own.json)
        if status != 0:
            return self._ended(status, first=first)
        compiles = records.of_last_build(self._place)
        every = records.collect(self._place)
        from nestor.cli.make.finish import Report, of_the_build

        of_build = [record for record in of_the_build(every) if record.mode != LINKED]
        linked = [r for r in of_the_build(compiles) if r.mode == LINKED and r.outputs[0].is_file()]
        report = Report(objects=len(of_build))
        if linked and reads:
            report.warnings.append(_linked_at_once(linked, own.policy))
        if not compiles and not every and (first or not reads):
            raise NestorError(_no_objects(own.command))
        again = bool(of_build) and pending and reads
        if again and first and not any(r.level in self._tools.levels for r in of_build):
            report.warnings.append(self._wrong_level(of_build))
            again = False
        if again:
            self._finish(of_build, report, first=first)
            status = running.run(own.command, own.folder, cached=True, quiet=own.json)
            if status != 0:
                return self._ended(status, first=False)
        self._say(report, finished=again, reads=reads)
        return 1 if report.failed else 0

    def _finish(self, every: list[records.Record], report: "Report", *, first: bool) -> None:
        """Make the summary if this is a first build, and bring the objects under it."""
        from nestor.cli.console import progress
        from nestor.cli.make import finish, selection
        from nestor.cli.make.recompile import Recompiler
        from nestor.problem.registry import find_policy
        from nestor.problems.inlining_size.summary import program_summary
        from nestor.problems.inlining_size.summary.program_summary import LinkMode

        own, jobs = self._own, _jobs(self._own)
        tools = self._tools
        with progress() as bars:
            if first:
                compiler = Recompiler(tools.toolchain, tools.options, self._place)
                every = finish.make_first(every, compiler, jobs, bars)
                summary = finish.summarise(every, cast(LinkMode, own.link), report)
            else:
                summary = program_summary.load(Path(own.summary))
                report.functions = len(summary.functions)
            _, named = find_policy(own.policy, [tools.problem])
            policy = named.policy
            assert policy is not None  # "default" reads no summary
            recompiler = Recompiler(tools.toolchain, tools.options, self._place)
            lifted = selection.load(Path(own.lifted))
            found = finish.consider(every, lifted, policy, summary, recompiler, jobs, bars)
            if first:
                percent = None if own.again is None else int(own.again)
                left = selection.left_as_they_are(found, percent)
                selection.save(Path(own.left), left, found)
                summary.save(Path(own.summary))
                self._write_compilers(POLICY, with_summary=True)
                recompiler = replace(recompiler, options=self._tools.options)
            modules = selection.load(Path(own.left))
            finish.apply(found, modules, recompiler, jobs, report, bars)
        records.collect(self._place)
        if not report.failed:
            Path(own.lifted).unlink(missing_ok=True)
            Path(own.unfinished).unlink(missing_ok=True)

    def _write_compilers(self, mode: str, *, with_summary: bool) -> bool:
        """Write the compilers, and remember them if a build can use them as they are."""
        from nestor.cli.setup import DEFAULT_PROBLEM
        from nestor.cli.use import command
        from nestor.cli.use.choice import choose
        from nestor.cli.use.words import Words as PolicyWords
        from nestor.problem.in_builds import problems_in_builds
        from nestor.rollout.ready import passed_plugin

        own = self._own
        summary = own.summary if with_summary and Path(own.summary).is_file() else None
        if summary is not None and not _reads_summary(own):
            summary = None
        left = (own.left,) if summary is not None and Path(own.left).is_file() else ()
        asked_for = PolicyWords((own.policy,), left, summary, llvm=own.llvm)
        memory = command.Memory(asked_for)
        problems = problems_in_builds(DEFAULT_PROBLEM)
        choice = choose(asked_for, problems)
        plugin = self._plugin or passed_plugin(own.llvm, choice.problems, report_once)
        self._plugin = plugin  # looked for once
        found = command.Ingredients(plugin, choice)

        def under(words: PolicyWords) -> command.Ingredients:
            return command.Ingredients(plugin, choose(words, problems))

        alone = under(replace(asked_for, overrides=(), summary=None))
        stock = under(PolicyWords(("default",), llvm=own.llvm))
        options = scripts.Options(
            tuple(stock.compile_options()),
            tuple(found.compile_options()),
            tuple(alone.compile_options()),
            next(iter(alone.files), None),
            _reads_summary(own),
        )
        toolchain = plugin.toolchain
        problem = choice.problems[0]
        self._tools = _Tools(toolchain, options, problem, problems[problem].levels)
        changed = scripts.write(self._place, toolchain, options, mode)
        if mode == POLICY and (summary is not None or not _reads_summary(own)):
            text = scripts.texts(self._place, toolchain, options, mode)
            memory.keep(quick.key(own), found, quick.remembered(text))
        return changed

    def _wrong_level(self, objects: Sequence[records.Record]) -> str:
        from nestor.cli.setup import DEFAULT_PROBLEM
        from nestor.problem.in_builds import like_at, problems_in_builds

        levels = self._tools.levels
        found = sorted({record.level for record in objects})
        wanted = " or ".join(levels)
        problems = problems_in_builds(DEFAULT_PROBLEM)
        like = like_at(found[0], problems[self._tools.problem], problems)
        usual = like.usual if like else None
        other = f"--policy {usual} decides at {found[0]}. Or put" if usual else "Put"
        return (
            f"the build is compiled at {' and '.join(found)}, and {self._own.policy} decides at"
            f" {wanted} alone: there is nothing to compile again. {other} {wanted} into CFLAGS and"
            " CXXFLAGS and clean the build (for CMake's MinSizeRel:"
            f' -DCMAKE_CXX_FLAGS_MINSIZEREL="{levels[0]} -DNDEBUG").'
        )

    def _ended(self, status: int, *, first: bool) -> int:
        """Say that the build failed, and return its exit status."""
        if status == running.NOT_FOUND:
            raise NestorError(f"There is no command {self._own.command[0]!r}.")
        rest = ": mend it, and what was compiled counts in the next run" if first else ""
        remark(f"the build ended with the exit status {status}{rest}")
        return status

    def _say(self, report: "Report", *, finished: bool, reads: bool) -> None:
        own = self._own
        if own.json:
            from nestor.cli.console import print_json

            print_json(
                {
                    "policy": own.policy,
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
            remark(
                f"{report.compiled_again} of {report.objects} objects compiled again with the"
                f" summary of {report.functions:,} functions, {own.summary}"
            )
            if report.left:
                remark(
                    f"{report.left} objects stay as they are, for an expected"
                    f" {report.saving_left:,.0f} of {report.saving:,.0f} bytes; --again 100"
                    " compiles them too"
                )
        elif not reads and not own.json:
            remark(f"{own.policy} reads no summary, so the build is done")
        for warning in report.warnings:
            remark(f"warning: {warning}")
        for failure in report.failed:
            remark(f"error: stays as it is: {failure}")


@dataclass(frozen=True)
class _Tools:
    toolchain: "Toolchain"
    options: scripts.Options
    problem: str
    levels: tuple[str, ...]
    """The optimisation levels at which it is decided."""


def _reads_summary(own: Words) -> bool:
    """Tell whether the policy has features that a summary gives."""
    from nestor.cli.setup import DEFAULT_PROBLEM
    from nestor.problem.in_builds import problems_in_builds
    from nestor.rollout.ready import stored_policy

    place = stored_policy(own.policy, list(problems_in_builds(DEFAULT_PROBLEM))).place
    if isinstance(place, str):
        return False
    # The header of a copy in the cache, which was checked when it was written; reading the policy
    # itself takes NumPy.
    content = place.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    features = json.loads(header["__metadata__"]["nestor"])["features"]
    return any(str(name).startswith("program_") for name in features)


def _jobs(own: Words) -> int:
    """Return how many modules to compile at a time: as many as the build does."""
    if own.jobs is not None:
        return int(own.jobs)
    for word in own.command:
        found = _JOBS.fullmatch(word)
        if found is not None and any(found.groups()):
            return max(1, int(next(digits for digits in found.groups() if digits)))
    return len(os.sched_getaffinity(0))


def _linked_at_once(linked: Sequence[records.Record], policy: str) -> str:
    count, most = len(linked), 3
    names = [record.outputs[0].name for record in linked[:most]]
    more = [f"{count - most} more"] if count > most else []
    were = "was" if count == 1 else "were"
    return (
        f"{' and '.join([', '.join(names), *more])} {were} compiled and linked by one command, so"
        f" there is no object to summarise: C is as stock compiles it, C++ as {policy} does"
        " without a summary. Compile with -c and link the objects, and they are under the policy"
        " with the summary."
    )


def _no_objects(command: Sequence[str]) -> str:
    return (
        "The build has compiled nothing with the compilers of 'nestor make'. If it was up to date,"
        " clean it. If it was configured before (CMake, Meson, autotools), configure it anew under"
        " 'nestor make'. If a makefile sets CC itself, name the compiler:"
        f" nestor make -- {command[0]} CC=clang CXX=clang++ …"
    )
