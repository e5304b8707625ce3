"""The tables of ``benchmarks.cost_models``: numbers of many runs side by side, and differences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

import numpy as np

from nestor.cost.blocks.splits import sequence_groups
from nestor.cost.blocks.table import Table
from nestor.cost.contract import Prediction
from nestor.cost.judge import metrics


class Run(Protocol):
    """One model, split and seed."""

    @property
    def model(self) -> str:
        """Its name."""
        ...

    @property
    def split(self) -> str:
        """The name of its split."""
        ...

    @property
    def seed(self) -> int:
        """Of the split and the training."""
        ...


Some = TypeVar("Some", bound=Run)

_NUMBERS = ("mape", "median_ape", "kendall", "spearman")


def report(
    runs: Sequence[Some],
    numbers: Callable[[Some], Mapping[str, Any]],
    predictions: Callable[[Some], tuple[Table, Prediction]],
) -> dict[str, Any]:
    """Return rows of the table, and how our own model differs from every other one."""
    results, differences = [], []
    for run in runs:
        found = numbers(run)
        results.append(dict(found["run"]) | {"training": found["training"], "test": found["test"]})
        same = [r for r in runs if r.model == "own" and (r.split, r.seed) == (run.split, run.seed)]
        if run.model != "own" and same:
            differences.append(
                {"model": run.model, "split": run.split, "seed": run.seed}
                | _difference(predictions(same[0]), predictions(run))
            )
    return {"results": results, "own_against": differences}


def _difference(own: tuple[Table, Prediction], other: tuple[Table, Prediction]) -> dict[str, Any]:
    """Return the paired bootstrap of the other's MAPE minus ours, on stable rows both answer."""
    rows = own[0]
    usable = rows.stable & np.isfinite(own[1].cycles) & np.isfinite(other[1].cycles)
    part = rows.select(usable)
    ours, theirs = (
        metrics.absolute_errors(p.cycles[usable], part.cycles) for p in (own[1], other[1])
    )
    return {"n": len(part), "mape": asdict(metrics.interval(theirs - ours, sequence_groups(part)))}


def markdown(content: Mapping[str, Any]) -> str:
    """Return the report as Markdown: a table for each split, stable rows; means over the seeds."""
    lines: list[str] = []
    splits = list(dict.fromkeys(r["split"] for r in content["results"]))
    for name in splits:
        rows = [r for r in content["results"] if r["split"] == name]
        seeds = sorted({r["seed"] for r in rows})
        lines += [
            f"**{name} split**, stable rows of the test side",
            "",
            "| model | seeds | n | MAPE % [95 %] | median % | Kendall | Spearman"
            " | in 90 % interval | all rows: MAPE % | blocks per CPU-s | training CPU-min |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for model in dict.fromkeys(r["model"] for r in rows):
            lines.append(_row(model, [r for r in rows if r["model"] == model], content["speed"]))
        lines += ["", f"Seeds: {', '.join(map(str, seeds))}.", ""]
        lines += _differences(name, content["own_against"])
    return "\n".join(lines)


def _row(model: str, runs: Sequence[Mapping[str, Any]], speed: Mapping[str, Any]) -> str:
    def mean(values: Sequence[Any]) -> float:
        return float(np.mean([np.nan if v is None else v for v in values]))

    stable = {key: mean([r["test"]["stable_only"][key] for r in runs]) for key in ("n", *_NUMBERS)}
    low, high = (mean([r["test"]["mape_interval"][end] for r in runs]) for end in (0, 1))
    inside = mean([r["test"]["coverage"]["share"] for r in runs])
    every = mean([r["test"]["mape"] for r in runs])
    minutes = mean([r["training"]["cpu_seconds"] for r in runs]) / 60
    rate = speed.get(model, {}).get("blocks_per_cpu_second")
    cells = [
        model,
        f"{len(runs)}",
        f"{stable['n']:,.0f}",
        f"**{stable['mape']:.2f}** [{low:.2f}, {high:.2f}]",
        f"{stable['median_ape']:.2f}",
        f"{stable['kendall']:.3f}",
        f"{stable['spearman']:.3f}",
        f"{inside:.1f} %" if np.isfinite(inside) else "",
        f"{every:.2f}",
        f"{rate:,.0f}" if rate else "",
        f"{minutes:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _differences(split: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    mine = [r for r in rows if r["split"] == split]
    if not mine:
        return []
    lines = [
        "| beside our own model | seed | MAPE points more [95 %, paired] |",
        "|---|---|---|",
    ]
    for row in mine:
        found = row["mape"]
        interval = f"{found['mean']:+.2f} [{found['low']:+.2f}, {found['high']:+.2f}]"
        lines.append(f"| {row['model']} | {row['seed']} | {interval} |")
    return [*lines, ""]
