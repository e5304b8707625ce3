"""``nestor explain``: what was decided about the calls on one line, and why."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape

from nestor.cli.console import counted, print_json, progress, stdout
from nestor.cli.options import refuse_idle
from nestor.cli.policies.builds import overrides_text
from nestor.cli.remarks import remark
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, program_named, ready_plugin
from nestor.compiler.demangle import demangle
from nestor.compiler.toolchain import Toolchain, find
from nestor.corpus.level import Level
from nestor.corpus.lto_option import kind_of_lto
from nestor.corpus.model import Corpus, Module
from nestor.errors import NestorError
from nestor.policy.branches import RULED
from nestor.policy.names import NamedPolicy
from nestor.problem.in_builds import problems_in_builds
from nestor.problem.levels import require_decided_at
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.report.explain import Line, LineDecision, LineReport, candidates, explain
from nestor.rollout.local_pool import LocalPool, PoolSettings
from nestor.rollout.ready import stored_text
from nestor.temporary import temporary_folder


@dataclass(frozen=True)
class Explain:
    """Show what a policy decides about the calls on a line of the source, and why.

    The file is compiled with line numbers, which changes no decision: by the compile after --, by
    the one that a compile_commands.json has of it, or from a corpus of 'nestor corpus capture
    --lines'. Of each call it says what the stock heuristic says, what the policy answers, which
    features the answer hangs on, and what it costs or saves: the module is compiled again with this
    decision alone answered the other way. Calls of which no policy is asked are listed with the
    reason. The line of an overrides file that turns a decision round is printed with it.

    A call that was copied by inlining is another decision, and still stands on its line.

    Examples:
        nestor explain src/parse.c:120 --policy shipped -- -Oz -Iinclude -c src/parse.c
        nestor explain src/parse.c:120 --policy shipped --compile-commands build
        nestor explain parse.c:120 --corpus corpus/mine --program app --policy my.safetensors
    """

    place: tyro.conf.Positional[str]
    """FILE:LINE; the file may be the last parts of its path."""
    command: tyro.conf.Positional[tuple[str, ...]] = ()
    """The compile after --, with or without the compiler's name."""
    policy: str = "shipped"
    """Who decides: a policy file or a built-in."""
    compile_commands: Path | None = None
    """The compile_commands.json that has the compile, or its folder."""
    corpus: Path | None = None
    """A corpus with line numbers."""
    program: str | None = None
    """Look only at the modules of this program of the corpus."""
    level: Level | None = None
    """Compile at this optimisation level in place of the compile's own."""
    overrides: Path | None = None
    """A file of overrides above the policy."""
    summary: Path | None = None
    """The program's summary, for policies that read one ('nestor summary')."""
    measure: int = 8
    """How many decisions to measure, each by one more compile; 0 for none."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policy decides."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Compile, explain and print; 1 if there is nothing on the line."""
        line = Line.parse(self.place)
        problem = find_problem(self.problem)
        if not problem.remark_passes:
            raise NestorError(f"The questions of {problem.name} are not about lines of the source.")
        if sum((bool(self.command), self.compile_commands is not None, bool(self.corpus))) != 1:
            raise NestorError("Name one of: the compile after --, --compile-commands, or --corpus.")
        if self.corpus is not None and self.level is not None:
            raise NestorError("A corpus has one level, that of its capture: leave --level out.")
        if self.corpus is None:
            refuse_idle(self, "without --corpus", "program")
        policy = problem.policy(self.policy)
        overrides = overrides_text(problem, self.overrides)
        summary = None if self.summary is None else _summary(problem, self.summary)
        toolchain = find(self.llvm)
        with temporary_folder("explain") as folder, progress() as report:
            corpus, modules = self._modules(problem, policy, line, toolchain, Path(folder))
            plugin = ready_plugin(problem, self.llvm, report)
            with LocalPool(problem, corpus, plugin, self.pool) as pool:
                found = explain(
                    pool,
                    modules,
                    policy,
                    line,
                    overrides=overrides,
                    summary=summary,
                    measure=self.measure,
                    progress=report,
                )
        names = _readable(toolchain, found)
        if self.json:
            print_json(_as_json(problem, policy.name, found))
        else:
            _show(problem, policy.name, found, names)
        return 0 if found.decisions or found.others else 1

    def _modules(
        self,
        problem: Problem,
        policy: NamedPolicy,
        line: Line,
        toolchain: Toolchain,
        folder: Path,
    ) -> tuple[Corpus, list[Module]]:
        """Return a corpus with line numbers, and its modules in which the line may be."""
        from nestor.corpus.capture.one_file import capture_file, capture_words

        if self.corpus is not None:
            corpus = corpus_for(problem, self.corpus, [policy])
            modules = list(corpus.modules)
            if self.program is not None:
                own = program_named(corpus, self.program).modules
                modules = [corpus.module(name) for name in own]
            return corpus, candidates(modules, line)
        if self.compile_commands is not None:
            path = self.compile_commands
            corpus = capture_file(line.file, path, folder, toolchain, self.level)
        else:
            corpus = capture_words(self.command, folder, toolchain, self.level)
            if kind_of_lto(self.command):
                remark("with -flto this object is stock's: what is shown is the compile without it")
        require_decided_at(problem, corpus.level, [policy])
        return corpus, list(corpus.modules)


def _summary(problem: Problem, path: Path) -> str:
    """Return the text of the file that the user names; raises NestorError if it is no summary."""
    kind = problems_in_builds(first=problem.name)[problem.name].summary
    if kind is None:
        raise NestorError(f"Policies for {problem.name} read no summary: leave --summary out.")
    return stored_text(path, kind).read_text()


def _readable(toolchain: Toolchain, found: LineReport) -> Mapping[str, str]:
    names = {
        str(decision.about[key])
        for decision in found.decisions
        for key in ("caller", "callee")
        if key in decision.about
    }
    return demangle(toolchain, sorted(name for name in names if name.isprintable()))


def _as_json(problem: Problem, policy: str, found: LineReport) -> dict[str, Any]:
    return {
        "file": found.line.file,
        "line": found.line.number,
        "policy": policy,
        "modules": found.modules,
        "decisions": [asdict(decision) for decision in found.decisions],
        "not_asked": [
            {"module": module, "place": place, "stock": text}
            for module, place, text in found.others
        ],
        "near": list(found.near),
    }


def _show(problem: Problem, policy: str, found: LineReport, names: Mapping[str, str]) -> None:
    for decision in found.decisions:
        _show_decision(problem, policy, decision, names)
    for module, place, text in found.others:
        stdout.print(f"[bold]{escape(place)}[/]  in {escape(module)}", soft_wrap=True)
        stdout.print(f"  not asked   {escape(text)}", soft_wrap=True)
    if not found.decisions and not found.others:
        lines = ", ".join(map(str, found.near))
        near = f"; there are some on the lines {lines}" if lines else ", and no other of that file"
        stdout.print(
            f"No call on {escape(found.line.file)}:{found.line.number} was looked at in"
            f" {counted(found.modules, 'module')}{near}.",
            soft_wrap=True,
        )


def _ruled(logit: float) -> bool:
    """Tell whether a logit, or a change of one, is that of a rule beside fitted trees."""
    return abs(logit) > RULED


def _show_decision(
    problem: Problem, policy: str, decision: LineDecision, names: Mapping[str, str]
) -> None:
    about = decision.about
    callee, caller = (
        escape(names.get(str(about.get(key)), str(about.get(key)))) for key in ("callee", "caller")
    )
    stdout.print(
        f"[bold]{escape(decision.place)}[/]  {callee}, called in {caller}"
        f"  ({escape(decision.module)})",
        soft_wrap=True,
    )
    answer, default = problem.word(about["answer"]), problem.word(about["default"])
    if about.get("overridden"):
        why = "by an override"
    elif decision.by_policy:
        why = "by a rule" if _ruled(about["logit"]) else f"logit {about['logit']:+.3f}"
    else:
        why = "by the default: the policy leaves such calls to it"
    same = "as the default" if answer == default else f"the default: {default}"
    outcome = about.get("effect") or ""
    copied = "; a copy of a call" if about.get("copy_of") else ""
    rows = [
        ("stock", escape(decision.stock) or "not asked in the stock build"),
        (escape(policy), f"[bold]{answer}[/] ({same}), {why}; {escape(str(outcome))}{copied}"),
    ]
    if decision.measured is not None:
        other = problem.word(not about["answer"])
        changes = ", ".join(f"{name} {value:+,.0f}" for name, value in decision.measured.items())
        # Where a module alone has no score, its columns are those of its object.
        unit = problem.report.unit if problem.report.score in decision.measured else "bytes"
        rows.append(("measured", f"{changes} {unit} against {other}"))
    if decision.influences:
        words = ", ".join(
            f"{i.feature} {i.value:g} (usually {i.usual:g})"
            + (" which the rule asks for" if _ruled(i.change) else f" {i.change:+.3f}")
            for i in decision.influences
        )
        rows.append(("because of", escape(words)))
    if decision.override:
        rows.append(("override", escape(decision.override)))
    if decision.instead_of:
        rows.append(("instead of", escape("; ".join(decision.instead_of))))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        stdout.print(f"  {name:{width}}  {text}", soft_wrap=True)
