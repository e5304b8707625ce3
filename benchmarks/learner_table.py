"""Print and draw what ``benchmarks.learners`` and ``benchmarks.learner_references`` have found.

    python -m benchmarks.learner_table OUT [--figure FILE.svg] [--json FILE]

A row is a learner at a budget: the geometric mean change of held-out linked bytes against stock,
its 95 % interval over seeds and projects, each seed, and the worst program of any seed. Lines for
comparison follow. The figure has the same, bytes against CPU minutes. All of OUT is shown.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.learner_references import REFERENCES
from benchmarks.learners import Run, geomean_of, runs
from benchmarks.machine import describe
from nestor.compiler.toolchain import find
from nestor.errors import NestorError
from nestor.evaluate.compare_runs import EVALUATION, Learner, compare, read_run


@dataclass(frozen=True)
class Row:
    """A learner at a budget."""

    name: str
    minutes: float
    learner: Learner
    by_seed: tuple[float, ...]
    """Change of the held-out programs under each seed's policy, in per cent."""


def rows(out: Path) -> list[Row]:
    """Return the rows of all judged runs in ``out``, the smallest programs first by budget.

    :raises NestorError: if runs of one row differ in more than their seeds.
    """
    groups: dict[tuple[str, float], list[Path]] = defaultdict(list)
    for run in runs(out):
        if (run.folder / EVALUATION).exists():
            groups[run.row, run.minutes].append(run.folder)
    found = []
    for (name, minutes), folders in groups.items():
        learners = compare([read_run(folder) for folder in folders])
        if len(learners) > 1:
            raise NestorError(f"Runs of '{name}' are of different settings: remove the old ones.")
        by_seed = tuple(geomean_of(folder) for folder in folders)
        found.append(Row(name, minutes, learners[0], by_seed))
    return sorted(found, key=lambda row: (row.minutes, row.learner.change_pct or 0.0))


def origin(out: Path) -> dict[str, str]:
    """Return the digests of what the runs in ``out`` were made with."""
    identities = [read_run(run.folder).identity for run in runs(out)]
    parts = ("corpus", "compiler", "plugin")
    return {part: ", ".join(sorted({str(run.get(part)) for run in identities})) for part in parts}


def cost(out: Path) -> tuple[float, float]:
    """Return CPU minutes of compilers by the price list, and of learning besides.

    A longer run goes on where a shorter one ended, so that each row and seed counts once.
    """
    longest: dict[tuple[str, int], Run] = {}
    for run in sorted(runs(out), key=lambda run: run.minutes):
        longest[run.row, run.seed] = run
    learners = [compare([read_run(run.folder)])[0] for run in longest.values()]
    compilers = [learner.cpu_minutes or 0.0 for learner in learners]
    parts = [learner.overhead_pct / 100 for learner in learners]
    learning = [c * part / (1 - part) for c, part in zip(compilers, parts, strict=True)]
    return sum(compilers), sum(learning)


def line(row: Row) -> str:
    """Return the row as text."""
    own = row.learner
    low, high = own.interval or (float("nan"), float("nan"))
    seeds = " ".join(f"{change:+.2f}" for change in row.by_seed)
    worst = f"worst {own.worst[1]:+.2f} {own.worst[0]}" if own.worst else ""
    return (
        f"{row.name:17}{row.minutes:4g} {own.change_pct or 0.0:+7.2f} % [{low:+.2f}, {high:+.2f}]"
        f"  seeds {seeds:21}  compiles {own.compiles:6,.0f}  own {own.overhead_pct:2.0f} %  {worst}"
    )


def draw(table: Sequence[Row], references: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw bytes against CPU minutes, a line per learner; dashed: lines for comparison."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "nestor"  # the same file from the same numbers
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained")
    curves: dict[str, list[Row]] = defaultdict(list)
    for row in table:
        curves[row.name].append(row)
    order = sorted(curves, key=lambda name: curves[name][-1].learner.change_pct or 0.0)
    for number, name in enumerate(order):
        own = sorted(curves[name], key=lambda row: row.minutes)
        # A little apart, so that intervals do not hide each other.
        x = [row.minutes * 1.015 ** (number - len(order) / 2) for row in own]
        y = [row.learner.change_pct or 0.0 for row in own]
        low, high = zip(*(row.learner.interval or (0.0, 0.0) for row in own), strict=True)
        reach = (
            [a - b for a, b in zip(y, low, strict=True)],
            [b - a for a, b in zip(y, high, strict=True)],
        )
        axes.errorbar(
            x, y, yerr=reach, marker="o", markersize=4, linewidth=1, capsize=2, label=name
        )
    for reference in references:
        if reference["change_pct"] is None:
            continue
        if reference["minutes"] is None:
            axes.axhline(reference["change_pct"], linestyle="--", linewidth=0.8, color="grey")
            axes.annotate(
                str(reference["name"]),
                (1.0, reference["change_pct"]),
                xycoords=("axes fraction", "data"),
                fontsize=8,
                ha="right",
                va="bottom",
            )
        else:
            axes.plot(reference["minutes"], reference["change_pct"], marker="x", color="black")
            axes.annotate(
                f"{reference['name']}", (reference["minutes"], reference["change_pct"]), fontsize=8
            )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    ticks = sorted({row.minutes for row in table})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("CPU minutes of training (searches: for all programs together)")
    axes.set_ylabel("held-out linked bytes against stock, per cent")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Print, and draw what was asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table = rows(options.out)
    if not table:
        parser.error(f"{options.out} holds no judged runs: run 'benchmarks.learners' first")
    path = options.out / REFERENCES
    references = json.loads(path.read_text()) if path.exists() else []
    for row in table:
        print(line(row))
    for reference in references:
        minutes = f"{reference['minutes']:g}" if reference["minutes"] else ""
        print(f"{reference['name']:17}{minutes:>4} {reference['change_pct'] or 0.0:+7.2f} %")
    compilers, learning = cost(options.out)
    print(
        f"training took {compilers:.0f} CPU-minutes of compilers, by the price list, and"
        f" {learning:.0f} of learning (a longer run goes on where a shorter one ended)"
    )
    if options.json:
        content = {
            "machine": describe(find()),
            "origin": origin(options.out),
            "cpu_minutes": {"compilers": compilers, "learning": learning},
            "learners": [asdict(row) for row in table],
            "references": references,
        }
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    if options.figure:
        draw(table, references, options.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
