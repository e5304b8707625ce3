"""``nestor evaluate``: what policies do to linked programs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import percent, print_json, progress, stdout
from nestor.cli.setup import program_named, ready_plugin
from nestor.compiler.lto import LtoKind
from nestor.corpus import store
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.evaluate.compare import EvaluateSettings, evaluate, select_programs
from nestor.evaluate.groups import Group, groups
from nestor.evaluate.lto import evaluate_lto
from nestor.evaluate.result import Evaluation
from nestor.policy import overrides
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool, PoolSettings

_FAILURES_SHOWN = 20


@dataclass(frozen=True)
class Evaluate:
    r"""Compile and link a corpus's programs stock and under policies, and compare the bytes.

    Bytes are loadable bytes: text, rodata, eh_frame, eh_frame_hdr and gcc_except_table. The
    programs judged are those of projects that training never saw (the split "test"), or all of
    them in a corpus without splits. Worst regressions come first. The interval is a paired
    bootstrap over projects.

    Geometric means by language and style follow, over the programs that are not tiny (see
    --least-bytes). A style of C++ is seen if a project of the split "train" has it. With several
    policies or link modes these means are all that is shown; --json holds every program.

    Built-in policies: shipped, distilled (reads a --summary), default, never, always, threshold:N
    (inline when cost_estimate is below N) and mlgo2020 (published in 2020 for LLVM 11).

    Examples:
        nestor evaluate --policy shipped --corpus corpus/tiny
        nestor evaluate --policy shipped mlgo2020 --mode gc no-gc icf \
            --corpus corpus/bench --smoke
        nestor evaluate --policy threshold:15 --corpus corpus/tiny --split all --json
        nestor evaluate --policy distilled --corpus corpus/bench --lto full --program ninja parse
    """

    policy: tuple[str, ...]
    """Policy files or built-ins."""
    corpus: Path
    """A corpus with programs."""
    split: Literal["train", "validation", "test", "all"] | None = None
    """Which projects to judge by (default: held-out ones)."""
    program: tuple[str, ...] = ()
    """Programs, by their names or the last parts of them (default: all of the split)."""
    lto: LtoKind | None = None
    """Link by LTO, the policies deciding inside the linker, and compare with stock LTO."""
    mode: tuple[LinkMode, ...] = ("gc",)
    """How to link: drop unused sections, keep them, or also merge equal functions."""
    overrides: Path | None = None
    """Answers that stand above the policies' (docs/reference/formats.md)."""
    summary: bool = False
    """Tell policies that read it what the rest of the program does."""
    smoke: bool = False
    """Run the programs' smoke tests, stock and under the policies: executes the corpus's code."""
    least_bytes: int = 80_000
    """Linked stock bytes from which on a program counts in a group's mean."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Evaluate and print; 1 if a policy could not be compared on any program."""
        policies = [policy_file(name) for name in dict.fromkeys(self.policy)]
        modes = tuple(dict.fromkeys(self.mode))
        if not (policies and modes):
            raise NestorError("Nothing to evaluate: name a policy and a link mode.")
        if self.overrides is not None:
            overrides.load(self.overrides)  # said once here instead of by every compile
        if self.lto is not None and self.summary:
            raise NestorError("LTO sees the whole program: leave --summary out.")
        settings = EvaluateSettings(modes, self.overrides, self.summary, self.smoke)
        corpus = store.load(self.corpus)
        programs = tuple(
            dict.fromkeys(program_named(corpus, name) for name in self.program)
        ) or select_programs(corpus, self.split)
        with progress() as report:
            plugin = ready_plugin(self.llvm, report)
            with Pool(corpus, plugin, self.pool) as pool:
                if self.lto is None:
                    results = evaluate(pool, programs, policies, settings, report)
                else:
                    results = evaluate_lto(pool, programs, policies, self.lto, settings, report)
        grouped = groups(results, self.least_bytes)
        if self.json:
            print_json(
                {
                    "evaluations": [result.to_json() for result in results],
                    "groups": [group.to_json() for group in grouped],
                }
            )
        elif len(results) == 1:
            show(results[0])
            for group in grouped:
                numbers = ", ".join(_parts(group))
                stdout.print(
                    f"{escape(group.name)}, from {self.least_bytes:,} bytes: {numbers}",
                    soft_wrap=True,
                )
        else:
            show_groups(grouped, modes, self.least_bytes)
            for result in results:
                stdout.print(f"{escape(result.policy)}, {result.mode}:", end=" ")
                _show_costs(result)
        return 0 if all(result.compared for result in results) else 1


def show_groups(grouped: Sequence[Group], modes: Sequence[LinkMode], least_bytes: int) -> None:
    """Print a row for every group and policy and a column for every link mode."""
    table = Table(
        title="linked bytes against stock: geometric mean over the programs of at least"
        f" {least_bytes:,} bytes, that of text, and the worst program"
    )
    for column in ("programs", "policy", *modes):
        table.add_column(column, overflow="fold")
    cells = {(g.name, g.policy, g.mode): "\n".join(_parts(g)) for g in grouped}
    rows = list(dict.fromkeys((g.name, g.policy) for g in grouped))
    for (name, policy), (following, _) in zip(rows, [*rows[1:], ("", "")], strict=True):
        numbers = (cells[name, policy, mode] for mode in modes)
        table.add_row(escape(name), escape(policy), *numbers, end_section=name != following)
    stdout.print(table)


def _parts(group: Group) -> list[str]:
    """Return a group's numbers; its failures are never left out."""
    parts = []
    if group.worst is not None:
        parts = [
            f"{percent(group.linked_geomean_pct)} of {group.programs}",
            f"text {percent(group.text_geomean_pct)}",
            f"worst {percent(group.worst.linked_change_pct)}"
            f" {escape(group.worst.name.rpartition('/')[2])}",
        ]
    return [*parts, f"[bold red]{len(group.failed)} failed[/]"] if group.failed else parts


def show(result: Evaluation) -> None:
    """Print an evaluation as a table."""
    table = Table(
        title=f"{escape(result.policy)} against stock, loadable bytes, link mode {result.mode}"
    )
    for name in ("program", "project", "stock", "policy", "linked", "object", "text"):
        table.add_column(name, justify="left" if name in ("program", "project") else "right")
    for row in result.programs:
        sizes = [f"{s.linked:,}" if s else "[bold red]failed[/]" for s in (row.stock, row.policy)]
        both = row.stock and row.policy
        table.add_row(
            escape(row.name.rsplit("/", 1)[-1]),
            escape(row.project),
            *sizes,
            percent(row.linked_change_pct),
            percent(100 * (row.policy.object / row.stock.object - 1)) if both else "",  # type: ignore[union-attr]
            percent(100 * (row.policy.text / row.stock.text - 1)) if both else "",  # type: ignore[union-attr]
        )
    stdout.print(table)
    total = result.total()
    if total["ci95"] is not None:
        low, high = total["ci95"]
        stdout.print(
            f"total linked {percent(total['linked_change_pct'])}"
            f" (95 % interval by project {low:+.2f} … {high:+.2f} %),"
            f" geometric mean {percent(total['linked_geomean_pct'])},"
            f" objects {percent(total['object_change_pct'])}",
            soft_wrap=True,
        )
    _show_costs(result)


def _show_costs(result: Evaluation) -> None:
    """Print what the policy cost, and everything that failed."""
    ratio = f"{result.compile_cpu_ratio:.3f}×" if result.compile_cpu_ratio else "not measured"
    capped = (
        f", {len(result.growth_capped)} modules hit the growth cap" if result.growth_capped else ""
    )
    tests = result.smoke
    smoke = (
        f", smoke tests: {tests.passed} passed, {tests.failed} failed, {tests.without} not run"
        if tests
        else ""
    )
    stdout.print(
        f"compile CPU {ratio} of stock, {result.decisions:,} decisions,"
        f" {len(result.failures)} failures{capped}{smoke}",
        soft_wrap=True,
    )
    for failure in result.failures[:_FAILURES_SHOWN]:
        stdout.print(
            f"  [red]failed[/] {escape(failure.what)} ({failure.side}): {escape(failure.reason)}",
            soft_wrap=True,
        )
    if len(result.failures) > _FAILURES_SHOWN:
        stdout.print(f"  and {len(result.failures) - _FAILURES_SHOWN} more (--json shows all)")
