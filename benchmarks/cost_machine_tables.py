"""Put what ``benchmarks.cost_machines`` printed into the tables of the result file.

    python -m benchmarks.cost_machines LABELS --splits random > lines
    python -m benchmarks.cost_machine_tables lines [--state present]
        [--result benchmarks/results/cost_machines.json]

Runs on all labels go to the table ``splits``, where a run of the same machine, split, seed and
state is replaced; runs on few labels go to ``adapted``, each beside the run on all labels with the
same machine and split, in the state ``present``.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from nestor.compiler.toolchain import find

RESULT: Final = Path("benchmarks/results/cost_machines.json")
PRESENT: Final = "present"
SPLITS: Final = {"random": "random", "sequence-disjoint": "new sequences"}
_KEY: Final = 4
"""Cells of a row of ``splits`` that say which run it is."""
_KEY_OF_ADAPTED: Final = 5

_COMMON: Final = (
    ("n", "{:,}"), ("MAPE", "{:.2f} %"), ("median", "{:.2f} %"), ("Kendall", "{:.3f}"),
    ("coverage", "{:.1f} %"),
)  # fmt: skip
COLUMNS: Final = {
    "splits": (
        ("machine", "{}"), ("split", "{}"), ("seed", "{}"), ("state of the fit", "{}"), *_COMMON,
        ("training", "{}"),
    ),
    "adapted": (
        ("machine", "{}"), ("from", "{}"), ("fits", "{}"), ("labels", "{:,}"), ("split", "{}"),
        *_COMMON,
        ("full: MAPE", "{:.2f} %"), ("by full", "{:.2f}"), ("training", "{}"),
    ),
}  # fmt: skip


def rows_with(
    rows: Sequence[Sequence[Any]], runs: Sequence[Mapping[str, Any]], state: str
) -> list[list[Any]]:
    """Return the rows of ``splits`` with those of ``runs`` on all labels added or replaced."""
    found = {tuple(row[:_KEY]): list(row) for row in rows}
    for run in runs:
        if not run["from"]:
            key = (run["machine"], SPLITS[run["split"]], run["seed"], state)
            found[key] = [*key, *_measured(run), f"{run['cpu_seconds']:.0f} CPU-s"]
    machines = list(dict.fromkeys(key[0] for key in found))
    order = {key: place for place, key in enumerate(found)}
    keys = sorted(found, key=lambda k: (machines.index(k[0]), k[1] != "random", k[2], order[k]))
    return [found[key] for key in keys]


def adapted_with(
    rows: Sequence[Sequence[Any]], runs: Sequence[Mapping[str, Any]], full: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Return the rows of ``adapted`` with those of ``runs`` on few labels added or replaced."""
    whole = {tuple(row[:_KEY]): float(row[5]) for row in full}
    found = {tuple(row[:_KEY_OF_ADAPTED]): list(row) for row in rows}
    for run in runs:
        if run["from"]:
            start = " and ".join(sorted(run["from"]))
            key = (run["machine"], start, run["fits"], run["labels"], SPLITS[run["split"]])
            of_all = whole.get((run["machine"], SPLITS[run["split"]], run["seed"], PRESENT))
            found[key] = [
                *key, *_measured(run), of_all,
                None if of_all is None else run["mape"] / of_all, f"{run['cpu_seconds']:.0f} CPU-s",
            ]  # fmt: skip
    machines = list(dict.fromkeys(key[0] for key in found))
    keys = sorted(found, key=lambda k: (k[4] != "random", machines.index(k[0]), k[2]))
    return [found[key] for key in keys]


def _measured(run: Mapping[str, Any]) -> list[Any]:
    return [run["n"], run["mape"], run["median"], run["kendall"], run["coverage"]]


def main() -> None:
    """Read the lines and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("lines", type=Path)
    parser.add_argument("--state", default=PRESENT, help="what the column 'state of the fit' says")
    parser.add_argument("--result", type=Path, default=RESULT)
    words = parser.parse_args()
    runs = [json.loads(line) for line in words.lines.read_text().splitlines() if line[:1] == "{"]
    before = json.loads(words.result.read_text())["tables"] if words.result.exists() else {}
    earlier = {name: before.get(name, {"rows": []})["rows"] for name in COLUMNS}
    rows = {"splits": rows_with(earlier["splits"], runs, words.state)}
    rows["adapted"] = adapted_with(earlier["adapted"], runs, rows["splits"])
    made = {name: record.table(COLUMNS[name], rows[name]) for name in COLUMNS}
    record.write(
        words.result, "Our cost model on several machines.", made, machine.describe(find())
    )


if __name__ == "__main__":
    main()
