"""What LLVM's own heuristic would answer, worked out from the features of a question.

The channel does not send it. The heuristic (``DefaultEvictionAdvisor`` in
llvm/lib/CodeGen/RegAllocEvictionAdvisor.cpp) goes through the registers in order. It takes one
whose live ranges all weigh less than the live range that needs a register, preferring few broken
cascades, then few broken hints, then a small weight; after the first that will do, a register whose
live ranges are local to the block is passed over, and a register that is a hint ends the search.

The features keep the order of these numbers, which is all that is compared, with one exception:
where a candidate cannot be spilled, its weight is infinite and all others arrive as 0
(:meth:`nestor.problems.regalloc_eviction.question.Question.table`). The heuristic still compares
the weights that are lost, and may evict where this evicts nothing.
docs/problems/regalloc-eviction.md says how often; :mod:`nestor.problems.regalloc_eviction.compile`
never counts such a choice as the default's.
"""

import math

from nestor.problems.regalloc_eviction.question import OWN, Question


def default_answer(question: Question) -> int:
    """Return the index that LLVM's heuristic would choose, one of ``question.allowed``."""
    allowed = question.allowed.tolist()
    optional = OWN in allowed
    weight = question.weight.tolist()
    limit = weight[OWN] if optional else math.inf
    urgent, broken, hint, local = (
        question.values(name).tolist()
        for name in ("nr_urgent", "nr_broken_hints", "is_hint", "is_local")
    )
    chosen: int | None = None
    least = (math.inf, math.inf, math.inf)
    for index in allowed:
        if index == OWN or weight[index] >= limit:
            continue
        if optional and chosen is not None and local[index] > 0:
            continue
        cost = (urgent[index], broken[index], weight[index])
        if cost < least:
            chosen, least = index, cost
            if hint[index]:
                break
    if chosen is not None:
        return chosen
    return OWN if optional else int(allowed[0])
