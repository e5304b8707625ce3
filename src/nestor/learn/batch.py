"""A batch of episodes: what some modules' compiles under a policy decided, and what it came to."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Batch:
    """Decisions of all episodes one after the other, each episode's in order.

    An episode is one compile of one module; one that failed is not here. Modules are named by
    their place in the reference.
    """

    x: F64
    """Features of each decision, ``[decisions, features]``."""
    positive: Bools
    """The policy's actions (*inline*, or *leave the default*), ``[decisions]``."""
    log_probability: F64
    """Of each action, when it was sampled, ``[decisions]``."""
    episode: I64
    """The place of its episode below, ``[decisions]``."""
    change: F64
    """Linked bytes against stock of the functions that each decision reaches, ``[decisions]``."""
    share: F64
    """What of that is put down to it (:mod:`nestor.learn.credit`), ``[decisions]``."""
    module: I64
    """The module of each episode, ``[episodes]``."""
    total: F64
    """The bytes of each episode's module, ``[episodes]``."""
    stock: F64
    """The same under the stock compiler."""

    @property
    def last(self) -> Bools:
        """Which decisions end an episode, ``[decisions]``."""
        return np.append(self.episode[1:] != self.episode[:-1], True)[: len(self.episode)]

    @property
    def relative_change(self) -> float:
        """The change of all bytes against stock; 0 for an empty batch."""
        return float(self.total.sum() / self.stock.sum() - 1) if len(self.stock) else 0.0
