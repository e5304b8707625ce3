"""
What a policy costs: the compiler's whole processor time with the plugin over that without.

    python -m benchmarks.compile_cpu CORPUS [POLICY ...] [--rounds N] [--instructions]
        [--json FILE]

Only modules whose object is the same as the stock compiler's count, so that the difference is
the price of asking and not of another program. Compiles alternate per module (stock, policy,
stock, policy, ...); each round gives one ratio over all its modules.
"""

import argparse
import re
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import record
from benchmarks.machine import describe
from benchmarks.pool import PROBLEM
from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.process import environment
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.rollout.ready import stored_policy

RESAMPLES = 10_000


def cost(command: list[str], folder: Path, *, instructions: bool) -> float:
    """Return the processor seconds of ``command``, or the instructions it executes."""
    if not instructions:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environment(), check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    valgrind = [
        "valgrind",
        "--tool=callgrind",
        f"--callgrind-out-file={folder / 'callgrind'}",
        *command,
    ]
    done = subprocess.run(valgrind, env=environment(), capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found, done.stderr
    return float(found[1])


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the median."""
    rng = np.random.default_rng(0)
    samples = rng.choice(np.array(ratios), (RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(samples, axis=1), [0.025, 0.975])
    return float(low), float(high)


@dataclass(frozen=True)
class Result:
    """One policy against stock."""

    policy: str
    same_objects: int
    """Modules of which the object is the stock compiler's; only these count."""
    modules: int
    rounds: tuple[float, ...]
    """Policy over stock."""
    by_module: dict[str, float]
    """The same by module, in the last round."""

    @property
    def median(self) -> float | None:
        """The median over the rounds; None if no module counts."""
        return statistics.median(self.rounds) if self.rounds else None


def measure(
    plugin: Plugin,
    corpus: Corpus,
    modules: list[Module],
    name: str,
    rounds: int,
    *,
    instructions: bool,
) -> Result:
    """Compare stock with the policy ``name``."""
    with tempfile.TemporaryDirectory(prefix="nestor-cpu-") as text:
        folder = Path(text)
        flags = plugin_flags(plugin, stored_policy(name, [PROBLEM.name]).place)

        def command(module: Module, out: str, extra: list[str]) -> list[str]:
            return compile_command(
                plugin.toolchain, module.options, corpus.bitcode(module), folder / out, extra
            )

        same = []
        for module in modules:
            for out, extra in (("stock.o", []), ("policy.o", flags)):
                subprocess.run(command(module, out, extra), env=environment(), check=True)
            if (folder / "stock.o").read_bytes() == (folder / "policy.o").read_bytes():
                same.append(module)
        ratios = []
        by_module: dict[str, float] = {}
        for _ in range(rounds if same else 0):
            round_totals = np.zeros(2)
            for module in same:
                pair = np.array(
                    [
                        cost(command(module, "stock.o", []), folder, instructions=instructions),
                        cost(command(module, "policy.o", flags), folder, instructions=instructions),
                    ]
                )
                by_module[module.name] = float(pair[1] / pair[0])
                round_totals += pair
            ratios.append(float(round_totals[1] / round_totals[0]))
    return Result(name, len(same), len(modules), tuple(ratios), by_module)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("policies", nargs="*", default=["default"], help="names or files")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--instructions",
        action="store_true",
        help="count instructions with callgrind: exact, some 50 times slower, one round",
    )
    parser.add_argument("--modules", default="", help="only modules whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    arguments = parser.parse_args()

    toolchain = find()
    plugin, corpus = ensure_plugin(toolchain), store.load(arguments.corpus)
    modules = [m for m in corpus.modules if arguments.modules in m.name]
    rounds = 1 if arguments.instructions else arguments.rounds
    unit = "instructions" if arguments.instructions else "processor seconds"
    machine = describe(toolchain)
    print(f"{unit} of the compiler, policy over stock, where the objects are the same")
    for key, value in machine.items():
        print(f"  {key}: {value}")
    cells: list[list[object]] = []
    for name in arguments.policies:
        result = measure(plugin, corpus, modules, name, rounds, instructions=arguments.instructions)
        print(f"{result.policy}: {result.same_objects} of {result.modules} modules")
        if result.median is None:
            cells.append([name, None, None, "no object as stock's"])
            continue
        low, high = interval(result.rounds)
        print("  rounds: " + " ".join(f"{ratio:.4f}" for ratio in result.rounds))
        print(f"  median {result.median:.4f}, 95 % interval {low:.4f} to {high:.4f}")
        how = f"{unit}, rounds: {len(result.rounds)}, modules: {result.same_objects}"
        cells.append([name, result.median, f"{low:.3f} to {high:.3f}", how])
        if arguments.instructions:  # of one module and round, processor time says little
            for module, ratio in sorted(result.by_module.items(), key=lambda item: -item[1]):
                print(f"  {ratio:.4f} {module}")
    if arguments.json:
        columns = [("policy", "{}"), ("compile CPU over stock", "{:.3f}×"), ("range", "{}"),
                   ("how", "{}")]  # fmt: skip
        about = "Cost of the compiler, policy over stock, of modules whose objects are equal."
        record.write(arguments.json, about, {"compile_cpu": record.table(columns, cells)}, machine)


if __name__ == "__main__":
    main()
