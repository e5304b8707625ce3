"""What any model answers of blocks that may be anything.

Our own model refuses by itself what has no throughput to predict; the others answer all that they
can decode, so that is done for them here.
"""

from collections.abc import Sequence

import numpy as np

from nestor.cost.contract import CostModel, Prediction
from nestor.cost.isa.decoding import DecodeError
from nestor.cost.isa.refusals import refusal


def answers(model: CostModel, blocks: Sequence[bytes]) -> Prediction:
    """Return the cycles of ``blocks``; NaN, with a reason, where there is no answer."""
    predicted = model.predict(blocks)
    refused = dict(predicted.refused)
    answered = np.isfinite(predicted.cycles)
    to_judge = ~answered if getattr(model, "refuses", False) else np.ones_like(answered)
    for row in np.flatnonzero(to_judge).tolist():
        reason = refused.get(row) or _reason(blocks[row], answered=bool(answered[row]))
        if reason:
            refused[row] = reason
    cycles, low, high = (np.array(x) for x in (predicted.cycles, predicted.low, predicted.high))
    for part in (cycles, low, high):
        part[list(refused)] = np.nan
    return Prediction(cycles, low, high, refused, predicted.untrained)


def _reason(block: bytes, *, answered: bool) -> str | None:
    """Return why a block has no answer, or must have none; None if it keeps the one it has."""
    if not block:
        return "it has no instruction"
    try:
        reason = refusal(block)
    except DecodeError:
        return None if answered else "it cannot be decoded as x86-64 code"
    return reason or (None if answered else "the model has no answer for it")
