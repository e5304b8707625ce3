"""``nestor evaluate``: what a policy does to linked programs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import percent, print_json, progress, stdout
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.corpus.relink import LinkMode
from nestor.evaluate.compare import Evaluation, evaluate, select_programs
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool, PoolSettings

_FAILURES_SHOWN = 20


@dataclass(frozen=True)
class Evaluate:
    """Compile and link a corpus's programs stock and under a policy, and compare the bytes.

    Bytes are loadable bytes: text, rodata, eh_frame, eh_frame_hdr and gcc_except_table. The
    programs judged are those of projects that training never saw (the split "test"), or all of
    them in a corpus without splits. Worst regressions come first. The interval is a paired
    bootstrap over projects.

    Built-in policies: default, never, always, threshold:N (inline when cost_estimate is below
    N) and mlgo2020 (published in 2020 for LLVM 11).

    Examples:
        nestor evaluate --policy runs/es/policy.safetensors --corpus corpus/tiny
        nestor evaluate --policy threshold:15 --corpus corpus/tiny --split all --json
    """

    policy: str
    """A policy file or a built-in."""
    corpus: Path
    """A corpus with programs."""
    split: Literal["train", "validation", "test", "all"] | None = None
    """Which projects to judge by (default: held-out ones)."""
    mode: LinkMode = "gc"
    """How to link: drop unused sections, keep them, or also merge equal functions."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Evaluate and print; 1 if no program could be compared."""
        policy = policy_file(self.policy)
        corpus = store.load(self.corpus)
        programs = select_programs(corpus, self.split)
        with progress() as report:
            plugin = ready_plugin(self.llvm, report)
            with Pool(corpus, plugin, self.pool) as pool:
                result = evaluate(pool, programs, policy, mode=self.mode, progress=report)
        if self.json:
            print_json(result.to_json())
        else:
            show(result)
        return 0 if result.compared else 1


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
    ratio = f"{result.compile_cpu_ratio:.3f}×" if result.compile_cpu_ratio else "not measured"
    capped = (
        f", {len(result.growth_capped)} modules hit the growth cap" if result.growth_capped else ""
    )
    stdout.print(
        f"compile CPU {ratio} of stock, {result.decisions:,} decisions,"
        f" {len(result.failures)} failures{capped}"
    )
    for failure in result.failures[:_FAILURES_SHOWN]:
        stdout.print(
            f"  [red]failed[/] {escape(failure.what)} ({failure.side}): {escape(failure.reason)}",
            soft_wrap=True,
        )
    if len(result.failures) > _FAILURES_SHOWN:
        stdout.print(f"  and {len(result.failures) - _FAILURES_SHOWN} more (--json shows all)")
