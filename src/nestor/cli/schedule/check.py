"""``nestor schedule check``: what is wrong with schedules."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from nestor.cli.console import print_json, print_line, stdout
from nestor.cli.schedule.common import open_library


@dataclass(frozen=True)
class Check:
    """Check schedules against the installed MLIR.

    Looks at operations, types, pass names and their options, signatures of includes, circles,
    decisions that contradict each other, and uses that are valid but bring mlir-opt down. Each
    finding has its file and line. The exit status is 1 if there is an error.

    Examples:
        nestor schedule check
        nestor schedule check mine.mlir --open
    """

    library: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Files or folders with schedules of your own, checked with the packaged ones."""
    open: bool = False
    """Show the decisions that are open, too."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Check and print; 1 if there is an error."""
        from nestor.schedules.kernel.check import check
        from nestor.schedules.language.check import undecided
        from nestor.schedules.tools import find_tools

        library = open_library(self.library)
        tools = find_tools(self.llvm)
        found = check(library, tools) + (undecided(library) if self.open else [])
        wrong = any(d.severity == "error" for d in found)
        if self.json:
            rows: list[dict[str, Any]] = [
                {
                    "severity": d.severity,
                    "reason": d.reason,
                    "file": str(d.place.file) if d.place else None,
                    "line": d.place.line if d.place else None,
                }
                for d in found
            ]
            sequences = len(library.sequences)
            print_json({"llvm": tools.version, "sequences": sequences, "findings": rows})
        else:
            for diagnosis in found:
                print_line(str(diagnosis))
            errors = sum(d.severity == "error" for d in found)
            stdout.print(
                f"{len(library.sequences)} sequences against MLIR {tools.version}:"
                f" {errors} errors, {sum(d.severity == 'warning' for d in found)} warnings"
            )
        return int(wrong)
