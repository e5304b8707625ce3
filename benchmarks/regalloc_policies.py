"""Policies about register allocation that nobody would ship: they try the plugin's safety."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nestor.policy import bundle, network
from nestor.policy.network import Layer, LogNormalisation
from nestor.policy.spec import Policy

EVICTION: Final = "regalloc-eviction"
PRIORITY: Final = "regalloc-priority"
_HUGE: Final = 3e38
"""Two features times this, added up, are beyond a 32-bit float."""

_EVICTORS: Final[Mapping[str, Mapping[str, float]]] = {
    "first": {"position": -1},
    "keep": {"is_own": 1},
    "last": {"position": 1},
    # What is evicted comes back and evicts the next.
    "heaviest": {"use_def_density": 1, "is_own": -100},
    "infinite": {"position": _HUGE, "candidates": _HUGE},
    "not a number": {"position": _HUGE, "candidates": -_HUGE},
}
_ORDERERS: Final[Mapping[str, Mapping[str, float]]] = {
    "small first": {"li_size": -1},
    "not a number": {"li_size": _HUGE, "rank": -_HUGE},
}


def linear(problem: str, rule: str, weights: Mapping[str, float]) -> Policy:
    """Return a policy whose logit is the weighted sum of its squashed features."""
    count = len(weights)
    row = np.array([list(weights.values())], dtype=np.float32)
    return network.build(
        tuple(weights),
        "decision",
        LogNormalisation(np.zeros(count), np.ones(count)),
        (Layer(row, np.zeros(1, dtype=np.float32)),),
        problem=problem,
        rule=rule,
    )


@dataclass(frozen=True)
class Hostile:
    """One way to answer, as options of the plugin."""

    name: str
    options: tuple[str, ...]


def eviction_policy(name: str) -> Policy:
    """Return one of the policies about eviction."""
    return linear(EVICTION, "pick", _EVICTORS[name])


def hostile(folder: Path) -> list[Hostile]:
    """Return every way to answer, with its policies written to ``folder``."""
    evict, order = {}, {}
    for name in _EVICTORS:
        path = folder / f"eviction {name}.safetensors".replace(" ", "-")
        bundle.save(eviction_policy(name), path)
        evict[name] = f"-nestor-eviction={path}"
    for name, weights in _ORDERERS.items():
        path = folder / f"priority {name}.safetensors".replace(" ", "-")
        bundle.save(linear(PRIORITY, "value", weights), path)
        order[name] = f"-nestor-priority={path}"
    random = ("-nestor-seed=1", "-nestor-temperature=1000")
    every = [Hostile(name, (option,)) for name, option in evict.items()]
    every += [Hostile(f"order: {name}", (option,)) for name, option in order.items()]
    every.append(Hostile("random", (evict["first"], order["small first"], *random)))
    best = ("-nestor-best", evict["first"], evict["heaviest"], order["small first"])
    every.append(Hostile("best of 6, random", (*best, *random)))
    return every
