"""Which machines, of those that there are models of, are like the one that labels are from."""

from collections.abc import Mapping

import numpy as np

from nestor.cost.blocks.table import Table
from nestor.cost.contract import CostModel, ModelError


def closest_first(models: Mapping[str, CostModel], rows: Table) -> list[str]:
    """Return the names of models, those with the least errors on labelled ``rows`` first.

    An error is that of the logarithm, in the mean: what a fit to these labels makes small, and too
    high and too low count alike. Models without an answer for any of the blocks are not among them.

    :raises ModelError: if no model has one.
    """
    errors = {name: _error(model, rows) for name, model in models.items()}
    found = sorted((name for name in errors if errors[name] < np.inf), key=errors.__getitem__)
    if not found:
        raise ModelError("No model has an answer for any of the blocks; name one with --machine.")
    return found


def _error(model: CostModel, rows: Table) -> float:
    off = np.abs(np.log(model.predict(rows.blocks).cycles / rows.cycles))
    answered = np.isfinite(off)
    return float(off[answered].mean()) if answered.any() else np.inf
