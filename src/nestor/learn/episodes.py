"""Play episodes: compile units under a policy and read what it decided and what it came to."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nestor.learn.accounting import Tally
from nestor.learn.answers import actions_of
from nestor.learn.batch import Batch, rows_of
from nestor.learn.reference import Reference, Stock
from nestor.policy.names import NamedPolicy
from nestor.policy.rule import VALUE, Actions
from nestor.policy.spec import Policy
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


def draw(seed: int, step: int, count: int, units: int) -> I64:
    """Return the units of one step: all are visited once before one is visited again."""
    if units == 0:
        raise ValueError("there is no unit to draw")
    places = np.arange(step * count, (step + 1) * count)
    orders = {
        epoch: np.random.default_rng([seed, 4, int(epoch)]).permutation(units)
        for epoch in np.unique(places // units)
    }
    drawn = [orders[place // units][place % units] for place in places]
    return np.array(list(dict.fromkeys(drawn)), dtype=np.int64)


def episode_seed(seed: int, step: int, unit: str, sample: int = 0) -> int:
    """Return the compiler's seed of one sampled episode."""
    text = f"{seed} {step} {unit} {sample}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "little")


@dataclass(frozen=True)
class Episodes:
    """Compiles units of a reference. What it returns depends on its arguments alone."""

    pool: Pool = field(repr=False)
    reference: Reference = field(repr=False)
    tally: Tally = field(repr=False)

    def drawn(self, seed: int, step: int, count: int) -> I64:
        """Return the units of a learner's step. See :func:`draw`."""
        return draw(seed, step, count, len(self.reference.stocks))

    def sampled(
        self,
        policy: Policy,
        units: Sequence[int] | I64,
        seed: int,
        step: int,
        sample: int = 0,
        temperature: float | None = None,
        groups: bool = False,
    ) -> Batch:
        """Return one episode of each unit, its actions drawn as the policy's logits say.

        :param groups: in every second episode all questions of a group draw the same number.
        """
        named = NamedPolicy.of(policy)
        requests = [
            Request(
                stock.unit,
                named,
                seed=episode_seed(seed, step, stock.unit.name, sample),
                by_group=groups and number % 2 == 1,
                temperature=temperature,
                log=True,
                names=True,
            )
            for number, stock in enumerate(self._stocks(units))
        ]
        return self._batch(policy, units, self._run(requests))

    def greedy(
        self, policy: Policy, units: Sequence[int] | I64, like: Policy | None = None
    ) -> Batch:
        """Return one episode of each unit with the policy's greedy actions.

        :param like: whose features and actions the batch is to hold, if not the policy's own.
        """
        named = NamedPolicy.of(policy)
        requests = [
            Request(stock.unit, named, log=True, names=True) for stock in self._stocks(units)
        ]
        return self._batch(like or policy, units, self._run(requests))

    def totals(self, policies: Sequence[Policy], units: Sequence[int] | I64) -> F64:
        """Return the score of each unit under each policy, ``[policies, units]``.

        NaN where a compile failed. One that would be stock's (:meth:`Stock.unchanged_by`) does not
        run.
        """
        result = np.empty((len(policies), len(units)))
        requests, places = [], []
        for row, policy in enumerate(policies):
            named = NamedPolicy.of(policy)
            for column, stock in enumerate(self._stocks(units)):
                if stock.unchanged_by(policy):
                    self.tally.count(0, reused=1)
                    result[row, column] = stock.total
                else:
                    requests.append(Request(stock.unit, named))
                    places.append((row, column, stock))
        for (row, column, stock), done in zip(places, self._run(requests), strict=True):
            failed = done.outcome is None
            result[row, column] = np.nan if failed else stock.scorer.total(done.outcome)
        return result

    def _stocks(self, units: Sequence[int] | I64) -> list[Stock]:
        return [self.reference.stocks[int(unit)] for unit in units]

    def _run(self, requests: Sequence[Request]) -> list[Rollout]:
        done = self.pool.run(requests)
        self.tally.add(done)
        return done

    def _batch(
        self, policy: Policy, units: Sequence[int] | I64, rolled: Sequence[Rollout]
    ) -> Batch:
        episodes = [
            _episode(policy, self.reference, int(unit), done)
            for unit, done in zip(units, rolled, strict=True)
            if done.ok and done.trajectory is not None and done.outcome is not None
        ]
        counts = [len(episode.action) for episode in episodes]
        starts = np.cumsum([0, *counts])[: len(episodes)]
        actions = np.float64 if policy.rule == VALUE else np.int64
        questions = [e.question + start for e, start in zip(episodes, starts, strict=True)]
        return Batch(
            x=np.concatenate([np.empty((0, len(policy.features))), *(e.x for e in episodes)]),
            question=np.concatenate([np.empty(0, np.int64), *questions]),
            action=np.concatenate([np.empty(0, actions), *(e.action for e in episodes)]),
            log_probability=np.concatenate([np.empty(0), *(e.log_probability for e in episodes)]),
            episode=np.repeat(np.arange(len(episodes)), counts).astype(np.int64),
            change=np.concatenate([np.empty(0), *(e.change for e in episodes)]),
            share=np.concatenate([np.empty(0), *(e.share for e in episodes)]),
            unit=np.array([e.unit for e in episodes], dtype=np.int64),
            total=np.array([e.total for e in episodes]),
            stock=np.array([self.reference.stocks[e.unit].total for e in episodes]),
        )


@dataclass(frozen=True)
class _Episode:
    """The questions of one compile that the policy answered; fields as in ``Batch``."""

    unit: int
    x: F64
    question: I64
    action: Actions
    log_probability: F64
    change: F64
    share: F64
    total: float


def _episode(policy: Policy, reference: Reference, unit: int, done: Rollout) -> _Episode:
    log, stock = done.trajectory, reference.stocks[unit]
    if log is None or done.outcome is None:
        raise ValueError("the rollout has no log or no outcome")
    before = (stock.trajectory, stock.parts)
    credit = reference.problem.credit(before, (log, stock.scorer.parts(done.outcome)))
    by_policy = np.flatnonzero(log.by_policy)  # past its limits the default answers
    rows, question = rows_of(log.questions, by_policy)
    return _Episode(
        unit,
        log.rows(policy.features)[rows],
        question,
        actions_of(policy, log.answer[by_policy], log.default[by_policy]),
        log.decisions["log_probability"][by_policy].astype(np.float64),
        credit.change[by_policy],
        credit.share[by_policy],
        stock.scorer.total(done.outcome),
    )
