"""How many allocations of a hot function can be tried in a second of CPU time?

    python -m benchmarks.regalloc_trials CORPUS [--functions N] [--trials N] [--json FILE]

CORPUS is a codegen corpus of the tier speed with profiles ('nestor corpus codegen --profile').
Of the functions that make up 97 % of the programs' cost and in which the allocator asks what to
evict, N are drawn. The module of each is compiled twice without a search and once with one of that
function alone; the search's trials are divided by the CPU time that it adds.
"""

import argparse
import random
import statistics
from pathlib import Path

from benchmarks import machine, record
from benchmarks.regalloc_hot import Hot, compile_only, hot_functions, open_pool, stock_costs
from nestor.corpus import store
from nestor.regalloc.outcome import ModuleCost
from nestor.rollout.local_pool import LocalPool


def rate(pool: LocalPool, hot: Hot, cost: ModuleCost, trials: int) -> float | None:
    """Return the trials a CPU-second; None where the search ends at once."""
    unit, only = pool.corpus.module(hot.unit), {hot.function.id}
    default = ["-nestor-eviction=default"]
    without = [compile_only(pool.place, unit, cost, only, default) for _ in range(2)]
    search = [f"-nestor-allocation-search={trials}"]
    done = compile_only(pool.place, unit, cost, only, search)
    tried = sum(function.trials for function in done.functions.values())
    added = done.cpu_seconds - min(each.cpu_seconds for each in without)
    return tried / added if tried >= trials / 3 and added > 0 else None


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--functions", type=int, default=60)
    parser.add_argument("--trials", type=int, default=60, help="of each function")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    corpus = store.load(options.corpus)
    programs = [program for program in corpus.programs if program.workload]
    with open_pool(corpus, "regalloc-eviction", 2) as pool:
        costs = stock_costs(pool, programs)
        every = {
            (hot.unit, hot.function.id): hot
            for program in programs
            for hot in hot_functions(program, costs)
            if hot.function.questions
        }
        drawn = random.Random(1).sample(sorted(every), min(options.functions, len(every)))
        found = [rate(pool, every[key], costs[key[0]], options.trials) for key in drawn]
        toolchain = pool.plugin.toolchain
    rates = sorted(value for value in found if value is not None)
    low, middle, high = statistics.quantiles(rates, n=4)
    columns = [("hot functions", "{:,}"), ("drawn", "{}"), ("searched", "{}")]
    columns += [(f"trials a CPU-second, {title}", "{:.0f}") for title in ("median", "quartile")]
    columns.append(("upper quartile", "{:.0f}"))
    row = [len(every), len(drawn), len(rates), middle, low, high]
    for (title, form), cell in zip(columns, row, strict=True):
        print(f"{title}: {form.format(cell)}")
    if options.json:
        table = record.table(columns, [row])
        about = "What the plugin does to register allocation."
        record.write(options.json, about, {"trials": table}, machine.describe(toolchain))


if __name__ == "__main__":
    main()
