"""Does a program built under a policy still do what the stock build does, in a short run?

The runs are those that the corpus has (``corpus.smoke``). They execute foreign code, so they
happen only when a user wants them.
"""

from collections.abc import Sequence
from pathlib import Path

from nestor.compiler.process import Limits
from nestor.corpus.model import Corpus, Program
from nestor.evaluate.result import Failure
from nestor.workload.running import Run, run_program


def smoke_run(
    corpus: Corpus,
    program: Program,
    binary: Path,
    limits: Limits | None = None,
    *,
    under: Sequence[str] = (),
) -> Run | None:
    """Run ``binary`` as the corpus says for ``program``; None if it says nothing.

    :param under: a command to run it under, such as ``valgrind``.
    """
    return run_program(corpus, program, binary, program.smoke, limits, under=under)


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
