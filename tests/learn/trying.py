"""A toy problem whose compiler tries the members of a portfolio on each question by itself."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nestor.learn.algorithms.portfolio import Portfolio, PortfolioSettings, groups_of
from nestor.policy.names import NamedPolicy
from nestor.policy.portfolio import PortfolioPolicy
from nestor.policy.rule import PICK
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.trajectory import Trajectory
from tests.learn.worlds import (
    BYTES,
    COMPILE_SECONDS,
    F64,
    I64,
    Toy,
    World,
    beginner,
    blank_log,
    build_world,
    greatest,
)

PART = 100.0
"""The score of a question under stock."""


@dataclass(frozen=True)
class TryingToy(Toy):
    """A part is a question. As with the compiler, a member that is alone is not tried."""

    tries: bool = True
    broken: Collection[str] = ()
    """Units that cannot be compiled under a portfolio."""

    def compile(self, request: Request, place: Workplace | None = None) -> Rollout:
        policy = None if request.policy is None else request.policy.policy
        if not isinstance(policy, PortfolioPolicy):
            return super().compile(request, place)
        if request.unit.name in self.broken:
            return Rollout.failed(request, "broken")
        changes = []
        for member in policy.members():
            done = super().compile(replace(request, policy=NamedPolicy.of(member)), place)
            assert done.trajectory is not None
            changes.append(self.changes(done.trajectory))
        left_to_stock = (request.overrides or "").split()
        tried = {
            str(part): 1 + change / PART
            for part, change in enumerate(np.array(changes).T)
            if str(part) not in left_to_stock and change.any() and len(changes) > 1
        }
        return Rollout(request, tried, None, COMPILE_SECONDS, None)

    def tried(self, outcome: Mapping[str, F64]) -> Mapping[str, F64]:
        return outcome

    def only(self, trajectory: Trajectory, parts: Collection[str]) -> str:
        return " ".join(str(n) for n in range(len(trajectory)) if str(n) not in parts)


def two_sided_world(units: int = 4, questions: int = 30) -> World:
    """Of three candidates, the one of greatest or the one of least ``benefit`` saves 20 bytes.

    Which of the two follows from nothing that a policy reads, and the other adds 20 bytes: no
    policy is better than the default, which takes the third, but a portfolio of two can be right
    everywhere.
    """
    generator = np.random.default_rng(4)
    logs = []
    for _ in range(units):
        rows = np.zeros(3 * questions, [("age", "<i8"), ("benefit", "<i8")])
        rows["age"] = generator.permutation(len(rows))
        signs = generator.permuted(np.tile([-1, 0, 1], (questions, 1)), axis=1).ravel()
        rows["benefit"] = signs * generator.integers(1, 60, len(rows))
        log = blank_log(questions, ("default", "side"))
        log.decisions["side"] = generator.choice((-1, 1), questions)
        question = np.repeat(np.arange(questions), 3)
        log.decisions["default"] = greatest(-abs(signs), question)
        log.decisions["answer"] = log.decisions["default"]
        logs.append(replace(log, features=("age", "benefit"), candidates=rows, question=question))

    def best(log: Trajectory) -> I64:
        assert log.candidates is not None
        sides = np.repeat(log.decisions["side"], 3)
        return greatest(sides * log.candidates["benefit"], log.questions)

    def changes(log: Trajectory) -> F64:
        cost = np.where(log.answer == best(log), -BYTES, BYTES)
        return np.where(log.answer == log.default, 0.0, cost)

    world = build_world(PICK, logs, changes, best, TryingToy)
    parts = {str(number): PART for number in range(questions)}
    stocks = tuple(replace(stock, parts=parts) for stock in world.reference.stocks)
    return replace(world, reference=replace(world.reference, stocks=stocks))


def portfolio(world: World, **options: Any) -> Portfolio:
    """Return the learner for a world whose compiler tries, which is one program."""
    settings = PortfolioSettings(**{"steps": 6, "members": 3, "population": 4} | options)
    programs = {"p": tuple(stock.unit.name for stock in world.reference.stocks)}
    groups = groups_of(world.reference, programs, settings.cover)
    return Portfolio(
        settings, 0, beginner(world), world.pool, world.reference, tuple(groups), world.tally
    )
