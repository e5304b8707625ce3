"""The runs of ``benchmarks/data/program_runs.toml``: which programs, with which input.

Their inputs are longer than those of workloads, which are made to be run many times.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nestor.corpus.fetch.generated import generate
from nestor.corpus.model import Corpus, Program
from nestor.corpus.smoke import SmokeRun, prepare

LIST: Final = Path(__file__).parent / "data" / "program_runs.toml"


@dataclass(frozen=True)
class ProgramRun:
    """One run of a program of the corpus."""

    program: str
    words: tuple[str, ...]
    """Arguments as :func:`nestor.corpus.smoke.prepare` takes them."""
    inputs: Mapping[str, Mapping[str, Any]]
    """How each input is made that the corpus lacks, by name."""
    untouched: bool
    """Never fitted: judged once, at the end."""
    build: str = ""
    """Which build of the program, of ``benchmarks.program_builds``; empty: the usual one."""

    @property
    def name(self) -> str:
        """Return a name for files."""
        return self.program.replace("/", "_") + (f"@{self.build}" if self.build else "")

    @property
    def project(self) -> str:
        """Return the project: its programs share code, so they are left out together."""
        return self.program.split("/")[0]


def load(path: Path = LIST) -> list[ProgramRun]:
    """Return the list."""
    with path.open("rb") as file:
        rows = tomllib.load(file)["runs"]
    return [
        ProgramRun(
            row["program"],
            tuple(row["words"]),
            row.get("inputs", {}),
            row.get("untouched", False),
        )
        for row in rows
    ]


def prepared(corpus: Corpus, program: Program, run: ProgramRun, folder: Path) -> SmokeRun:
    """Put what a run reads into ``folder`` and return how to run the program there."""
    found = prepare(corpus, program, folder, run.words)
    if found is None:
        raise ValueError(f"{run.program} has no words")
    for name, source in run.inputs.items():
        path = folder / name
        if name in dict(corpus.project(program.project).inputs):
            raise ValueError(f"{run.program}: the workload has a {name}; choose another name")
        if not path.exists():
            path.write_bytes(_content(source, folder))
    return found


def _content(source: Mapping[str, Any], folder: Path) -> bytes:
    if "text" in source:
        return str(source["text"]).encode()
    if "again" in source:  # an input of the workload, so many times in a row
        return (folder / str(source["again"])).read_bytes() * int(source["times"])
    return generate(source["generate"], source["size"], source["seed"])
