"""How long commands take to start, as multiples of Python's own start.

    python -m benchmarks.startup [--runs 20] [--json benchmarks/results/startup.json]

Prints for each command the median of CPU seconds (user and system) and of wall-clock seconds, and
the ratio of its CPU time to that of ``python -c pass`` in the same interpreter. Commands alternate,
so that a busy moment of the machine falls on all of them. The first round is not counted: it fills
the caches of files, and ``nestor flags`` checks the policy and the compiler. On a quiet machine
each should take at most 0.3 s; the ratio is what to compare between machines.
``tests/cli/test_startup.py`` checks what is imported.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine, record
from benchmarks.compile_cpu import children_cpu_seconds
from nestor.compiler.toolchain import find

_NESTOR = "from nestor.cli.start import entry; entry()"
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "nestor --help": ["-c", _NESTOR, "--help"],
    "nestor cc --version": ["-c", _NESTOR, "cc", "--version"],
    "nestor flags shipped": ["-c", _NESTOR, "flags", "shipped"],
    "nestor corpus capture --help": ["-c", _NESTOR, "corpus", "capture", "--help"],
}


def measure(words: Sequence[str]) -> tuple[float, float]:
    """Run one command and return its CPU and wall-clock seconds."""
    before, start = children_cpu_seconds(), time.perf_counter()
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    return children_cpu_seconds() - before, time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="times that each command runs")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    runs = options.runs
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for number in range(runs + 1):
        for name, words in COMMANDS.items():
            sample = measure(words)
            if number:
                samples[name].append(sample)
    reference = statistics.median(cpu for cpu, _ in samples["python -c pass"])
    print(f"{'command':32}{'CPU s':>8}{'wall s':>8}{'ratio':>8}")
    rows = []
    for name, pairs in samples.items():
        cpu, wall = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:32}{cpu:8.3f}{wall:8.3f}{cpu / reference:8.1f}")
        rows.append([f"`{name}`", cpu, cpu / reference])
    if options.json is not None:
        columns = [("command", "{}"), ("CPU seconds", "{:.3f}"), ("times Python's own", "{:.1f}")]
        about = "CPU time in which commands start, and as multiples of python -c pass; medians."
        tables = {"startup": record.table(columns, rows)}
        record.write(options.json, about, tables, machine.describe(find(None)))


if __name__ == "__main__":
    main()
