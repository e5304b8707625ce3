"""What changes when events are sampled: thin out counted events, and predict cycles again.

    python -m benchmarks.event_sampling EVENTS.parquet … [--period 1000 100000] [--seeds 5]

A counter that interrupts every P events sees a block with n events n/P times on average. Each table
of events, as 'nestor events' wrote it, is thinned out so (each count becomes P times a draw from
the Poisson distribution of mean n/P), executions by P/100 as stacks of branch records cover more,
and the cycles of the program and of its functions are compared with those of the full counts.
"""

import argparse
from pathlib import Path
from typing import Final

import numpy as np

from nestor.cost.registry import open_model_for
from nestor.events import table as tables
from nestor.events.table import EVENTS, EventTable
from nestor.program_cost import penalties as machines
from nestor.program_cost import weights
from nestor.program_cost.estimate import by_function, estimate
from nestor.program_cost.quantities import quantities

PERIODS: Final = (100, 10_000, 1_000_000)
STACK: Final = 100
"""Blocks on record in a stack of branches, about."""
SMALLEST: Final = 0.01
"""The share of cycles of the functions that are compared."""
_RARE: Final = tuple(name for name in EVENTS if "miss" in name or "mispredict" in name)


def thinned(table: EventTable, period: int, seed: int) -> EventTable:
    """Return a table as sampling with a period would give it."""
    random = np.random.default_rng(seed)
    columns = {}
    stack = max(1, period // STACK)
    seen = random.poisson(table.numbers("executions") / stack) * stack
    ratio = seen / np.maximum(table.numbers("executions"), 1)
    for name in ("executions", *EVENTS):
        if not table.has(name):
            continue
        if name == "executions":
            values = seen
        elif name in _RARE:
            values = random.poisson(table.numbers(name) / period) * period
        else:  # what the code and its executions imply
            values = np.rint(table.numbers(name) * ratio)
        columns[name] = values.astype(np.int64)
    return table.with_columns(columns)


def main() -> None:
    """Read the command line and print the errors of each table and period."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--period", nargs="+", type=int, default=PERIODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--model", default="shipped")
    parser.add_argument("--penalties")
    words = parser.parse_args()
    machine = machines.named(words.penalties)
    model = open_model_for(words.model, None, machine.machine)
    used = weights.packaged(machine.machine)
    for path in words.tables:
        table = tables.read(path)
        full = quantities(table, model, machine)
        whole = estimate(full, used).cycles
        shares = {
            one.function: one.cycles / whole
            for one in by_function(full, used)
            if one.cycles > SMALLEST * whole
        }
        for period in words.period:
            totals, functions = [], []
            for seed in range(words.seeds):
                run = quantities(thinned(table, period, seed), model, machine)
                cycles = estimate(run, used).cycles
                totals.append(abs(cycles / whole - 1))
                own = {one.function: one.cycles / cycles for one in by_function(run, used)}
                functions += [abs(own.get(name, 0) / share - 1) for name, share in shares.items()]
            print(
                f"{path.stem}: period {period:,}: total off by {100 * np.mean(totals):.2f} %,"
                f" shares of {len(shares)} functions by {100 * np.mean(functions):.1f} %"
            )


if __name__ == "__main__":
    main()
