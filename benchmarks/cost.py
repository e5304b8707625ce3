"""
What programs built under a policy execute: instructions of their smoke tests, policy over stock.

    python -m benchmarks.cost CORPUS POLICY [--summary] [--split SPLIT] [--jobs N] [--json]

Runs the programs of the corpus: foreign code. Both builds must succeed and leave the same output
and files behind; then callgrind counts the instructions of each (all of the process: start-up
and libraries too). Programs are the held-out ones of at least 80,000 linked stock bytes.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.machine import describe
from nestor.compiler.plugin import ensure_plugin
from nestor.compiler.process import Limits
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.evaluate.compare import select_programs
from nestor.evaluate.smoke import compare_runs, smoke_run
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.rewards.linked_size import link
from nestor.rollout.cache import baselines
from nestor.rollout.policy_file import PolicyFile, policy_file
from nestor.rollout.pool import Pool, PoolSettings
from nestor.rollout.program import compile_program
from nestor.rollout.summaries import reads_program, summaries

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


def build(
    pool: Pool, program: Program, objects: Mapping[str, Path], out: Path
) -> tuple[int, str | None]:
    """Link into ``out``; return the loadable bytes, or why there is no program."""
    linked = link(pool.plugin.toolchain, pool.corpus, program, objects, out=out, limits=pool.limits)
    return (linked.measure.loadable if linked.measure else 0), linked.failure


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
    pool: Pool, programs: Sequence[Program], policy: PolicyFile, folder: Path, *, summary: bool
) -> tuple[list[Row], list[str], list[str]]:
    """Return the measured programs, those without a smoke test and the small ones."""
    modules = tuple(dict.fromkeys(name for p in programs for name in p.modules))
    objects = baselines(pool, tuple(pool.corpus.module(name) for name in modules), None)
    told = {}
    if summary and reads_program(policy.policy):
        told = dict(summaries(pool, programs, ("gc",), folder / "summaries"))
    failed, ready, without, small = [], [], [], []
    for number, program in enumerate(programs):
        own = folder / str(number)
        own.mkdir()
        stock_bytes, why = build(pool, program, objects, own / "stock")
        if why is None and stock_bytes < LEAST_BYTES:
            small.append(program.name)
            continue
        if not program.smoke:
            without.append(program.name)
            continue
        try:
            made = compile_program(
                pool, program, policy, own / "objects", summary=told.get((program.name, "gc"))
            )
            why = why or build(pool, program, made, own / "policy")[1]
        except NestorError as error:
            why = str(error)
        if why is None:
            ready.append((program, own / "stock", own / "policy"))
        else:
            failed.append(Row(program.name, None, None, why))
    done = pool.map(lambda item: measure(pool, *item), ready)
    found = sorted([*failed, *done], key=lambda r: (r.failure is None, -(r.ratio or 0), r.program))
    return found, without, small


def main() -> int:
    """Measure and print; 1 if a program failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("policy", help="a name or a file")
    parser.add_argument("--summary", action="store_true", help="tell the policy of the program")
    parser.add_argument("--split", choices=("train", "validation", "test", "all"))
    parser.add_argument("--jobs", type=int, default=PoolSettings().jobs)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("Counting instructions needs valgrind: install the package valgrind.")

    toolchain = find()
    plugin, corpus = ensure_plugin(toolchain), store.load(arguments.corpus)
    policy = policy_file(arguments.policy)
    programs = select_programs(corpus, arguments.split)
    with (
        tempfile.TemporaryDirectory(prefix="nestor-cost-") as text,
        Pool(corpus, plugin, PoolSettings(jobs=arguments.jobs)) as pool,
    ):
        found, without, small = rows(pool, programs, policy, Path(text), summary=arguments.summary)
    counted = [(r.stock, r.policy) for r in found if r.stock and r.policy]
    failures = len(found) - len(counted)
    mean = 1 + geometric_mean_change_pct(*zip(*counted, strict=True)) / 100 if counted else None
    machine = describe(toolchain)
    if arguments.json:
        report = {
            "measured": "instructions of smoke tests, policy over stock",
            "corpus": corpus.digest,
            "plugin": plugin.digest,
            "policy": {"name": policy.name, "digest": policy.digest},
            "machine": machine,
            "programs": [asdict(r) | {"ratio": r.ratio} for r in found],
            "without_smoke_test": without,
            "too_small": small,
            "failures": failures,
            "geometric_mean": mean,
        }
        print(json.dumps(report, indent=1))
        return 1 if failures else 0
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
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
