"""``nestor size-check``: what a change does to the size of a build."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
from rich.markup import escape

from nestor.cli.console import print_json, stdout
from nestor.cli.options import OutputFile, refuse_idle
from nestor.cli.setup import (
    DEFAULT_PROBLEM,
    corpus_for,
    programs_named,
    ready_pool,
    usual_policy,
)
from nestor.compiler.demangle import demangle
from nestor.compiler.toolchain import ToolchainError, find
from nestor.corpus.layout import MANIFEST
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import PoolSettings

if TYPE_CHECKING:
    from nestor.report.sizes import SizeCheck, SizedBuild


@dataclass(frozen=True)
class SizeCheckCommand:
    """Compare the sizes of two builds, for continuous integration.

    BASE and HEAD are two folders of builds, two programs or objects, or two corpora of 'nestor
    corpus capture'. Of folders the linked programs and shared libraries are compared by their
    paths, or the objects if nothing is linked; static libraries are not. Sizes are loadable bytes:
    code, constants and unwind tables, without debug information. Programs of corpora are compiled
    under --policy and linked here.

    The report is Markdown, the worst first: files, functions, and the decisions that changed, of
    corpora always, of builds with --base-logs and --head-logs. With --limit the exit status is 1 if
    a file that both builds have grew by more than so many per cent.

    Examples:
        nestor size-check --base base/build --head build --limit 0.5
        nestor size-check --base old/app --head new/app --json --markdown size.md
        nestor size-check --base corpus/base --head corpus/head --policy shipped --limit 0.5
        nestor size-check --base a --head b --base-logs a/logs --head-logs b/logs
    """

    base: Path
    """The build before."""
    head: Path
    """The build after."""
    limit: float | None = None
    """Per cent by which no file may grow."""
    policy: str | None = None
    """Of corpora: who decides (default: the packaged policy)."""
    program: tuple[str, ...] = ()
    """Of corpora: only these programs."""
    objects: bool = False
    """Of folders: compare objects although there are programs."""
    base_logs: Path | None = None
    """The folder of the base's logs, written by -nestor-log=FOLDER/ with -nestor-log-names."""
    head_logs: Path | None = None
    """The folder of the head's logs."""
    rows: int = 20
    """How many functions, and how many decisions, the Markdown has at most."""
    markdown: OutputFile | None = None
    """Write the Markdown there, too."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use, for corpora and to make names readable: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Measure both builds, print, and judge by the limit.

        :raises NestorError: if a file grew beyond the limit, after the report was printed.
        """
        from nestor.report.size_text import as_markdown
        from nestor.report.sizes import compare_sizes

        problem = find_problem(DEFAULT_PROBLEM)
        corpora = [(place / MANIFEST).exists() for place in (self.base, self.head)]
        if corpora[0] != corpora[1]:
            raise NestorError("BASE and HEAD must be two builds or two corpora, not one of each.")
        if (self.base_logs is None) != (self.head_logs is None) or (corpora[0] and self.base_logs):
            raise NestorError("Logs are for two builds: give --base-logs and --head-logs.")
        if corpora[0]:
            refuse_idle(self, "with two corpora", "objects")
        else:
            refuse_idle(self, "with two builds", "policy", "program")
        make = self._corpus if corpora[0] else self._built
        base, head = (
            make(problem, self.base, self.base_logs),
            make(problem, self.head, self.head_logs),
        )
        if self.base.is_file() and self.head.is_file():  # whatever their names
            base = replace(base, files=dict(zip(head.files, base.files.values(), strict=True)))
        if not set(base.files) & set(head.files):
            raise NestorError("The builds have no file in common; name folders of equal layout.")
        check = compare_sizes(base, head)
        text = as_markdown(check, limit=self.limit, most=self.rows, readable=self._readable(check))
        if self.markdown is not None:
            write_atomically(self.markdown, text)
        if self.json:
            print_json(_as_json(check, self.limit))
        else:
            stdout.print(escape(text), end="", soft_wrap=True)
        beyond = () if self.limit is None else check.beyond(self.limit)
        if beyond:
            more = f" and {len(beyond) - 3} more" if len(beyond) > 3 else ""
            raise NestorError(
                f"{', '.join(beyond[:3])}{more} grew by more than {self.limit:g} %; see which"
                " functions and decisions made it."
            )
        return 0

    def _built(self, problem: Problem, place: Path, logs: Path | None) -> "SizedBuild":
        from nestor.report.sized_builds import built_files, logged_decisions
        from nestor.report.sizes import SizedBuild

        build = built_files(place, objects=self.objects)
        return SizedBuild(build.files, None if logs is None else logged_decisions(problem, logs))

    def _corpus(self, problem: Problem, place: Path, logs: Path | None) -> "SizedBuild":
        from nestor.report.sized_builds import compiled_corpus

        policy = problem.policy(self.policy or usual_policy(problem))
        corpus = corpus_for(problem, place, [policy])
        programs = programs_named(corpus, self.program) if self.program else corpus.programs
        if not programs:
            raise NestorError(f"The corpus {place} has no programs.")
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            return compiled_corpus(pool, programs, policy, report)

    def _readable(self, check: "SizeCheck") -> dict[str, str]:
        names = {f.name for f in check.functions[: self.rows]}
        names |= {n for d in (check.decisions or ())[: self.rows] for n in (d.caller, d.callee)}
        try:
            toolchain = find(self.llvm)
        except ToolchainError:  # sizes can be compared where there is no compiler
            return {}
        return dict(demangle(toolchain, sorted(name for name in names if name.isprintable())))


def _as_json(check: "SizeCheck", limit: float | None) -> dict[str, Any]:
    return {
        "before": check.before,
        "after": check.after,
        "percent": check.percent,
        "limit": limit,
        "beyond": list(() if limit is None else check.beyond(limit)),
        "files": [asdict(f) | {"percent": f.percent} for f in check.files],
        "functions": [asdict(f) | {"change": f.change} for f in check.functions],
        "decisions": None
        if check.decisions is None
        else {
            "compared": check.compared_decisions,
            "only_base": check.only_before,
            "only_head": check.only_after,
            "changed": [asdict(d) for d in check.decisions],
        },
    }
