"""Tables made of the result files that benchmarks write in a form of their own.

A result file holds ``tables``, which :mod:`benchmarks.tables` reads as they are, or something else,
of which a function here makes a table (:data:`TABLES`).
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

RESULTS: Final = Path(__file__).resolve().parent / "results"
Table = Mapping[str, Any]
"""``columns``: pairs of title and format, and ``rows``: lists of as many values."""


class StaleMarkError(ValueError):
    """A mark names something that no result file holds."""


@cache
def result(name: str) -> Any:
    """Return the content of one result file."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise StaleMarkError(f"There is no benchmarks/results/{name}.json.")
    return json.loads(path.read_text())


def cell(value: Any, form: str) -> str:
    """Return a value as it stands in a page; text stands as it is, nothing as an empty cell.

    :param value: A number, several numbers of one cell, text or None.
    :param form: A format string for the numbers, such as ``{:+.2f} %``.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        quoted = value.split("`")  # what stands between backticks is code
        quoted[::2] = [re.sub(r"(?<= )-(?=\d)", "−", text) for text in quoted[::2]]
        return "`".join(quoted)
    text = form.format(*value) if isinstance(value, list) else form.format(value)
    return text.replace("-", "−")


def _packaged() -> Table:
    """Return the two packaged policies side by side, link mode gc."""
    rows = []
    for name, column in (("shipped", "gc"), ("distilled", "gc, summary"), ("distilled", "gc")):
        content = result(f"policy_{name}")["tables"]["groups"]
        titles = [title for title, _ in content["columns"]]
        way = " with a summary" if "summary" in column else " without" if name != "shipped" else ""
        rows.append([f"`{name}`{way}", *(row[titles.index(column)] for row in content["rows"])])
    groups = [str(row[0]) for row in result("policy_shipped")["tables"]["groups"]["rows"]]
    form = "{:+.2f} / {:+.2f}"
    return {"columns": [["policy", "{}"], *([g, form] for g in groups)], "rows": rows}


_LEARNERS: Final = {
    "cma": "CMA-ES, linear, 9 features",
    "ars": "augmented random search, linear, 9 features",
    "ppo": "PPO",
    "ppo-estimate": "PPO scored by predicted sizes",
    "dqn": "DQN",
    "reinforce": "REINFORCE",
    "best-of": "imitation of the best",
    "es": "guarded evolution strategies",
    "ppo-mlgo": "PPO as MLGO published it",
    "ppo-module": "PPO, credit by the module's total",
}
"""The learners of learners.json, in the order of the table."""


def _learners() -> Table:
    """Return held-out linked bytes by learner and budget, a number for each seed."""
    found = {(row["name"], row["minutes"]): row for row in result("learners")["learners"]}
    rows = []
    for name, title in _LEARNERS.items():
        row: list[Any] = [title]
        for minutes in (5.0, 15.0, 60.0):
            run = found.get((name, minutes))
            row.append(run and ", ".join(cell(v, "{:+.2f}") for v in run["by_seed"]))
            row.append(run and run["worst"][1])
        rows.append(row)
    columns: list[list[str]] = [["learner", "{}"]]
    for minutes in (5, 15, 60):
        columns += [[f"{minutes} CPU minutes, %", "{}"], ["worst program", "{:+.2f} %"]]
    return {"columns": columns, "rows": rows}


def _references() -> Table:
    """Return what the learners are compared with."""
    rows = [
        [r["name"], r["minutes"] and f"{r['minutes']:g}", r["change_pct"]]
        for r in result("learners")["references"]
    ]
    columns = [
        ["policy or search", "{}"],
        ["CPU minutes for all programs", "{}"],
        ["change", "{:+.2f} %"],
    ]
    return {"columns": columns, "rows": rows}


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _cost_models(split: str) -> Table:
    """Return the cost models beside each other on one split: stable rows, means over the seeds."""
    content = result("cost_models")
    runs = [run for run in content["results"] if run["split"] == split]
    rows = []
    for model in dict.fromkeys(run["model"] for run in runs):
        own = [run for run in runs if run["model"] == model]
        tests = [run["test"] for run in own]
        stable = [test["stable_only"] for test in tests]
        speed = content["speed"].get(model, {}).get("blocks_per_cpu_second")
        rows.append(
            [
                model,
                len(own),
                _mean([s["n"] for s in stable]),
                [_mean([s["mape"] for s in stable])]
                + [_mean([t["mape_interval"][end] for t in tests]) for end in (0, 1)],
                *(_mean([s[key] for s in stable]) for key in ("median_ape", "kendall", "spearman")),
                _mean([t["coverage"]["share"] for t in tests]),
                _mean([t["mape"] for t in tests]),
                speed,
                (_mean([run["training"]["cpu_seconds"] for run in own]) or 0) / 60,
            ]
        )
    columns = [
        ["model", "{}"],
        ["seeds", "{}"],
        ["n", "{:,.0f}"],
        ["MAPE % [95 %]", "{:.2f} [{:.2f}, {:.2f}]"],
        ["median %", "{:.2f}"],
        ["Kendall", "{:.3f}"],
        ["Spearman", "{:.3f}"],
        ["in 90 % interval", "{:.1f} %"],
        ["all rows: MAPE %", "{:.2f}"],
        ["blocks per CPU-s", "{:,.0f}"],
        ["training CPU-min", "{:.1f}"],
    ]
    return {"columns": columns, "rows": rows}


def _cost_model_differences() -> Table:
    """Return how many MAPE points each model is above our own, paired on the same rows."""
    found: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in result("cost_models")["own_against"]:
        points = row["mape"]
        found.setdefault((row["model"], row["seed"]), {})[row["split"]] = [
            points[key] for key in ("mean", "low", "high")
        ]
    splits = ("random", "sequence-disjoint")
    form = "{:+.2f} [{:+.2f}, {:+.2f}]"
    rows = [[m, seed, *(by.get(split) for split in splits)] for (m, seed), by in found.items()]
    columns = [["model", "{}"], ["seed", "{}"], *([f"{split} split", form] for split in splits)]
    return {"columns": columns, "rows": rows}


def _measured_labels() -> Table:
    """Return how far the measuring harness repeats its labels."""
    content = result("measure_labels")
    titles = {
        "repeated": "measured again, stable both times",
        "repeated_all": "measured again, all",
        "against_table": "against the labels of `zen5`",
    }
    keys = ("n", "mean", "median", "p95", "above_5")
    rows = [[title, *(content[part][key] for key in keys)] for part, title in titles.items()]
    return {
        "columns": [
            ["blocks", "{}"],
            ["n", "{:,}"],
            ["mean", "{:.2f} %"],
            ["median", "{:.2f} %"],
            ["95 % of blocks below", "{:.2f} %"],
            ["over 5 %", "{:.1f} %"],
        ],
        "rows": rows,
    }


def _mutants() -> Table:
    """Return how many changes of the update rules the tests notice, by file."""
    content = result("mutants")
    counted = {f"`{file}`": counts for file, counts in content["files"].items()}
    run, every = content["mutants"], content.get("of", content["mutants"])
    sample = f" (a sample: {run:,} of {every:,})" if run < every else ""
    counted[f"**all**{sample}"] = [content["caught"], run]
    rows = [[name, n, caught, 100 * caught / n] for name, (caught, n) in counted.items()]
    return {
        "columns": [
            ["file of `learn/`", "{}"],
            ["mutants", "{:,}"],
            ["caught", "{:,}"],
            ["share caught", "{:.1f} %"],
        ],
        "rows": rows,
    }


def _commands() -> Table:
    """Return the commands of the command line with their one-line summaries."""
    from nestor.cli.commands import COMMANDS, PASS_THROUGH

    rows = [[f"`nestor {n}`", c.summary] for n, c in (COMMANDS | PASS_THROUGH).items()]
    return {"columns": [["command", "{}"], ["what it does", "{}"]], "rows": rows}


TABLES: Final[Mapping[str, Callable[[], Table]]] = {
    "packaged_policies": _packaged,
    "learners": _learners,
    "learners.references": _references,
    "cost_models.random": lambda: _cost_models("random"),
    "cost_models.sequence-disjoint": lambda: _cost_models("sequence-disjoint"),
    "cost_models.differences": _cost_model_differences,
    "measure_labels": _measured_labels,
    "mutants": _mutants,
    "commands": _commands,
}
"""Tables that are made from result files in a form of their own, or from the code."""
