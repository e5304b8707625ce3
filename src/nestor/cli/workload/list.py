"""``nestor workload list``: which programs of a corpus have a workload."""

from dataclasses import asdict, dataclass
from pathlib import Path

import tyro
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import print_json, stdout
from nestor.corpus import store


@dataclass(frozen=True)
class List:
    """List the programs of a corpus that have a workload, with their runs. Nothing is run.

    Examples:
        nestor workload list corpus/speed
        nestor workload list corpus/speed --json
    """

    directory: tyro.conf.Positional[Path]
    """The corpus."""
    json: bool = False
    """Print as JSON."""

    def run(self) -> int:
        """Print; errors are raised."""
        from nestor.evaluate.workloads import require_workloads

        corpus = store.load(self.directory)
        rows = [
            (p, p.workload, corpus.project(p.project))
            for p in require_workloads(corpus, corpus.programs)
            if p.workload is not None
        ]
        if self.json:
            print_json(
                [
                    {
                        "program": program.name,
                        "split": project.split,
                        "style": project.style,
                        "language": program.language,
                        "modules": len(program.modules),
                        **asdict(workload),
                    }
                    for program, workload, project in rows
                ]
            )
            return 0
        table = Table(
            "program", "split", "style", "modules", "measured", "for profiles", box=SIMPLE
        )
        for program, workload, project in sorted(rows, key=lambda row: row[2].split):
            table.add_row(
                escape(program.name),
                project.split,
                escape(project.style),
                str(len(program.modules)),
                escape(" ".join(workload.measure)),
                escape("\n".join(map(" ".join, workload.profile))),
            )
        stdout.print(table)
        return 0
