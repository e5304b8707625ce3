"""A portfolio: policies that are best together where the compiler keeps the best of them.

A compiler that can try several policies on a function (``Problem.tries``) needs no policy that is
right everywhere, only some that are right in different places. Each step draws candidates around
the members chosen so far, has each unit compiled once with all of them as alternatives, and keeps
what each function would cost under each. Members are chosen greedily by what they add to those
before them, and exchanged while that helps (Nemhauser et al. 1978; as portfolios of algorithms:
Hydra, Xu et al. 2010).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.learn.accounting import Tally
from nestor.learn.gradient.descent import policy_of
from nestor.learn.learner import Metrics
from nestor.learn.programs import training_programs
from nestor.learn.reference import Reference
from nestor.learn.setup import Ready, Setup, as_network
from nestor.learn.start import StartSettings, first_policy
from nestor.policy.names import NamedPolicy
from nestor.policy.network import MlpPolicy
from nestor.policy.portfolio import MAX_MEMBERS, PortfolioPolicy, portfolio_of
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_EQUAL: Final = 0.3
"""How much of a group's weight does not follow its share of the score but that share's square root:
what is hot in one program should not decide alone."""

_FAILED: Final = 2.0
"""The ratio of a group that cannot be compiled under a candidate; no other counts as more."""

_TRIAL: Final = 0.1
"""CPU time of a candidate's trials in a unit, over that of compiling the unit: the price of one."""


@dataclass(frozen=True)
class PortfolioSettings:
    """How many members there are, and how they are looked for."""

    steps: int = 24
    """Updates, at most."""
    members: int = 8
    """Policies of the portfolio."""
    population: int = 16
    """Candidates per update."""
    width: float = 0.7
    """Standard deviation of the first candidates' weights around the start."""
    mutation: float = 0.3
    """Standard deviation of a later candidate's weights around its parents'."""
    cover: float = 0.95
    """Part of each program's score whose functions are tried, those of the largest share first."""
    start: StartSettings = field(default_factory=lambda: StartSettings(hidden=(), explore=0.03))
    """Where to start."""

    def __post_init__(self) -> None:
        # The compiler tries nothing under a portfolio of one member.
        if not 2 <= self.members <= MAX_MEMBERS:
            raise NestorError(f"A portfolio that is trained has 2 to {MAX_MEMBERS} members.")
        if not 2 <= self.population <= MAX_MEMBERS:
            raise NestorError(f"2 to {MAX_MEMBERS} candidates can be tried at a time.")
        if not 0 < self.cover <= 1:
            raise NestorError("The part of the score to cover must be above 0 and at most 1.")
        if self.start.hidden:
            raise NestorError(
                "Members of a portfolio are sums of features: leave out hidden layers."
            )


@dataclass(frozen=True)
class PortfolioState:
    """All candidates so far and what the groups cost under each."""

    step: int
    candidates: F64
    """``[candidates, parameters]``"""
    ratios: F64
    """Score of each group under each candidate over that under stock, ``[candidates, groups]``."""


@dataclass(frozen=True)
class Tried:
    """The candidates of one step and what they came to; fields as in ``PortfolioState``."""

    candidates: F64
    ratios: F64
    failed: int
    """Units that could not be compiled."""


@dataclass(frozen=True)
class Group:
    """A part (function) of a unit that is worth a trial."""

    unit: int
    """The unit's place in the reference."""
    part: str
    weight: float
    """Of its relative change in the mean over the training programs."""


def groups_of(
    reference: Reference, programs: Mapping[str, tuple[str, ...]], cover: float
) -> list[Group]:
    """Return the parts that make up ``cover`` of each program's score, with their weights.

    :param programs: names of units by program.
    """
    places = {stock.unit.name: place for place, stock in enumerate(reference.stocks)}
    shares: dict[tuple[int, str], float] = {}
    for units in programs.values():
        own = [places[name] for name in units if name in places]
        parts = {
            (place, part): score
            for place in own
            for part, score in reference.stocks[place].parts.items()
            if score > 0
        }
        total, covered = sum(parts.values()), 0.0
        for key, score in sorted(parts.items(), key=lambda item: (-item[1], item[0])):
            if covered >= cover * total:
                break
            covered += score
            shares[key] = shares.get(key, 0.0) + score / total / len(programs)
    share = np.array(list(shares.values()))
    root = np.sqrt(share)
    weight = (1 - _EQUAL) * share + _EQUAL * share.sum() * root / max(root.sum(), 1e-300)
    return [Group(*key, float(w)) for key, w in zip(shares, weight, strict=True)]


def choose(ratios: F64, weights: F64, members: int) -> tuple[I64, F64]:
    """Choose members one by one, each the one that adds most to those before it; then exchange.

    A member is exchanged for the candidate that adds most to all others, until none is better.

    :param ratios: ``[candidates, groups]``.
    :param weights: ``[groups]``.
    :return: the chosen candidates, fewer where no other adds anything, ``[at most members]``, and
        the least ratio of each group under them and stock, ``[groups]``.
    """
    least, chosen = np.ones(ratios.shape[1]), list[int]()
    while len(chosen) < min(members, len(ratios)):
        gains = (np.maximum(least - ratios, 0.0) * weights).sum(axis=1)
        best = int(gains.argmax())
        if gains[best] <= 0 and chosen:
            break
        chosen.append(best)
        least = np.minimum(least, ratios[best])
    position = unchanged = 0
    while len(chosen) > 1 and unchanged < len(chosen):
        rest = np.minimum(1.0, np.delete(ratios[chosen], position, axis=0).min(axis=0))
        gains = (np.maximum(rest - ratios, 0.0) * weights).sum(axis=1)
        best = int(gains.argmax())
        # A gain that rounding may have made would exchange for ever.
        better = gains[best] > gains[chosen[position]] * (1 + 1e-9) + 1e-15
        chosen[position] = best if better else chosen[position]
        unchanged = 0 if better else unchanged + 1
        position = (position + 1) % len(chosen)
    return np.array(chosen, dtype=np.int64), ratios[chosen].min(axis=0, initial=1.0)


@dataclass(frozen=True)
class Portfolio:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: PortfolioSettings
    seed: int
    start: MlpPolicy
    pool: Pool = field(repr=False)
    reference: Reference = field(repr=False)
    groups: tuple[Group, ...] = field(repr=False)
    tally: Tally = field(repr=False)
    first: tuple[MlpPolicy, ...] = field(default=(), repr=False)
    """Members of a portfolio that is to be improved, like ``start`` but for the weights: they are
    among the first candidates."""

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    @property
    def weights(self) -> F64:
        """Of the groups, ``[groups]``."""
        return np.array([group.weight for group in self.groups])

    def init(self) -> PortfolioState:
        """Begin without a candidate."""
        return PortfolioState(
            0, np.empty((0, self.start.parameters)), np.empty((0, len(self.groups)))
        )

    def candidates(self, state: PortfolioState) -> F64:
        """Return the next step's candidates, ``[population, parameters]``."""
        generator = np.random.default_rng([self.seed, 17, state.step])
        start = self.start.flatten_parameters().astype(np.float64)
        shape = (self.settings.population, len(start))
        noise = generator.standard_normal(shape)
        if state.step < (1 if self.first else 2):
            # Half of the weights, and the weight of stock's own choice anywhere up to its start.
            some = generator.random(shape) < 0.5
            drawn = start * generator.random((len(noise), 1)) + self.settings.width * noise * some
            for row, member in zip(drawn, self.first, strict=False):
                row[:] = member.flatten_parameters()
            return np.asarray(drawn)
        chosen, _ = choose(state.ratios, self.weights, self.settings.members)
        parents = state.candidates[generator.choice(chosen, (2, len(noise)))]
        crossed = (generator.random((len(noise), 1)) < 0.4) & (generator.random(shape) < 0.5)
        some = generator.random(shape) < 0.4
        children = np.where(crossed, parents[1], parents[0])
        return np.asarray(children + self.settings.mutation * noise * some)

    def batch(self, state: PortfolioState) -> Tried:
        """Compile every unit that holds a group once, with all candidates as alternatives."""
        candidates = self.candidates(state).astype(np.float32).astype(np.float64)
        policies = [policy_of(self.start, each) for each in candidates]
        named = NamedPolicy.of(portfolio_of(policies, {}))
        units = sorted({group.unit for group in self.groups})
        done = self.pool.run([self._request(unit, named) for unit in units])
        self.tally.add(done)
        ratios, failed = self._ratios(dict(zip(units, done, strict=True)), len(candidates))
        return Tried(candidates, ratios, failed)

    def update(self, state: PortfolioState, batch: Tried) -> tuple[PortfolioState, Metrics]:
        """Keep the candidates with what they came to."""
        after = PortfolioState(
            state.step + 1,
            np.concatenate([state.candidates, batch.candidates]),
            np.concatenate([state.ratios, batch.ratios]),
        )
        weights = self.weights
        chosen, least = choose(after.ratios, weights, self.settings.members)
        singles = ((batch.ratios - 1) * weights).sum(axis=1)
        return after, {
            "change_pct": 100 * float(((least - 1) * weights).sum()),
            "best_candidate_pct": 100 * float(singles.min()),
            "members": float(len(chosen)),
            "new_members": float((chosen >= len(state.candidates)).sum()),
            "failed": float(batch.failed),
        }

    def policy(self, state: PortfolioState) -> PortfolioPolicy:
        """Return the portfolio of the members chosen so far.

        The start makes up two: one member alone would be used everywhere and never tried.
        """
        chosen, _ = choose(state.ratios, self.weights, self.settings.members)
        start = self.start.flatten_parameters().astype(np.float64)
        missing = max(0, 2 - len(chosen))
        parameters = np.concatenate([state.candidates[chosen], np.tile(start, (missing, 1))])
        return portfolio_of([policy_of(self.start, each) for each in parameters], {})

    def _request(self, unit: int, named: NamedPolicy) -> Request:
        stock = self.reference.stocks[unit]
        parts = {group.part for group in self.groups if group.unit == unit}
        overrides = self.reference.problem.only(stock.trajectory, parts)
        return Request(stock.unit, named, overrides=overrides)

    def _ratios(self, done: Mapping[int, Rollout], candidates: int) -> tuple[F64, int]:
        """Return the ratios of all groups; 1 where nothing was tried or the compile failed."""
        problem = self.reference.problem
        tried = {unit: problem.tried(r.outcome) for unit, r in done.items() if r.ok}
        ratios = np.ones((candidates, len(self.groups)))
        for column, group in enumerate(self.groups):
            own = tried.get(group.unit, {}).get(group.part)
            if own is not None:
                ratios[:, column] = np.minimum(own, _FAILED)
        return ratios, len(done) - len(tried)


def set_up(settings: PortfolioSettings, setup: Setup) -> Ready:
    """Return the learner for a user's run."""
    members: tuple[MlpPolicy, ...] = ()
    if isinstance(setup.init, PortfolioPolicy):
        members = setup.init.members()
        setup = replace(setup, init=members[0])
    if setup.init is not None and as_network(setup.init).widths[1:] != (1,):
        raise NestorError("Members of a portfolio are sums of features, and --init is none.")
    part = 1 + _TRIAL * settings.population
    reference = setup.reference(setup.problem.features.few, part)
    programs = {p.name: p.modules for p in training_programs(setup.pool.corpus)}
    groups = tuple(groups_of(reference, programs, settings.cover))
    start = first_policy(setup, reference, settings.start)
    learner = Portfolio(
        settings, setup.seed, start, setup.pool, reference, groups, setup.tally, members
    )
    return Ready(learner, "Portfolio", start.features)
