"""What a trace of blocks costs by the model of whole programs."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nestor.cost.contract import CostModel, Prediction
from nestor.cost.trace.replay import SegmentCost
from nestor.events.traced import TracedRun
from nestor.program_cost.mispredictions.model import packaged, with_predicted
from nestor.program_cost.penalties import Penalties
from nestor.program_cost.quantities import quantities
from nestor.program_cost.weights import Weights


def program_costs(
    runs: Iterable[TracedRun], model: CostModel, penalties: Penalties, weights: Weights
) -> Iterator[SegmentCost]:
    """Yield the cycles of each segment of a trace, in order; 0 where nothing of it has code.

    They are those of blocks, joined where one nearly always follows the other, of taken branches
    and of mispredicted conditions, as far as these can be predicted from counts and code. Misses of
    caches and mispredicted indirect branches are not known and cost nothing.

    Unanswered is what cannot be decoded. Code that can be, and for which the block model has no
    answer, is priced by its instructions.
    """
    trees, remembering = packaged(), _Remembering(model)
    for run in runs:
        cycles = 0.0
        if len(run.table):
            predicted = with_predicted(run.table, trees)
            # Not by estimate(), which refuses a run without cycles: a segment may be a jump alone.
            cycles = float(quantities(predicted, remembering, penalties).totals() @ weights.array())
        yield SegmentCost(cycles, run.runs, run.undecodable, run.missing)


class _Remembering:
    """A model that is asked once for each block: segments of a trace have most blocks in common."""

    def __init__(self, model: CostModel):
        self._model = model
        self._answers: dict[bytes, tuple[float, float, float]] = {}
        self.refuses = getattr(model, "refuses", False)

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return what the model says; why a block has no answer is left out."""
        new = [block for block in dict.fromkeys(blocks) if block not in self._answers]
        if new:
            said = self._model.predict(new)
            columns = (column.tolist() for column in (said.cycles, said.low, said.high))
            self._answers |= dict(zip(new, zip(*columns, strict=True), strict=True))
        found = np.array([self._answers[block] for block in blocks], np.float64)
        return Prediction(*found.reshape(-1, 3).T)
