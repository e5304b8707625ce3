"""A world without a compiler, in which the right answers are known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from nestor.compiler.trajectory_log import Trajectory
from nestor.rewards.weights import Weights

from nestor.corpus.model import Module
from nestor.learn.batch import Batch
from nestor.learn.episodes import F64, I64, Episodes, episode_seed
from nestor.learn.experience import Tally
from nestor.learn.reference import Reference, Stock
from nestor.policy import network
from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.policy.spec import Policy

FEATURES = ("inlining_default", "cost_estimate")
BYTES = 20.0


@dataclass(frozen=True)
class World(Episodes):
    """Leaving the default saves 20 bytes where ``cost_estimate`` is above 0, and costs 20 else."""

    def sampled(
        self,
        policy: Policy,
        modules: Sequence[int] | I64,
        seed: int,
        step: int,
        sample: int = 0,
        temperature: float | None = None,
        callees: bool = False,
    ) -> Batch:
        del callees  # this world knows nothing of callees

        def draw(stock: Stock, x: F64) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
            state = episode_seed(seed, step, stock.module.name, sample)
            probabilities = policy.probabilities(x, temperature or 1.0)
            return np.asarray(np.random.default_rng(state).random(len(x)) < probabilities)

        return self._play(policy, modules, draw)

    def greedy(
        self, policy: Policy, modules: Sequence[int] | I64, like: Policy | None = None
    ) -> Batch:
        def decide(stock: Stock, x: F64) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
            if policy.features == FEATURES:
                return np.asarray(policy.answer(x, stock.default) != stock.default)
            return np.asarray(policy.answer(x[:, 1:]) != stock.default)  # threshold:N

        return self._play(policy, modules, decide)

    def totals(self, policies: Sequence[Policy], modules: Sequence[int] | I64) -> F64:
        return np.array([self.greedy(policy, modules).total for policy in policies])

    def _play(self, policy: Policy, modules, choose) -> Batch:  # type: ignore[no-untyped-def]
        self.tally.count(len(modules))
        self.tally.charge([self.reference.stocks[int(m)].module.name for m in modules])
        parts = []
        for number, module in enumerate(modules):
            stock = self.reference.stocks[int(module)]
            x = stock.trajectory.matrix(FEATURES)
            positive = choose(stock, x)
            change = np.where(positive, np.where(x[:, 1] > 0, -BYTES, BYTES), 0.0)
            parts.append((x, positive, np.full(len(x), number), change))
        x, positive, episode, change = (np.concatenate(p) for p in zip(*parts, strict=True))
        stock_bytes = self.reference.totals[np.asarray(modules, dtype=np.int64)]
        chances = np.full(len(x), 0.5)
        if policy.features == FEATURES:
            p = policy.probabilities(x)
            chances = np.clip(np.where(positive, p, 1 - p), 1e-9, 1)
        return Batch(
            x=x,
            positive=positive,
            log_probability=np.log(chances),
            episode=episode.astype(np.int64),
            change=change,
            share=change,
            module=np.asarray(modules, dtype=np.int64),
            total=stock_bytes + np.bincount(episode, change, len(modules)),
            stock=stock_bytes,
        )


def world(modules: int = 6, decisions: int = 60) -> World:
    """Return a world whose default never inlines."""
    generator = np.random.default_rng(1)
    kinds = [("inlining_default", "<i8"), ("cost_estimate", "<i8")]
    stocks = []
    for number in range(modules):
        records = np.zeros(decisions, dtype=kinds)
        records["cost_estimate"] = generator.integers(-60, 60, decisions) * 2 + 1
        stocks.append(
            Stock(
                Module(f"m{number}.o", "p", "c", "", ()),
                Trajectory(FEATURES, records, False, 0, 0, {}),
                {},
                4000.0,
                Weights({}, 1.0, 1.0),
                0.5,
            )
        )
    reference = Reference(FEATURES, tuple(stocks), {})
    tally = Tally(prices=reference.prices())
    return World(None, reference, tally)  # type: ignore[arg-type]  # nothing is compiled


def beginner(hidden: tuple[int, ...] = (), explore: float = 0.2) -> MlpPolicy:
    """Return a policy that leaves the default with probability ``explore`` everywhere."""
    layers = network.initial_layers((2, *hidden, 1), np.random.default_rng(0))
    odds = np.full(1, np.log(explore / (1 - explore)), dtype=np.float32)
    last = replace(layers[-1], weight=np.zeros_like(layers[-1].weight), bias=odds)
    scale = LogNormalisation(np.zeros(2), np.array([1.0, 0.2]))
    return network.build(
        FEATURES, "deviation", scale, (*layers[:-1], last), problem="inlining-size"
    )


def rightness(made: World, policy: Policy) -> float:
    """Return the part of the decisions that ``policy`` takes rightly."""
    parts = []
    for stock in made.reference.stocks:
        x = stock.trajectory.matrix(FEATURES)
        parts.append((policy.answer(x, stock.default) != stock.default) == (x[:, 1] > 0))
    return float(np.concatenate(parts).mean())
