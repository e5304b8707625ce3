"""What a learner is set up with, and what setting it up gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nestor.errors import NestorError
from nestor.learn.accounting import Tally
from nestor.learn.budget import Budget, price_list
from nestor.learn.episodes import Episodes
from nestor.learn.learner import Learner
from nestor.learn.programs import training_programs
from nestor.learn.reference import Reference, reference
from nestor.learn.training import Result
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import Policy
from nestor.problem.problem import Pool, Problem
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class Ready:
    """A learner that can run."""

    learner: Learner[Any, Any]
    stage: str
    """What its progress is called."""
    features: tuple[str, ...]
    """Which its policy reads."""
    after: Callable[[Result], Mapping[str, Any]] = lambda _result: {}
    """What to report when it has run, by name."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Digests of what settings name as paths, by the setting: a run is tied to what it read, not
    to where that lay."""


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
    """A model of the score that judges episodes without a whole compile."""
    progress: Progress = silent

    @property
    def problem(self) -> Problem:
        """What is decided."""
        return self.pool.problem

    def read(self, features: Sequence[str]) -> tuple[str, ...]:
        """Return what the policy reads: ``features``, unless the user or the start names others."""
        own = as_network(self.init).features if self.init is not None else self.features
        return own or tuple(features)

    def reference(self, features: Sequence[str], part: float = 1.0) -> Reference:
        """Return the training programs under stock; from here on compiles have their prices.

        :param features: those to record, unless the user or the initial policy names others.
        :param part: the price of a learner's compile of a unit, over that of a stock compile.
        """
        programs = training_programs(self.pool.corpus)
        found = reference(self.pool, programs, self.read(features), self.tally, self.progress)
        units = {stock.unit.name: part * stock.seconds for stock in found.stocks}
        self.tally.prices = price_list(self.folder, found.prices() | units)
        return found

    def episodes(self, features: Sequence[str]) -> Episodes:
        """Return what plays episodes of the training programs' units. See :meth:`reference`."""
        if self.estimate is None:
            return Episodes(self.pool, self.reference(features), self.tally)
        pool, part = self.problem.estimating(self.pool, self.estimate)
        return Episodes(pool, self.reference(features, part), self.tally)


def as_network(policy: Policy) -> MlpPolicy:
    """Return the policy that a user wants to start from.

    :raises NestorError: if it is no network.
    """
    if not isinstance(policy, MlpPolicy):
        raise NestorError(
            "This learner moves the weights of a network, and --init names another kind of policy;"
            " --learner distil takes any."
        )
    return policy
