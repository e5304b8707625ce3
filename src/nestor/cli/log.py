"""``nestor log``: what a policy was asked and what it answered in one compile."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import print_json, stdout
from nestor.compiler.trajectory_log import EXTRA_TENSORS, Trajectory, read
from nestor.errors import NestorError

_EFFECTS: Final = ("not tried", "inlined", "callee deleted", "failed")


@dataclass(frozen=True)
class Log:
    """Show the trajectory log of one compile: every decision, its site key and its effect.

    The keys can be copied into a file of overrides (docs/reference/formats.md). Names of functions
    are shown if the log was written with -nestor-log-names.

    Examples:
        nestor clang POLICY -- -Oz -c x.cpp -mllvm -nestor-log=x.log -mllvm -nestor-log-names
        nestor log x.log --deviations
        nestor log x.log --json
    """

    file: tyro.conf.Positional[Path]
    """The log."""
    deviations: bool = False
    """Only decisions that differ from the default heuristic's."""
    json: bool = False
    """Print JSON, with all features."""

    def run(self) -> int:
        """Print the log."""
        if not self.file.is_file():
            raise NestorError(f"There is no log {self.file}; compile with -mllvm -nestor-log=FILE.")
        log = read(self.file)
        rows = [_row(log, index) for index in range(len(log))]
        if self.deviations:
            rows = [row for row in rows if row["answer"] != row["default"]]
        if self.json:
            print_json(
                {
                    "decisions": rows,
                    "growth_cap_reached": log.growth_cap_reached,
                    "asked_after_growth_cap": log.asked_after_growth_cap,
                    "stale_overrides": log.stale_overrides,
                }
            )
            return 0
        table = Table(title=f"{len(rows)} of {len(log)} decisions")
        for column in ("site", "caller", "callee", "default", "answer", "logit", "effect"):
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(
                row["site"],
                escape(row["caller"]),
                escape(row["callee"]),
                _verb(row["default"]),
                _verb(row["answer"]) + (" (override)" if row["overridden"] else ""),
                f"{row['logit']:+.3f}",
                row["effect"],
            )
        stdout.print(table)
        if log.growth_cap_reached:
            stdout.print(
                f"the module doubled: {log.asked_after_growth_cap} later sites were not asked"
            )
        return 0


def _row(log: Trajectory, index: int) -> dict[str, Any]:
    record = log.records[index]

    def name(field: str) -> str:
        identity = int(record[field]) % 2**64
        return log.names.get(identity, f"{identity:016x}")

    return {
        "site": f"{int(record['site']) % 2**64:016x}",
        "caller": name("caller"),
        "callee": name("callee"),
        "default": bool(record["inlining_default"]),
        "answer": bool(record["answer"]),
        "logit": float(record["logit"]),
        "log_probability": float(record["log_probability"]),
        "overridden": bool(record["overridden"]),
        "effect": _EFFECTS[int(record["effect"])],
        "features": {n: record[n].item() for n in log.features if n not in EXTRA_TENSORS},
    }


def _verb(inline: bool) -> str:
    return "inline" if inline else "keep"
