"""What all learners share that compile some modules for an update."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from nestor.learn.episodes import Episodes
from nestor.policy.network import MlpPolicy


class Settings(Protocol):
    """What the settings of such a learner have in common."""

    @property
    def steps(self) -> int:
        """Updates, at most."""

    @property
    def modules(self) -> int:
        """Modules compiled for an update."""


class State(Protocol):
    """What their states have in common."""

    @property
    def step(self) -> int:
        """Updates so far."""


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Episodic(Generic[S]):
    """A learner that lacks all that it learns by. See :class:`nestor.learn.learner.Learner`."""

    settings: S
    seed: int
    start: MlpPolicy
    episodes: Episodes

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def drawn(self, state: State) -> npt.NDArray[np.int64]:
        """Return the modules of the next update."""
        return self.episodes.drawn(self.seed, state.step, self.settings.modules)
