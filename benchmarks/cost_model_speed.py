"""How many blocks our own cost model answers in a second, on one core, decode included.

    python -m benchmarks.cost_model_speed [MODEL]

Measures CPU time of this process, because other work may share the machine: the median of five runs
over the stable blocks of the data set, cold (the cache of answers emptied before) and warm (every
block seen before). ``nestor costmodel evaluate --model llvm-mca`` has the figure of llvm-mca.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from nestor.cost.blocks.table import named
from nestor.cost.model.hybrid import HybridModel
from nestor.cost.model.model_file import load

ROUNDS = 5


def seconds(work: Callable[[], object], before: Callable[[], object]) -> float:
    """Return the median CPU time of ``work``, with ``before`` run before each round."""
    times = []
    for _ in range(ROUNDS):
        before()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def main() -> None:
    """Measure and print."""
    model = load(sys.argv[1] if len(sys.argv) > 1 else "shipped")
    assert isinstance(model, HybridModel)
    table = named("zen5")
    blocks = table.select(np.flatnonzero(table.stable)).blocks
    model.predict(blocks)  # so that no template is missing and memory is mapped
    cold = seconds(lambda: model.predict(blocks), model.forget)
    warm = seconds(lambda: model.predict(blocks), lambda: None)
    print(f"{len(blocks):,} stable blocks, one thread, CPU time, median of {ROUNDS}")
    print(f"cold: {len(blocks) / cold:>12,.0f} blocks/s ({cold / len(blocks) * 1e6:.1f} µs each)")
    print(f"seen: {len(blocks) / warm:>12,.0f} blocks/s")


if __name__ == "__main__":
    main()
