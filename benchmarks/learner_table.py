"""Print and draw what ``benchmarks.learners`` and ``benchmarks.learner_references`` measured.

    python -m benchmarks.learner_table SOURCE … [--figure FILE.svg] [--json FILE]

A source is the folder OUT of those two, or a table that ``--json`` wrote; what several have is
shown from the first. A row is a learner at a budget: the geometric mean change of held-out linked
bytes against stock, its 95 % interval over seeds and projects, each seed, and the worst program of
any seed. Lines for comparison follow. The figure shows the same: bytes against CPU minutes.
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
from nestor.evaluate.compare_runs import EVALUATION, compare, read_run
from nestor.files import write_atomically


@dataclass(frozen=True)
class Row:
    """A learner at a budget."""

    name: str
    minutes: float
    by_seed: tuple[float, ...]
    """Change of the held-out programs under each seed's policy, in per cent."""
    change_pct: float
    """Their mean."""
    interval: tuple[float, float] | None
    """95 %, over seeds and projects; None where a table does not say."""
    worst: tuple[str, float] | None
    """The program that grew most under any seed."""
    compiles: float | None
    """Mean over the seeds; None where a table does not say."""
    overhead_pct: float | None
    """The part of the CPU that was not compilers; None where a table does not say."""


@dataclass(frozen=True)
class Table:
    """What a source holds."""

    origins: tuple[Mapping[str, Any], ...]
    """The machine, and the digests of corpus, compiler and plugin, for each folder of runs."""
    compilers: float
    """CPU minutes of training, by the price list."""
    learning: float
    """CPU minutes of learning besides."""
    rows: tuple[Row, ...]
    references: tuple[Mapping[str, Any], ...]


def read(source: Path) -> Table:
    """Return the table of a folder of runs, or that of a file.

    :raises NestorError: if there is none, or the runs of one row differ in more than their seeds.
    """
    if source.is_dir():
        path = source / REFERENCES
        references = json.loads(path.read_text()) if path.exists() else []
        own = {"machine": describe(find()), "origin": origin(source)}
        return Table((own,), *cost(source), rows(source), tuple(references))
    try:
        kept = json.loads(source.read_text())
        found = tuple(Row(**{**row, "by_seed": tuple(row["by_seed"])}) for row in kept["learners"])
        spent = kept["cpu_minutes"]
        return Table(
            tuple(kept["origins"]),
            spent["compilers"],
            spent["learning"],
            found,
            tuple(kept["references"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NestorError(
            f"{source} is neither a folder of runs nor a table kept with --json ({error!r})."
        ) from None


def merge(tables: Sequence[Table]) -> tuple[list[Row], list[Mapping[str, Any]]]:
    """Return the rows and references of all, each from the first that has it, sorted."""
    found: dict[tuple[str, float], Row] = {}
    lines: dict[tuple[str, float | None], Mapping[str, Any]] = {}
    for table in tables:
        for row in table.rows:
            found.setdefault((row.name, row.minutes), row)
        for reference in table.references:
            lines.setdefault((reference["name"], reference["minutes"]), reference)
    by_change = sorted(found.values(), key=lambda row: (row.minutes, row.change_pct))
    by_name = sorted(lines.values(), key=lambda own: (own["minutes"] or 0, own["name"]))
    return by_change, by_name


def rows(out: Path) -> tuple[Row, ...]:
    """Return the rows of all judged runs in ``out``.

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
        own = learners[0]
        found.append(
            Row(
                name=name,
                minutes=minutes,
                by_seed=tuple(geomean_of(folder) for folder in folders),
                change_pct=own.change_pct or 0.0,
                interval=own.interval,
                worst=own.worst,
                compiles=own.compiles,
                overhead_pct=own.overhead_pct,
            )
        )
    return tuple(found)


def origin(out: Path) -> dict[str, str]:
    """Return the digests of corpus, compiler and plugin of the runs in ``out``."""
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
    reach = "[{:+.2f}, {:+.2f}]".format(*row.interval) if row.interval else "-"
    seeds = " ".join(f"{change:+.2f}" for change in row.by_seed)
    compiles = f"{row.compiles:,.0f}" if row.compiles is not None else "-"
    own = f"{row.overhead_pct:.0f} %" if row.overhead_pct is not None else "-"
    worst = f"worst {row.worst[1]:+.2f} {row.worst[0]}" if row.worst else ""
    return (
        f"{row.name:17}{row.minutes:4g} {row.change_pct:+7.2f} % {reach:16}"
        f"  seeds {seeds:21}  compiles {compiles:>6}  own {own:>4}  {worst}"
    )


def draw(table: Sequence[Row], references: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw bytes against CPU minutes: a line per learner through the means, a dot per seed.

    Dotted lines are searches of the held-out programs themselves, dashed ones policies.
    """
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "nestor"  # the same file from the same numbers
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained")
    curves: dict[str, list[Row]] = defaultdict(list)
    for row in table:
        curves[row.name].append(row)
    order = sorted(curves, key=lambda name: curves[name][-1].change_pct)
    colours = pyplot.get_cmap("tab20").colors  # type: ignore[attr-defined]
    for number, name in enumerate(order):
        own = sorted(curves[name], key=lambda row: row.minutes)
        # A little apart, so that seeds do not hide each other.
        x = [row.minutes * 1.012 ** (number - len(order) / 2) for row in own]
        colour = colours[2 * number % 20 + 2 * number // 20]
        axes.plot(x, [row.change_pct for row in own], color=colour, linewidth=1, label=name)
        for place, row in zip(x, own, strict=True):
            axes.plot([place] * len(row.by_seed), row.by_seed, ".", color=colour, markersize=5)
    searches: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for reference in references:
        name, minutes, change = (reference[key] for key in ("name", "minutes", "change_pct"))
        if change is None:
            continue
        if minutes is not None:
            searches[name].append((minutes, change))
            continue
        axes.axhline(change, linestyle="--", linewidth=0.8, color="grey")
        axes.annotate(
            name,
            (0.99, change),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            horizontalalignment="right",
            verticalalignment="bottom",
        )
    for marker, (name, points) in zip("x+1234", sorted(searches.items()), strict=False):
        minutes, changes = zip(*sorted(points), strict=True)
        axes.plot(minutes, changes, f"{marker}:", color="black", linewidth=1, label=name)
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
    """Print the table; draw it and write it where the options say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("sources", type=Path, nargs="+", metavar="SOURCE")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        tables = [read(source) for source in options.sources]
    except NestorError as error:
        parser.error(str(error))
    found, references = merge(tables)
    if not found:
        parser.error("no judged runs there: run 'benchmarks.learners' first")
    for row in found:
        print(line(row))
    for reference in references:
        minutes = f"{reference['minutes']:g}" if reference["minutes"] else ""
        print(f"{reference['name']:17}{minutes:>4} {reference['change_pct'] or 0.0:+7.2f} %")
    compilers = sum(table.compilers for table in tables)
    learning = sum(table.learning for table in tables)
    print(
        f"training took {compilers:.0f} CPU-minutes of compilers, by the price list, and"
        f" {learning:.0f} of learning (a longer run goes on where a shorter one ended)"
    )
    if options.json:
        content = {
            "origins": [dict(own) for table in tables for own in table.origins],
            "cpu_minutes": {"compilers": compilers, "learning": learning},
            "learners": [asdict(row) for row in found],
            "references": [dict(reference) for reference in references],
        }
        write_atomically(options.json, json.dumps(content, indent=1) + "\n")
    if options.figure:
        draw(found, references, options.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
