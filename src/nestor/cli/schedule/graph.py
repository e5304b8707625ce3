"""``nestor schedule graph``: the composition of schedules as a picture."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import tyro

from nestor.cli.console import print_json
from nestor.cli.options import OutputFile
from nestor.cli.schedule.common import open_library


@dataclass(frozen=True)
class Graph:
    """Show of which steps schedules are composed, and how much they share.

    Examples:
        nestor schedule graph
        nestor schedule graph matmul rows --format svg --out schedules.svg
    """

    schedules: tyro.conf.Positional[tuple[str, ...]] = ()
    """Schedules by name (default: all pipelines)."""
    library: tuple[Path, ...] = ()
    """Files or folders with schedules of your own."""
    format: Literal["text", "dot", "svg"] = "text"
    """Indented lines, the language of Graphviz, or a picture."""
    out: OutputFile | None = None
    """Where to write (default: standard output)."""
    json: bool = False
    """Print the edges and what is shared as JSON."""

    def run(self) -> int:
        """Print or write; errors are raised."""
        import sys

        from nestor.files import write_atomically
        from nestor.schedules.language import graph

        library = open_library(self.library)
        names = list(self.schedules) or [s.name for s in library.pipelines()]
        if self.json:
            users = graph.users_of(library, names)
            total = graph.sharing(library, names)
            print_json(
                {
                    "edges": {n: [i.callee for i in library.sequences[n].includes] for n in users},
                    "pipelines_of": users,
                    "sharing": asdict(total) | {"saved": total.saved},
                }
            )
            return 0
        draw = {"text": graph.as_text, "dot": graph.as_dot, "svg": graph.as_svg}[self.format]
        text = draw(library, names)
        if self.out is None:
            sys.stdout.write(text)
        else:
            write_atomically(self.out, text)
        return 0
