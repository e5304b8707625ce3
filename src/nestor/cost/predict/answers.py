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
    """Return the cycles of ``blocks``; NaN, with a reason, where there is nothing to predict."""
    predicted = model.predict(blocks)
    if getattr(model, "refuses", False):
        return predicted
    refused = {}
    for row in np.flatnonzero(np.isfinite(predicted.cycles)).tolist():
        try:
            reason = refusal(blocks[row])
        except DecodeError:
            continue
        if reason:
            refused[row] = reason
    cycles, low, high = (np.array(x) for x in (predicted.cycles, predicted.low, predicted.high))
    for part in (cycles, low, high):
        part[list(refused)] = np.nan
    return Prediction(cycles, low, high, refused, predicted.untrained)
