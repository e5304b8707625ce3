"""Does a program built under a policy still do what the stock build does, in a short run?

The runs are those that the corpus has (``corpus.smoke``). They execute foreign code, so they
happen only when a user wants them.
"""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.process import Limits, Outcome, run
from nestor.corpus.model import Corpus, Program
from nestor.corpus.smoke import prepare
from nestor.evaluate.result import Failure
from nestor.temporary import temporary_folder


@dataclass(frozen=True)
class Run:
    """One short run of a program."""

    outcome: Outcome
    left: str
    """SHA-256 of its standard output and of the names and contents of the files around it."""


def smoke_run(
    corpus: Corpus,
    program: Program,
    binary: Path,
    limits: Limits | None = None,
    *,
    under: Sequence[str] = (),
) -> Run | None:
    """Run ``binary`` as the corpus says for ``program``; None if it says nothing.

    The run has a folder and a name of its own, the same for every binary of the program.

    :param under: a command to run it under, such as ``valgrind``.
    """
    with temporary_folder("smoke") as text:
        folder = Path(text) / "run"
        prepared = prepare(corpus, program, folder)
        if prepared is None:
            return None
        own = Path("..") / "bin" / program.name.rpartition("/")[2]
        (Path(text) / "bin").mkdir()
        shutil.copyfile(binary, folder / own)
        (folder / own).chmod(0o755)
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


def compare_runs(
    corpus: Corpus, program: Program, stock: Path, policy: Path, limits: Limits | None = None
) -> Failure | None:
    """Run both builds of ``program``; return what failed or differs, None if nothing did.

    Output counts only if the stock build repeats its own: some programs print the time.
    """
    before = smoke_run(corpus, program, stock, limits)
    after = smoke_run(corpus, program, policy, limits)
    if before is None or after is None:
        return None
    for side, done in (("stock", before), ("policy", after)):
        if not done.outcome.ok:
            return Failure(program.name, side, f"smoke test {done.outcome.reason}")
    if before.left != after.left:
        again = smoke_run(corpus, program, stock, limits)
        if again is not None and again.left == before.left:
            return Failure(program.name, "policy", "smoke test: another output than stock's")
    return None
