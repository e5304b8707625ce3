"""Count how often the functions of programs are called in their profile runs, under stock."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nestor.build.binary import link_binaries
from nestor.build.build import Binary, Job
from nestor.compiler.objects import aliases
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.evaluate.result import Failure
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.workload.callgrind import measure
from nestor.workload.calls import add_calls, read_calls
from nestor.workload.counts import Measurement, sum_of


@dataclass(frozen=True)
class CountedCalls:
    """What the file of calls has of the programs that were chosen."""

    programs: Mapping[str, Mapping[str, int]]
    """Calls by program and symbol."""
    kept: tuple[str, ...]
    """Programs whose calls were there already."""
    failures: tuple[Failure, ...]


def count_calls(
    pool: Pool, programs: Sequence[Program], *, fresh: bool = False, progress: Progress = silent
) -> CountedCalls:
    """Run the profile run of each program under callgrind, and write its calls into the corpus.

    A few programs at a time are built and run, and each is written when its run has ended. So an
    interrupted command loses little, and the same call goes on from there.

    :param fresh: also count programs whose calls are there already.
    :raises CorpusError: if the file of calls holds something else.
    """
    there = read_calls(pool.corpus.root)
    missing = [program for program in programs if fresh or program.name not in there]
    failures: list[Failure] = []
    together = max(1, pool.jobs)

    def one(binary: Binary) -> Failure | None:
        return _count(pool, binary)

    for done in range(0, len(missing), together):
        progress("Counting calls", done, len(missing))
        jobs = [Job(program, "gc") for program in missing[done : done + together]]
        binaries = link_binaries(pool, jobs)
        failures += [failure for failure in pool.map(one, binaries) if failure is not None]
    progress("Counting calls", len(missing), len(missing))
    after = read_calls(pool.corpus.root)
    failed = {failure.what for failure in failures}
    return CountedCalls(
        {p.name: after[p.name] for p in programs if p.name not in failed},
        tuple(program.name for program in programs if program not in missing),
        tuple(failures),
    )


def calls_of(measurement: Measurement, binary: Path) -> dict[str, int]:
    """Return how often each function was called in a run, by symbol.

    Code with several names has the calls under each of them: callgrind reports one, such as that of
    the complete constructor, and LLVM may have compiled the function under the other.

    :param binary: the program that ran.
    :raises ObjectError: if the symbols of ``binary`` cannot be read.
    """
    names = aliases(binary)
    total: Counter[str] = Counter()
    for symbol, function in measurement.functions.items():
        # Of code without a symbol callgrind gives the address: it is no function of a module.
        for name in names.get(symbol, ()):
            total[name] += function.calls
    return {name: calls for name, calls in sorted(total.items()) if calls}


def _count(pool: Pool, binary: Binary) -> Failure | None:
    """Run one program and write its calls; return why there are none."""
    program = binary.job.program
    if binary.digest is None:
        return Failure(program.name, "build", binary.failure or "not built")
    path = pool.objects.path(binary.digest)
    runs = () if program.workload is None else program.workload.profile
    try:
        measured = (measure(pool.corpus, program, path, r, pool.plugin.toolchain) for r in runs)
        calls = calls_of(sum_of(measured), path)
    except NestorError as error:
        return Failure(program.name, "profile run", str(error))
    add_calls(pool.corpus.root, program.name, calls)
    return None
