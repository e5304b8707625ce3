"""One run of a program of a corpus, in a folder of its own: how it ended and what it left."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.process import Limits, Outcome, run
from nestor.corpus.model import Corpus, Program
from nestor.corpus.smoke import prepare
from nestor.temporary import temporary_folder


@dataclass(frozen=True)
class Run:
    """One run of a program."""

    outcome: Outcome
    left: str
    """SHA-256 of its standard output and of the names and contents of the files around it."""


def run_program(
    corpus: Corpus,
    program: Program,
    binary: Path,
    words: Sequence[str],
    limits: Limits | None = None,
    *,
    under: Sequence[str] = (),
    beside: Sequence[Path] = (),
) -> Run | None:
    """Run ``binary`` with the arguments ``words``; None if there are none.

    The run has a folder and a name of its own, the same for every binary of the program.

    :param words: arguments as :func:`nestor.corpus.smoke.prepare` takes them.
    :param under: a command to run it under, such as ``valgrind``.
    :param beside: files that are put into the folder ``../bin`` of the run, where the program is.
    """
    with temporary_folder("run") as text:
        folder = Path(text) / "run"
        prepared = prepare(corpus, program, folder, words)
        if prepared is None:
            return None
        own = Path("..") / "bin" / program.name.rpartition("/")[2]
        (Path(text) / "bin").mkdir()
        shutil.copyfile(binary, folder / own)
        (folder / own).chmod(0o755)
        for file in beside:
            shutil.copyfile(file, Path(text) / "bin" / file.name)
        output = Path(text) / "stdout"
        outcome = run(
            [*under, str(own), *prepared.arguments],
            limits,
            cwd=folder,
            stdin=prepared.stdin,
            stdout=output,
        )
        left = hashlib.sha256()
        for file in [output, *sorted(p for p in folder.rglob("*") if p.is_file())]:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            left.update(f"{file.relative_to(text)}\0{content}\0".encode())
    return Run(outcome, left.hexdigest())
