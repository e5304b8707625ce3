"""
What a policy costs: the compiler's whole processor time with the plugin over that without.

    python -m benchmarks.compile_cpu CORPUS [POLICY ...] [--rounds N] [--instructions] [--json]

Only modules whose object is the same as the stock compiler's count, so that the difference is
the price of asking and not of another program. Compiles alternate per module (stock, policy,
stock, policy, ...); each round gives one ratio over all its modules.
"""

import argparse
import json
import re
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.machine import describe
from nestor.compiler.invocation import compile_command
from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.process import environment
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module
from nestor.rollout.policy_file import policy_file

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


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the median."""
    rng = np.random.default_rng(0)
    samples = rng.choice(np.array(ratios), (RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(samples, axis=1), [0.025, 0.975])
    return float(low), float(high)


def measure(
    plugin: Plugin,
    corpus: Corpus,
    modules: list[Module],
    name: str,
    rounds: int,
    *,
    instructions: bool,
) -> dict[str, object]:
    """Compare stock with the policy ``name``."""
    with tempfile.TemporaryDirectory(prefix="nestor-cpu-") as text:
        folder = Path(text)
        flags = plugin.flags(policy_file(name).argument)

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
        ratios, totals = [], np.zeros(2)
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
            totals += round_totals
    return {
        "policy": name,
        "same_objects": len(same),
        "modules": len(modules),
        "rounds": ratios,
        "ratio": statistics.median(ratios) if ratios else None,
        "interval": interval(ratios) if ratios else None,
        "stock_total": float(totals[0]),
        "policy_total": float(totals[1]),
        # Of one module and round, processor time says little; instructions are exact.
        "by_module": by_module if instructions else None,
    }


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
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    toolchain = find()
    plugin, corpus = ensure_plugin(toolchain), store.load(arguments.corpus)
    modules = [m for m in corpus.modules if arguments.modules in m.name]
    rounds = 1 if arguments.instructions else arguments.rounds
    unit = "instructions" if arguments.instructions else "processor seconds"
    machine = describe(toolchain)
    results = [
        measure(plugin, corpus, modules, name, rounds, instructions=arguments.instructions)
        for name in arguments.policies
    ]
    if arguments.json:
        report = {
            "measured": f"{unit} of the compiler, policy over stock",
            "corpus": corpus.digest,
            "plugin": plugin.digest,
            "machine": machine,
            "results": results,
        }
        print(json.dumps(report, indent=1))
        return
    print(f"{unit} of the compiler, policy over stock, where the objects are the same")
    for key, value in machine.items():
        print(f"  {key}: {value}")
    for result in results:
        print(f"{result['policy']}: {result['same_objects']} of {result['modules']} modules")
        rows, span = result["rounds"], result["interval"]
        if isinstance(rows, list) and isinstance(span, tuple):
            print("  rounds: " + " ".join(f"{ratio:.4f}" for ratio in rows))
            print(f"  median {result['ratio']:.4f}, 95 % interval {span[0]:.4f} to {span[1]:.4f}")
        if isinstance(result["by_module"], dict):
            for module, ratio in sorted(result["by_module"].items(), key=lambda item: -item[1]):
                print(f"  {ratio:.4f} {module}")


if __name__ == "__main__":
    main()
