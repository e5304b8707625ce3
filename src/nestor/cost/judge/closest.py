"""Which machine, of those that there are models of, is most like the one that labels are from."""

from collections.abc import Mapping

import numpy as np

from nestor.cost.blocks.table import Table
from nestor.cost.contract import CostModel, ModelError


def closest(models: Mapping[str, CostModel], rows: Table) -> str:
    """Return the name of the model with the least mean error of logarithms on labelled ``rows``.

    That is what a fit to these labels makes small; too high and too low count alike.

    :raises ModelError: if no model has an answer for any of the blocks.
    """
    errors = {name: _error(model, rows) for name, model in models.items()}
    best = min(errors, key=lambda name: errors[name])
    if errors[best] == np.inf:
        raise ModelError("No model has an answer for any of the blocks; name one with --machine.")
    return best


def _error(model: CostModel, rows: Table) -> float:
    off = np.abs(np.log(model.predict(rows.blocks).cycles / rows.cycles))
    answered = np.isfinite(off)
    return float(off[answered].mean()) if answered.any() else np.inf
