"""Take the measured cycles of an earlier result, to judge a model that has changed since.

    python -m benchmarks.program_recall benchmarks/results/program_model.json --work FOLDER

Events are simulated, and equal runs have equal counts on every machine; cycles are not. So when the
model or a simulator changes, ``benchmarks.program_model build`` and ``collect`` on any machine,
this, and ``benchmarks.program_judge FOLDER --penalties NAME`` with the name of the machine that
measured say what the change is worth on the same cycles. The result keeps its machine.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks.program_runs import load
from nestor.files import write_atomically
from nestor.program_cost.truth import Cycles

_RECALLED: Final = "recalled.json"


def sessions(row: Mapping[str, Any]) -> list[Cycles]:
    """Return what two sessions measured of the program of a row of the table ``programs``."""
    least = 1e6 * row["million cycles"]
    share = row["kernel"] / 100
    most = least * (1 + row["between sessions"] / 100)
    return [Cycles(cycles, cycles, 1, 0, share, 0) for cycles in (least, most)]


def recall(result: Mapping[str, Any], work: Path) -> int:
    """Write the cycles of ``result`` into ``work``, and return of how many programs."""
    found = result["tables"]["programs"]
    titles = [title for title, _ in found["columns"]]
    rows = {row[0].split()[0]: dict(zip(titles, row, strict=True)) for row in found["rows"]}
    own = [run for run in load() if run.name in rows]
    for run in own:
        for number, cycles in enumerate(sessions(rows[run.name]), 1):
            _write(work / run.name / f"cycles{number}.json", asdict(cycles))
    kept = {key: result[key] for key in ("machine", "null", "left_out")}
    _write(work / _RECALLED, {**kept, "measured": result.get("measured", result["date"])})
    return len(own)


def recalled(work: Path) -> Mapping[str, Any] | None:
    """Return what goes with cycles that were recalled: machine, null, left_out, measured.

    None where they were measured here.
    """
    path = work / _RECALLED
    found: Mapping[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    return found


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(content, indent=2) + "\n")


def main() -> None:
    """Read the command line and write the cycles."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("result", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    words = parser.parse_args()
    count = recall(json.loads(words.result.read_text()), words.work)
    print(f"{words.work}: the cycles of {count} programs")


if __name__ == "__main__":
    main()
