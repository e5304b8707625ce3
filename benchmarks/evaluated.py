"""What policies do to programs, by link mode and language: a table of ``nestor evaluate --json``.

    nestor evaluate --policy shipped --mode gc no-gc icf --corpus CORPUS --json > own.json
    python -m benchmarks.evaluated 'shipped=own.json' [NAME=FILE …] [--least 10000] --json FILE

NAME is what the policy is called in the table. Programs of fewer than ``--least`` read-only bytes
under stock are left out of the means, and named if they grew.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import record
from nestor.change import change_pct


def rows(name: str, evaluation: Mapping[str, Any], least: float) -> Iterator[list[object]]:
    """Yield a row for each language of which a program is not tiny."""
    built = [p for p in evaluation["programs"] if p["stock"] and p["policy"]]
    for language in sorted({program["language"] for program in built}):
        own = [p for p in built if p["language"] == language]
        judged = {p["name"]: _changes(p) for p in own if p["stock"]["linked"] >= least}
        grown = [p["name"] for p in own if p["name"] not in judged and _changes(p)[0] > 0]
        if not judged:
            continue
        worst = max(judged, key=lambda program: judged[program][0])
        most = max(judged, key=lambda program: judged[program][1])
        yield [
            name,
            evaluation["link_mode"],
            language,
            len(judged),
            record.mean_changes([*judged.values()]),
            sum(linked > 0 for linked, _ in judged.values()),
            worst,
            list(judged[worst]),
            most,
            judged[most][1],
            ", ".join(grown) or "none",
        ]


def _changes(program: Mapping[str, Any]) -> tuple[float, float]:
    """Return the change of read-only bytes and of code in per cent."""
    stock, policy = program["stock"], program["policy"]
    return change_pct(stock["linked"], policy["linked"]), change_pct(stock["text"], policy["text"])


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, and write it to a result file if one is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--least", type=float, default=10_000, help="read-only bytes under stock")
    parser.add_argument("--about", default="Policies by link mode and language.")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(words)
    found: list[list[object]] = []
    for word in options.files:
        name, separator, path = word.partition("=")
        if not separator:
            parser.error(f"{word!r} is not NAME=FILE")
        for evaluation in json.loads(Path(path).read_text())["evaluations"]:
            found += rows(name, evaluation, options.least)
    columns = [(title, "{}") for title in ("policy", "link mode", "language", "programs")]
    columns += [("read-only bytes / code, mean", record.CHANGES), ("larger", "{}"),
                ("worst", "{}"), ("its change", record.CHANGES),
                ("worst in code", "{}"), ("its code", "{:+.2f} %"),
                ("larger of the tiny ones", "{}")]  # fmt: skip
    tables = {"policies": record.table(columns, found)}
    record.publish(options.json, options.about, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
