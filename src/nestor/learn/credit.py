"""Credit: what a decision is paid for what its compile came to.

Four schemes, all of linked bytes (:mod:`nestor.rewards.weights`):

* ``module``: every decision of a module is paid by the module's total against a moving average of
  that module's totals, as MLGO does (Trofin et al., 2021, section 4.1).
* ``stock``: the same against the stock compiler's total.
* ``function``: a decision is paid by the functions that it reaches, against stock: its caller, all
  functions that hold a copy of the caller, and the callee if that appears or disappears. What a
  decision cannot reach does not depend on its answer. So leaving it out leaves the policy's
  gradient where it was and takes the noise of the decisions elsewhere away.
* ``share``: the same, but what changed is shared equally by those decisions in reach of it that
  left the default, and a decision that did not is paid nothing: its function changed because of
  others. In a large function that is most of the noise. As in :mod:`nestor.tune.credit`, where
  few leave the default, each is paid what it did.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import xxhash

from nestor.compiler.trajectory_log import Trajectory
from nestor.learn.batch import Batch
from nestor.tune.moves import Reach

F64 = npt.NDArray[np.float64]

BYTES = 16.0
"""Linked bytes that are a unit of reward under ``share`` and ``function``: about one call."""


@dataclass(frozen=True)
class CreditSettings:
    """How decisions are paid."""

    scheme: Literal["share", "function", "module", "stock"] = "share"
    """By the functions that a decision reaches, shared with other decisions or not, or by the
    module's total: against a moving average of it, or against stock."""
    decay: float = 0.8
    """Of the moving average (module only)."""
    most: float = 60.0
    """Bytes above which a change counts no more, in either direction (share and function)."""


def pay(settings: CreditSettings, batch: Batch, averages: F64) -> tuple[F64, F64]:
    """Return the reward of every decision ``[decisions]``, and the next averages.

    Higher is better. A unit is :data:`BYTES`, or one per cent of a module's total.

    :param averages: the moving average of each module's total ``[modules]``; the stock totals at
        first. Only ``module`` moves them.
    """
    if settings.scheme in ("share", "function"):
        changes = batch.share if settings.scheme == "share" else batch.change
        return -np.clip(changes, -settings.most, settings.most) / BYTES, averages
    if settings.scheme == "stock":
        return (100 * (1 - batch.total / batch.stock))[batch.episode], averages
    rewards = 100 * (1 - batch.total / averages[batch.module])
    moved = averages.copy()
    for module, total in zip(batch.module, batch.total, strict=True):
        moved[module] = settings.decay * moved[module] + (1 - settings.decay) * total
    return rewards[batch.episode], moved


def at_the_end(rewards: F64, batch: Batch, scheme: str) -> F64:
    """Return the rewards of learners that look ahead: a module's is paid once, at its end."""
    return np.where(batch.last, rewards, 0.0) if scheme in ("module", "stock") else rewards


def advantages(rewards: F64, scheme: str) -> F64:
    """Return how much better than usual each decision did, in units of reward.

    A module's total goes up and down for all of its decisions together, so the batch's mean is
    taken off; a decision's own credit is against stock already.
    """
    return rewards - rewards.mean() if scheme in ("module", "stock") and len(rewards) else rewards


def reached_changes(
    before: tuple[Trajectory, Mapping[str, float]], after: tuple[Trajectory, Mapping[str, float]]
) -> tuple[F64, F64]:
    """Return what the functions in each decision's reach changed by, and its share of that.

    Both are bytes ``[decisions]``; see ``function`` and ``share`` above.

    :param before: the trajectory and the bytes by function's name of one compile of a module.
    :param after: those of another one, whose decisions are paid.
    """
    changed, ended = _changes(before, after)
    records = after[0].records
    whole, share = np.zeros(len(records)), np.zeros(len(records))
    if not changed:
        return whole, share
    reach = Reach({"before": before[0]}, {"after": after[0]})
    left = (records["answer"] > 0) != (records["inlining_default"] > 0)
    callers, callees = (records[name].view("<u8").tolist() for name in ("caller", "callee"))
    # Sorted: a sum of floats must not depend on the order of a set.
    above = {c: tuple(sorted(reach.above(c) & changed.keys())) for c in set(callers)}
    reached = [
        (*above[caller], callee)
        if callee in ended and callee not in above[caller]
        else above[caller]
        for caller, callee in zip(callers, callees, strict=True)
    ]
    sharers = Counter(f for row in np.flatnonzero(left) for f in reached[row])
    totals = {own: sum(changed[f] for f in own) for own in set(reached)}
    for row, own in enumerate(reached):
        whole[row] = totals[own]
        if left[row]:
            share[row] = sum(changed[f] / sharers[f] for f in own)
    return whole, share


def _changes(
    before: tuple[Trajectory, Mapping[str, float]], after: tuple[Trajectory, Mapping[str, float]]
) -> tuple[dict[int, float], set[int]]:
    """Return the change of each function that changed, and those that only one compile has."""
    numbers = {name: key for log in (before[0], after[0]) for key, name in log.names.items()}
    changed: dict[int, float] = {}
    ended: set[int] = set()
    for name in sorted(before[1].keys() | after[1].keys()):
        difference = after[1].get(name, 0.0) - before[1].get(name, 0.0)
        if difference:
            number = numbers.get(name) or xxhash.xxh3_64_intdigest(name.encode())
            changed[number] = changed.get(number, 0.0) + difference
            if (name in before[1]) != (name in after[1]):
                ended.add(number)
    return changed, ended
