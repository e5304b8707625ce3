"""
What a policy costs: the compiler's whole processor time with the plugin over that without.

    python -m benchmarks.compile_cpu CORPUS [POLICY ...] [--problem P] [--rounds N]
        [--instructions] [--table compile_cpu] [--json FILE]

Modules whose object is the same as the stock compiler's say what asking costs; the others say what
another program costs too, and stand in a row of their own. Compiles alternate per module (stock,
policy, stock, policy, ...). A round gives one ratio over all modules of a row; the minimum takes of
each module the shortest compile of all rounds, which a busy machine disturbs least.
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
import numpy.typing as npt

from benchmarks import record
from benchmarks.machine import describe
from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.process import environment
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.problems.inlining_size.plugin_flags import plugin_flags
from nestor.rollout.ready import stored_policy

RESAMPLES = 10_000


def children_cpu_seconds() -> float:
    """Return what all processes that were started and waited for have used.

    Finer than the ticks of :func:`os.times`.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost(command: list[str], folder: Path, *, instructions: bool) -> float:
    """Return the processor seconds of ``command``, or the instructions it executes."""
    if not instructions:
        before = children_cpu_seconds()
        subprocess.run(command, env=environment(), check=True)
        return children_cpu_seconds() - before
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


def median_interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the median."""
    rng = np.random.default_rng(0)
    samples = rng.choice(np.array(ratios), (RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(samples, axis=1), [0.025, 0.975])
    return float(low), float(high)


@dataclass(frozen=True)
class Result:
    """Modules under one policy and under stock."""

    names: tuple[str, ...]
    costs: npt.NDArray[np.float64]
    """``[rounds, modules, 2]``: stock, policy."""

    @property
    def rounds(self) -> list[float]:
        """Policy over stock by round, over all modules."""
        totals = self.costs.sum(axis=1)
        return [float(ratio) for ratio in totals[:, 1] / totals[:, 0]]

    @property
    def minimum(self) -> float:
        """Policy over stock, of each module the cheapest compile of all rounds."""
        stock, policy = self.costs.min(axis=0).sum(axis=0)
        return float(policy / stock)

    def by_module(self) -> dict[str, float]:
        """Return policy over stock, most expensive first."""
        least = self.costs.min(axis=0)
        ratios = dict(zip(self.names, (least[:, 1] / least[:, 0]).tolist(), strict=True))
        return dict(sorted(ratios.items(), key=lambda item: -item[1]))


def measure(
    plugin: Plugin,
    corpus: Corpus,
    modules: list[Module],
    flags: list[str],
    rounds: int,
    *,
    instructions: bool,
) -> dict[str, Result]:
    """Compare stock with ``flags``: modules of which the object is the same, and the others."""
    with tempfile.TemporaryDirectory(prefix="nestor-cpu-") as text:
        folder = Path(text)

        def command(module: Module, out: str, extra: list[str]) -> list[str]:
            return compile_command(
                plugin.toolchain, module.options, corpus.bitcode(module), folder / out, extra
            )

        groups: dict[str, list[Module]] = {"same objects": [], "other objects": []}
        for module in modules:
            for out, extra in (("stock.o", []), ("policy.o", flags)):
                subprocess.run(command(module, out, extra), env=environment(), check=True)
            same = (folder / "stock.o").read_bytes() == (folder / "policy.o").read_bytes()
            groups["same objects" if same else "other objects"].append(module)

        def pair(module: Module) -> list[float]:
            return [
                cost(command(module, out, extra), folder, instructions=instructions)
                for out, extra in (("stock.o", []), ("policy.o", flags))
            ]

        return {
            group: Result(
                tuple(module.name for module in own),
                np.array([[pair(module) for module in own] for _ in range(rounds)]),
            )
            for group, own in groups.items()
            if own
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("policies", nargs="*", default=["default"], help="names or files")
    parser.add_argument(
        "--problem",
        default="inlining-size",
        choices=("inlining-size", "inlining-size-os", "inlining-speed"),
        help="what the policies decide",
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--instructions",
        action="store_true",
        help="count instructions with callgrind: exact, some 50 times slower, one round",
    )
    parser.add_argument("--modules", default="", help="only modules whose name contains this")
    parser.add_argument("--table", default="compile_cpu", help="its name in the result file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    arguments = parser.parse_args()

    toolchain = find()
    plugin, corpus = ensure_plugin(toolchain), store.load(arguments.corpus)
    modules = [m for m in corpus.modules if arguments.modules in m.name]
    rounds = 1 if arguments.instructions else arguments.rounds
    unit = "instructions" if arguments.instructions else "processor seconds"
    machine = describe(toolchain)
    print(f"{unit} of the compiler, policy over stock")
    for key, value in machine.items():
        print(f"  {key}: {value}")
    cells: list[list[object]] = []
    for name in arguments.policies:
        flags = plugin_flags(plugin, stored_policy(name, [arguments.problem]).place)
        found = measure(plugin, corpus, modules, flags, rounds, instructions=arguments.instructions)
        for group, result in found.items():
            low, high = median_interval(result.rounds)
            median = statistics.median(result.rounds)
            print(f"{name}, {group}: {len(result.names)} of {len(modules)} modules")
            print("  rounds: " + " ".join(f"{ratio:.4f}" for ratio in result.rounds))
            print(f"  minimum {result.minimum:.4f}")
            print(f"  median {median:.4f}, 95 % interval {low:.4f} to {high:.4f}")
            how = f"{unit}, rounds: {len(result.rounds)}, modules: {len(result.names)}, {group}"
            cells.append([name, result.minimum, median, f"{low:.3f} to {high:.3f}", how])
            if arguments.instructions:  # of one round, processor time says little by module
                for module, ratio in result.by_module().items():
                    print(f"  {ratio:.4f} {module}")
    if arguments.json:
        columns = [("policy", "{}"), ("compile CPU over stock, minimum", "{:.3f}×"),
                   ("median of rounds", "{:.3f}×"), ("range", "{}"), ("how", "{}")]  # fmt: skip
        about = "Cost of the compiler, policy over stock."
        record.write(
            arguments.json, about, {arguments.table: record.table(columns, cells)}, machine
        )


if __name__ == "__main__":
    main()
