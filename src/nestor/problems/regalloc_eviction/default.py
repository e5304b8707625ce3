"""What LLVM's own heuristic would answer, worked out from the features of a question.

For the environment alone: the channel on which it plays does not say it. The plugin asks the
heuristic itself, so trajectories and policies have the exact choice.

The heuristic (``DefaultEvictionAdvisor`` in llvm/lib/CodeGen/RegAllocEvictionAdvisor.cpp) goes
through the registers in order. It takes one whose live ranges all weigh less than the live range
that needs a register, preferring few broken cascades, then few broken hints, then a small weight;
after the first that will do, a register whose live ranges are local to the block is passed over,
and a register that is a hint ends the search.

The features keep the order of these numbers, which is all that is compared, with one exception:
where a candidate cannot be spilled, its weight is infinite and all others arrive as 0
(:func:`nestor.problems.regalloc_eviction.question.finite`). The heuristic still compares the
weights that are lost, and may evict where this evicts nothing.
"""

import math

from nestor.problems.regalloc_eviction.channel import OpenQuestion
from nestor.problems.regalloc_eviction.question import OWN, WEIGHT


def default_answer(question: OpenQuestion) -> int:
    """Return the index that LLVM's heuristic would choose, one of ``question.allowed``."""
    allowed = question.allowed.tolist()
    weights, urgent, broken, hints, local = (
        question.columns[name].tolist()
        for name in (WEIGHT, "nr_urgent", "nr_broken_hints", "is_hint", "is_local")
    )
    optional = OWN in allowed
    limit = weights[allowed.index(OWN)] if optional else math.inf
    chosen: int | None = None
    least = (math.inf, math.inf, math.inf)
    for row, index in enumerate(allowed):
        if index == OWN or weights[row] >= limit:
            continue
        if optional and chosen is not None and local[row] > 0:
            continue
        cost = (urgent[row], broken[row], weights[row])
        if cost < least:
            chosen, least = index, cost
            if hints[row]:
                break
    if chosen is not None:
        return chosen
    return OWN if optional else int(allowed[0])
