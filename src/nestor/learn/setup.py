"""What a learner is set up with, and what setting it up gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nestor.learn.budget import Budget, price_list
from nestor.learn.episodes import Episodes
from nestor.learn.experience import Tally, training_programs
from nestor.learn.learner import Learner
from nestor.learn.reference import Reference, reference
from nestor.learn.start import StartSettings, as_network, start
from nestor.learn.training import Result
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent
from nestor.rollout.pool import Pool
from nestor.size.estimating_pool import PART_WITHOUT_CODE, EstimatingPool
from nestor.size.model import load as load_size_model


@dataclass(frozen=True)
class Ready:
    """A learner that can run."""

    learner: Learner[Any, Any]
    stage: str
    """What its progress is called."""
    features: tuple[str, ...]
    """Which its policy reads."""
    after: Callable[[Result], Mapping[str, Any]] = lambda _result: {}
    """What there is to tell when it has run."""


@dataclass(frozen=True)
class Setup:
    """Where and for what a learner is set up."""

    pool: Pool
    folder: Path
    """The run's."""
    seed: int
    tally: Tally
    features: tuple[str, ...] = ()
    """Those that the user wants the policy to read; empty: the learner's own choice."""
    init: Policy | None = None
    """The policy that the user wants to start from."""
    trials: Path | None = None
    """Where searches keep their trials, if not in the run's folder."""
    budget: Budget = field(default_factory=Budget)
    estimate: Path | None = None
    """A size model that pays episodes in place of code."""
    progress: Progress = silent

    def reference(self, features: Sequence[str]) -> Reference:
        """Return the training programs under stock; from here on compiles have their prices.

        :param features: those to record, unless the user or the initial policy names others.
        """
        own = as_network(self.init).features if self.init is not None else self.features
        programs = training_programs(self.pool.corpus)
        made = reference(self.pool, programs, own or tuple(features), self.tally, self.progress)
        prices = made.prices()
        if self.estimate is not None:
            prices |= {s.module.name: PART_WITHOUT_CODE * s.seconds for s in made.stocks}
        self.tally.prices = price_list(self.folder, prices)
        return made

    def episodes(self, features: Sequence[str]) -> Episodes:
        """Return what plays episodes of the training programs' modules. See ``reference``."""
        made = self.reference(features)
        if self.estimate is None:
            return Episodes(self.pool, made, self.tally)
        pool = EstimatingPool(self.pool, load_size_model(self.estimate))
        return Episodes(pool, made, self.tally)

    def start(self, settings: StartSettings, episodes: Episodes) -> MlpPolicy:
        """Return the user's initial policy, or the one that ``settings`` describe."""
        if self.init is not None:
            return as_network(self.init)
        return start(episodes.reference, settings, self.seed)
