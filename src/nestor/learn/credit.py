"""Credit: what a decision is paid for what its compile came to.

Three schemes, all of linked bytes (:mod:`nestor.rewards.weights`):

* ``module``: every decision of a module is paid by the module's total against a moving average of
  that module's totals, as MLGO does (Trofin et al., 2021, section 4.1).
* ``stock``: the same against the stock compiler's total.
* ``function``: a decision is paid by the functions that it reaches, against stock: its caller, all
  functions that hold a copy of the caller, and the callee if that appears or disappears. What a
  decision cannot reach does not depend on its answer. So leaving it out leaves the policy's
  gradient where it was and takes the noise of all other decisions away.
"""

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
"""Linked bytes that are worth one unit of reward under ``function``: about one call."""


@dataclass(frozen=True)
class CreditSettings:
    """How decisions are paid."""

    scheme: Literal["function", "module", "stock"] = "function"
    """By the functions that a decision reaches, or by the module's total: against a moving average
    of it, or against stock."""
    decay: float = 0.8
    """Of the moving average (module only)."""
    most: float = 160.0
    """Bytes above which a change counts no more, in either direction (function only)."""


def pay(settings: CreditSettings, batch: Batch, averages: F64) -> tuple[F64, F64]:
    """Return the reward of every decision ``[decisions]``, and the next averages.

    Higher is better. Under ``function`` a unit is :data:`BYTES`; else it is one per cent.

    :param averages: the moving average of each module's total ``[modules]``; the stock totals at
        first. Only ``module`` moves them.
    """
    if settings.scheme == "function":
        changes = np.clip(batch.change, -settings.most, settings.most)
        return -changes / BYTES, averages
    if settings.scheme == "stock":
        return (100 * (1 - batch.total / batch.stock))[batch.episode], averages
    rewards = 100 * (1 - batch.total / averages[batch.module])
    moved = averages.copy()
    for module, total in zip(batch.module, batch.total, strict=True):
        moved[module] = settings.decay * moved[module] + (1 - settings.decay) * total
    return rewards[batch.episode], moved


def at_the_end(rewards: F64, batch: Batch, scheme: str) -> F64:
    """Return the rewards of learners that look ahead: a module's is paid once, at its end."""
    return rewards if scheme == "function" else np.where(batch.last, rewards, 0.0)


def standardised(rewards: F64) -> F64:
    """Return rewards with mean 0 and deviation 1; zeros if all are equal."""
    deviation = rewards.std()
    return (rewards - rewards.mean()) / deviation if deviation > 0 else np.zeros_like(rewards)


def reached_changes(
    before: tuple[Trajectory, Mapping[str, float]], after: tuple[Trajectory, Mapping[str, float]]
) -> F64:
    """Return what the functions within each decision's reach changed by, ``[decisions]``.

    :param before: the trajectory and the bytes by function's name of one compile of a module.
    :param after: those of another one, whose decisions are paid.
    """
    names = set(before[1]) | set(after[1])
    different = {n: after[1].get(n, 0.0) - before[1].get(n, 0.0) for n in sorted(names)}
    numbers = {name: key for log in (before[0], after[0]) for key, name in log.names.items()}
    changed: dict[int, float] = {}
    ended: dict[int, float] = {}
    """Of the functions that only one of the compiles has."""
    for name, difference in different.items():
        if difference:
            number = numbers.get(name) or xxhash.xxh3_64_intdigest(name.encode())
            changed[number] = changed.get(number, 0.0) + difference
            if (name in before[1]) != (name in after[1]):
                ended[number] = changed[number]
    records = after[0].records
    if not changed:
        return np.zeros(len(records))
    reach = Reach({"before": before[0]}, {"after": after[0]})
    above: dict[int, float] = {}
    result = np.empty(len(records))
    pairs = zip(
        records["caller"].view("<u8").tolist(), records["callee"].view("<u8").tolist(), strict=True
    )
    for row, (caller, callee) in enumerate(pairs):
        if caller not in above:
            # Sorted: a sum of floats must not depend on the order of a set.
            above[caller] = sum(changed[f] for f in sorted(reach.above(caller) & changed.keys()))
        gone = callee in ended and callee not in reach.above(caller)
        result[row] = above[caller] + (ended[callee] if gone else 0.0)
    return result
