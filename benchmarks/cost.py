"""
What programs built under a policy execute: instructions of their smoke tests, policy over stock.

    python -m benchmarks.cost CORPUS POLICY [--summary] [--split SPLIT] [--jobs N]
        [--json FILE]

Runs the programs of the corpus: foreign code. Both builds must succeed and leave the same output
and files behind; then callgrind counts the instructions of each (all of the process: start-up
and libraries too). Programs are the held-out ones of at least 80,000 linked stock bytes.
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import LINK, PROBLEM, local_pool, policy_named
from nestor.build.build import Built, Job
from nestor.compiler.process import Limits
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.evaluate.compare import select_programs
from nestor.evaluate.smoke import compare_runs, smoke_run
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool
from nestor.rollout.local_pool import PoolSettings

LEAST_BYTES = 80_000
LIMITS = Limits(seconds=600.0, memory_mib=16_384)
"""For a smoke test; callgrind is some 50 times slower than the machine."""


@dataclass(frozen=True)
class Row:
    """One program."""

    program: str
    stock: int | None
    """Instructions executed."""
    policy: int | None
    failure: str | None

    @property
    def ratio(self) -> float | None:
        """Instructions, policy over stock."""
        return self.policy / self.stock if self.policy and self.stock else None


def instructions(pool: Pool, program: Program, binary: Path) -> int:
    """Return what the smoke test of ``binary`` executes.

    :raises NestorError: if it fails under callgrind.
    """
    with tempfile.TemporaryDirectory(prefix="nestor-cost-") as text:
        log = Path(text) / "log"
        valgrind = [
            *("valgrind", "--tool=callgrind", f"--log-file={log}"),
            f"--callgrind-out-file={text}/profile",
        ]
        run = smoke_run(pool.corpus, program, binary, LIMITS, under=valgrind)
        found = re.search(r"Collected : (\d+)", log.read_text()) if log.exists() else None
        if run is None or not run.outcome.ok or found is None:
            raise NestorError(f"under callgrind: {run.outcome.reason if run else 'not run'}")
    return int(found[1])


def measure(pool: Pool, program: Program, stock: Path, policy: Path) -> Row:
    """Run both builds, then count."""
    failure = compare_runs(pool.corpus, program, stock, policy, LIMITS)
    if failure is not None:
        return Row(program.name, None, None, f"{failure.side}: {failure.reason}")
    try:
        before = instructions(pool, program, stock)
        after = instructions(pool, program, policy)
    except NestorError as error:
        return Row(program.name, None, None, str(error))
    return Row(program.name, before, after, None)


def rows(
    pool: Pool, programs: Sequence[Program], policy: NamedPolicy, *, summary: bool
) -> tuple[list[Row], list[str], list[str]]:
    """Return the measured programs, those without a smoke test and the small ones."""
    summaries = {}
    if summary and PROBLEM.reads_summary(policy.policy):
        summaries = dict(PROBLEM.summaries(pool, programs, ["gc"]))
    stock = LINK.run(pool, [Job(program, "gc", keep=True) for program in programs])
    small = [b for b in stock if b.columns is not None and b.columns["linked"] < LEAST_BYTES]
    without = [b for b in stock if b not in small and not b.job.program.smoke]
    rest = [built for built in stock if built not in small and built not in without]
    jobs = [
        Job(p, "gc", policy, summary=summaries.get((p.name, "gc")), keep=True)
        for p in (built.job.program for built in rest)
    ]
    both = list(zip(rest, LINK.run(pool, jobs), strict=True))
    done = pool.map(lambda pair: _row(pool, *pair), both)
    found = sorted(done, key=lambda r: (r.failure is None, -(r.ratio or 0), r.program))
    return (
        found,
        [built.job.program.name for built in without],
        [built.job.program.name for built in small],
    )


def _row(pool: Pool, stock: Built, policy: Built) -> Row:
    program = stock.job.program
    if stock.binary is None or policy.binary is None:
        return Row(program.name, None, None, stock.failure or policy.failure)
    return measure(pool, program, *map(pool.objects.path, (stock.binary, policy.binary)))


def main() -> int:
    """Measure and print; 1 if a program failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("policy", help="a name or a file")
    parser.add_argument(
        "--summary", action="store_true", help="give the policy a summary of the program"
    )
    parser.add_argument("--split", choices=("train", "validation", "test", "all"))
    parser.add_argument("--jobs", type=int, default=PoolSettings().jobs)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("Counting instructions needs valgrind: install the package valgrind.")

    corpus, policy = store.load(arguments.corpus), policy_named(arguments.policy)
    programs = select_programs(corpus, arguments.split)
    with local_pool(corpus, PoolSettings(jobs=arguments.jobs)) as pool:
        found, without, small = rows(pool, programs, policy, summary=arguments.summary)
        machine = describe(pool.plugin.toolchain)
    counted = [(r.stock, r.policy) for r in found if r.stock and r.policy]
    failures = len(found) - len(counted)
    mean = 1 + geometric_mean_change_pct(*zip(*counted, strict=True)) / 100 if counted else None
    print(f"instructions of smoke tests, {policy.name} over stock")
    for key, value in machine.items():
        print(f"  {key}: {value}")
    for row in found:
        if row.failure is not None:
            print(f"  failed {row.program}: {row.failure}")
        else:
            print(f"  {row.ratio:.4f} {row.program}: {row.policy:,} over {row.stock:,}")
    for reason, names in (("no smoke test", without), (f"under {LEAST_BYTES:,} bytes", small)):
        if names:
            print(f"  {reason}: {', '.join(names)}")
    ending = f"geometric mean {mean:.4f}, programs: {len(counted)}" if mean else "nothing counted"
    print(f"{ending}, {failures} failed")
    if arguments.json:
        cells: list[list[object]] = [[f"mean of {len(counted)} programs", mean]]
        cells += [[row.program, row.ratio] for row in found]
        columns = [("programs", "{}"), ("instructions over stock", "{:.3f}×")]
        about = "Instructions that the programs execute in their smoke tests, policy over stock."
        record.write(arguments.json, about, {"executed": record.table(columns, cells)}, machine)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
