"""How often branches are mispredicted that nobody has run through a predictor.

Boosted trees say which part of a branch's rarer outcomes is mispredicted; the rarer outcomes
themselves are counted by the profile. They learn from runs that were simulated, and their file is
that of a policy of trees, since that is safe to read and fast to evaluate.
"""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.events.errors import EventsError
from nestor.events.table import EventTable
from nestor.policy.boosting import Boosting, boost
from nestor.policy.bundle import load
from nestor.policy.trees import TreesPolicy, from_lightgbm
from nestor.program_cost.mispredictions.features import FEATURES, RARER, Branches, branches_of

F64 = npt.NDArray[np.float64]

BOOSTING: Final = Boosting(rounds=150, leaves=15, learning_rate=0.05, least_rows=50, l2=1.0)
PROBLEM: Final = "mispredictions"
PACKAGED: Final = (
    Path(str(resources.files("nestor"))) / "program_cost" / "data" / "mispredictions.safetensors"
)
"""The trees that come with Nestor."""
_MOST: Final = 2.0
"""Mispredictions of a rarer outcome that count at most."""
_LEAST: Final = 1e-6


def fit(runs: Sequence[tuple[Branches, F64]], seed: int = 0) -> TreesPolicy:
    """Return trees for the mispredictions of each rarer outcome.

    A branch weighs as the root of how often its rarer outcome comes by instruction, so that neither
    the few hottest nor the many cold ones decide alone.

    :param runs: branches with their mispredictions ``[n]``, see :func:`mispredictions`.
    """
    x = np.concatenate([branches.features for branches, _ in runs])
    rate = np.concatenate([own / branches.executions for branches, own in runs])
    rarer = np.maximum(x[:, RARER], _LEAST)
    share = np.concatenate([branches.executions / branches.instructions for branches, _ in runs])
    y = np.minimum(rate / rarer, _MOST)
    weight = np.sqrt(1000 * share * rarer)
    return from_lightgbm(boost(x, y, weight, seed, BOOSTING), FEATURES, "decision", problem=PROBLEM)


def predicted(branches: Branches, trees: TreesPolicy) -> F64:
    """Return the mispredictions of each branch ``[n]``."""
    if not len(branches.rows):
        return np.zeros(0)
    parts: F64 = np.clip(trees.fast_logits(branches.features), 0, None)
    return parts * branches.features[:, RARER] * branches.executions


def mispredictions(branches: Branches, table: EventTable) -> F64:
    """Return the mispredictions of each branch that the source counted ``[n]``."""
    return np.nan_to_num(table.numbers("mispredicts"))[branches.rows]


def with_predicted(table: EventTable, trees: TreesPolicy) -> EventTable:
    """Return a table with predicted mispredictions of conditions in the place of counted ones.

    Those of indirect branches are not predicted and count nothing.

    :raises EventsError: if the source did not count how often branches are taken.
    """
    if not table.has("taken"):
        raise EventsError(
            "The table does not say how often branches are taken, so their mispredictions cannot be"
            " predicted; collect it by 'nestor events', or by callgrind with --collect-jumps=yes."
        )
    branches = branches_of(table)
    own = np.zeros(len(table), np.int64)
    own[branches.rows] = np.round(predicted(branches, trees))
    return table.with_columns({"mispredicts": own, "indirect_mispredicts": np.zeros_like(own)})


def packaged() -> TreesPolicy:
    """Return the trees that come with Nestor."""
    trees = load(PACKAGED)
    assert isinstance(trees, TreesPolicy)
    return trees
