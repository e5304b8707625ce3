"""How many tests and compiles does it take to find decisions that were planted?

    python -m benchmarks.bisect CORPUS --program ninja [--policy shipped] [--seeds 20]
        [--culprits 1 3] [--json benchmarks/results/bisect.json]

For each seed decisions of the policy are drawn, and the program is called bad if all of them are
taken: by the bad objects, or by overrides that replay them. The search knows nothing of that and
compiles as it always does; only the command that a user would give is left out. Beside it stands
delta debugging (Zeller and Hildebrandt, TSE 2002) over all decisions at once, counted on the same
culprits without any compile: the modules that each of its tests would compile are counted instead.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.machine import describe
from nestor.bisect.bisect import bisect
from nestor.bisect.check import Verdict
from nestor.bisect.compiled import CompiledModules, Modules
from nestor.cli.setup import program_named
from nestor.compiler import toolchain as toolchains
from nestor.compiler.plugin import ensure_plugin
from nestor.corpus import store
from nestor.policy.names import DEFAULT
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool, PoolSettings

Decision = tuple[str, str, str]
"""Module, the words of the key that replays it, and of the one that reverts it."""


class Planted:
    """Calls a program bad if all culprits are taken in it."""

    def __init__(self, culprits: Sequence[Decision]) -> None:
        self.culprits = culprits
        self.tests = 0
        self._known: set[tuple[str | None, ...]] = set()

    def verdict(self, modules: Modules, *, again: bool = False) -> Verdict:
        """Look at what each culprit's module was compiled under; equal programs count once."""
        program = tuple(done.object for done in modules.values())
        self.tests += again or program not in self._known
        self._known.add(program)
        return Verdict.BAD if all(self._taken(modules, c) for c in self.culprits) else Verdict.GOOD

    @staticmethod
    def _taken(modules: Modules, culprit: Decision) -> bool:
        name, replay, revert = culprit
        request = modules[name].request
        text = request.overrides or ""
        default = request.policy is None or request.policy.policy is None
        return f"{replay} " in text if default else f"{revert} " not in text


def delta_debugging(size: int, module_of: Sequence[str], culprits: set[int]) -> tuple[int, int]:
    """Return tests and module compiles of ddmin over decisions by number."""
    current, parts, tests, compiles = list(range(size)), 2, 0, 0
    seen: dict[frozenset[int], bool] = {}
    compiled: set[tuple[str, frozenset[int]]] = set()

    def fails(chosen: Sequence[int]) -> bool:
        nonlocal tests, compiles
        key = frozenset(chosen)
        if key not in seen:
            tests += 1
            by_module: dict[str, set[int]] = {}
            for number in key:
                by_module.setdefault(module_of[number], set()).add(number)
            new = {(m, frozenset(own)) for m, own in by_module.items()} - compiled
            compiles += len(new)
            compiled.update(new)
            seen[key] = culprits <= key
        return seen[key]

    while len(current) >= 2:
        cut = [
            current[i * len(current) // parts : (i + 1) * len(current) // parts]
            for i in range(parts)
        ]
        subset = next((part for part in cut if fails(part)), None)
        if subset is not None:
            current, parts = subset, 2
            continue
        rests = ([x for x in current if x not in part] for part in map(set, cut))
        rest = next((rest for rest in rests if parts > 2 and fails(rest)), None)
        if rest is not None:
            current, parts = rest, max(parts - 1, 2)
        elif parts < len(current):
            parts = min(len(current), 2 * parts)
        else:
            break
    return tests, compiles


def main() -> int:
    """Search once a seed and number of culprits, and print medians and worst."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--program", required=True)
    parser.add_argument("--policy", default="shipped")
    parser.add_argument("--problem", default="inlining-size")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--culprits", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    problem, toolchain = find_problem(options.problem), toolchains.find()
    corpus = store.load(options.corpus)
    program = program_named(corpus, options.program)
    policy = problem.policy(options.policy)
    columns = [("culprits", "{}"), ("decisions", "{}"), ("found", "{}")]
    columns += [(t, "{:g}") for t in ("tests, median", "worst", "compiles, median", "worst")]
    columns += [(t, "{:.1f}") for t in ("CPU-s, median",)]
    columns += [(t, "{:g}") for t in ("ddmin: tests, median", "compiles, median")]
    rows: list[list[Any]] = []
    with LocalPool(
        problem, corpus, ensure_plugin(toolchain), PoolSettings(jobs=options.jobs)
    ) as pool:
        ends = CompiledModules(pool)
        empty: dict[str, Any] = {name: {} for name in program.modules}
        ends.compile(DEFAULT, empty)
        bad = ends.compile(policy, empty, log=True)
        form = problem.overrides()
        every: list[Decision] = []
        for name, done in bad.items():
            assert done.trajectory is not None
            for deviation in form.deviations(toolchain, done.trajectory):
                replay, revert = (next(iter(x)) for x in (deviation.replay, deviation.revert))
                every.append((name, str(replay), str(revert)))
        for count in options.culprits:
            results: list[tuple[Any, ...]] = []
            for seed in range(options.seeds):
                numbers = random.Random(seed).sample(range(len(every)), count)
                planted = [every[number] for number in numbers]
                found = bisect(ends.copy(), program, policy, Planted(planted))
                keys = {str(key) for key in found.overrides}
                all_found = keys == {revert for _, _, revert in planted}
                flat = delta_debugging(len(every), [name for name, _, _ in every], set(numbers))
                cost = found.cost
                results.append((all_found, cost.tests, cost.compiles, cost.cpu_seconds, *flat))
                print(count, seed, results[-1], file=sys.stderr, flush=True)
            right, tests, compiles, *others = (
                list(column) for column in zip(*results, strict=True)
            )
            median = statistics.median
            row = [count, len(every), f"{sum(right)} of {len(right)}", median(tests), max(tests)]
            rows.append([*row, median(compiles), max(compiles), *map(median, others)])
    print(" | ".join(title for title, _ in columns))
    for row in rows:
        print(" | ".join(f.format(cell) for (_, f), cell in zip(columns, row, strict=True)))
    if options.json:
        about = f"Planted culprits among the decisions of {policy.name} in {program.name}."
        tables = {"planted": {"columns": columns, "rows": rows}}
        record.write(options.json, about, tables, describe(toolchain))
    return 0


if __name__ == "__main__":
    sys.exit(main())
