"""Credit: how much of what a compile came to is put down to each of its decisions, as a reward.

Four schemes:

* ``module``: every decision of a unit gets the unit's score against a moving average of that
  unit's scores, as in MLGO (Trofin et al., 2021, section 4.1).
* ``stock``: the same against the stock compiler's score.
* ``function``: a decision gets the change, against stock, of the parts (functions) of the unit that
  it can affect. What a decision cannot affect does not depend on its answer. So leaving it out
  leaves the expected gradient as it is and removes the noise of the decisions elsewhere.
* ``share``: the same change, but divided equally among the decisions that can affect a part and
  left the default. A decision that did not leave it gets nothing: the part changed because of
  others. In a large function that is most of the noise.

Which parts a decision can affect is the problem's matter
(:meth:`nestor.problem.problem.Problem.credit`).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from nestor.learn.batch import Batch
from nestor.problem.problem import Problem

F64 = npt.NDArray[np.float64]

Scheme = Literal["share", "function", "module", "stock"]


@dataclass(frozen=True)
class CreditSettings:
    """How decisions are rewarded."""

    scheme: Scheme = "share"
    """By the parts of the unit that a decision affects, shared with other decisions or not, or by
    the unit's total: against a moving average of it, or against stock."""
    decay: float = 0.8
    """Of the moving average (module only)."""
    most: float | None = None
    """Change of score beyond which more does not count, in either direction (share and function;
    default: the problem's own)."""


def rewards(
    settings: CreditSettings, batch: Batch, averages: F64, problem: Problem
) -> tuple[F64, F64]:
    """Return the reward of every decision ``[questions]``, and the next averages.

    Higher is better. One is ``problem.credit_unit``, or one per cent of a unit's total.

    :param averages: the moving average of each unit's total ``[units]``; the stock totals at
        first. Only ``module`` moves them.
    """
    if settings.scheme in ("share", "function"):
        changes = batch.share if settings.scheme == "share" else batch.change
        most = problem.credit_clip if settings.most is None else settings.most
        return -np.clip(changes, -most, most) / problem.credit_unit, averages
    if settings.scheme == "stock":
        return (100 * (1 - batch.total / batch.stock))[batch.episode], averages
    relative = 100 * (1 - batch.total / averages[batch.unit])
    moved = averages.copy()
    for unit, total in zip(batch.unit, batch.total, strict=True):
        moved[unit] = settings.decay * moved[unit] + (1 - settings.decay) * total
    return relative[batch.episode], moved


def at_the_end(rewards: F64, batch: Batch, scheme: Scheme) -> F64:
    """Return the rewards for learners that look ahead: a unit's comes with its last question."""
    return np.where(batch.last, rewards, 0.0) if scheme in ("module", "stock") else rewards


def advantages(rewards: F64, scheme: Scheme) -> F64:
    """Return how much better than usual each decision did, in units of reward.

    A unit's total goes up and down for all of its decisions together, so the batch's mean is
    subtracted; a decision's own credit is against stock already.
    """
    return rewards - rewards.mean() if scheme in ("module", "stock") and len(rewards) else rewards
