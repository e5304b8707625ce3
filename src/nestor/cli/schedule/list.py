"""``nestor schedule list``: which schedules there are."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import print_json, stdout
from nestor.cli.schedule.common import open_library


@dataclass(frozen=True)
class List:
    """List the pipelines of the packaged library, with the decisions that they leave open.

    Examples:
        nestor schedule list
        nestor schedule list --steps
        nestor schedule list mine.mlir --json
    """

    library: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Files or folders with schedules of your own, besides the packaged ones."""
    steps: bool = False
    """List the steps too, from which pipelines are composed."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print; errors are raised."""
        from nestor.schedules.language.linking import decisions_of

        library = open_library(self.library)
        pipelines = library.pipelines()
        rest = sorted(
            (s for s in library.sequences.values() if not s.pipeline), key=lambda s: s.name
        )
        rows = [*pipelines, *(rest if self.steps else ())]
        decided = {
            s.name: (decisions_of(library, s.name) if s.pipeline else list(s.decisions))
            for s in rows
        }
        if self.json:
            print_json(
                [
                    {
                        "name": s.name,
                        "pipeline": s.pipeline,
                        "about": s.about,
                        "file": str(s.place.file),
                        "line": s.place.line,
                        "includes": [i.callee for i in s.includes],
                        "decisions": {d.name: list(d.options) for d in decided[s.name]},
                    }
                    for s in rows
                ]
            )
            return 0
        table = Table("schedule", "what it does", "decisions", box=SIMPLE)
        for sequence in rows:
            names = ", ".join(d.name for d in decided[sequence.name])
            table.add_row(escape(sequence.name), escape(sequence.about), escape(names))
        stdout.print(table)
        return 0
