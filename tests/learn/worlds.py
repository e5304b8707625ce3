"""Problems without a compiler, in which the right answers are known.

A world is a pool whose problem computes what a compile comes to, so that episodes, credit and all
learners run as they do with a compiler.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.build.build import Build
from nestor.build.objects import object_builds
from nestor.corpus.model import Module
from nestor.learn.accounting import Tally
from nestor.learn.episodes import Episodes
from nestor.learn.reference import Reference, Stock
from nestor.policy import network
from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.policy.rule import PICK, THRESHOLD
from nestor.policy.spec import Policy
from nestor.problem.problem import FeatureSets, Problem
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.score import Credit, Report, Scorer, Scorers
from nestor.problem.trajectory import Trajectory

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

FEATURES = ("default", "benefit")
BYTES = 20.0
STOCK_BYTES = 4000.0
COMPILE_SECONDS = 0.5

Changes = Callable[[Trajectory], F64]
"""The bytes that each decision adds to its unit, ``[questions]``."""


@dataclass(frozen=True)
class Sum:
    """The score of a unit: the sum of what its decisions add, the parts being the decisions."""

    def parts(self, outcome: Mapping[str, float]) -> Mapping[str, float]:
        return outcome

    def total(self, outcome: Mapping[str, float]) -> float:
        return STOCK_BYTES + sum(outcome.values())

    def to_json(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Toy(Problem):
    """A problem whose compiler is a function; a part is a decision, so credit is exact."""

    changes: Changes = lambda log: np.zeros(len(log))
    units: Mapping[str, Trajectory] = None  # type: ignore[assignment]  # always given

    def builds(self) -> Mapping[str, Build]:
        """Judge programs by their objects."""
        return object_builds()

    def compile(self, request: Request, place: Workplace | None = None) -> Rollout:
        asked = self.units[request.unit.name]
        policy = None if request.policy is None else request.policy.policy
        decisions = asked.decisions.copy()
        if policy is not None:
            x, question = asked.rows(policy.features), asked.questions
            logits = policy.logits(x)
            if request.seed is None:
                actions = policy.actions(x, question)
            else:
                uniforms = np.random.default_rng(request.seed).random(len(asked))
                if request.by_group and "group" in (decisions.dtype.names or ()):
                    uniforms = uniforms[decisions["group"]]
                temperature = request.temperature or 1.0
                actions = policy.rule.sample(logits, question, uniforms, temperature)
            likely = policy.rule.log_probability(logits, question, actions)
            decisions["log_probability"] = np.maximum(likely, np.log(1e-9))
            deviates = policy.metadata.answers == "deviation"
            decisions["answer"] = asked.default ^ actions if deviates else actions
        log = replace(asked, decisions=decisions)
        outcome = {str(n): c for n, c in enumerate(self.changes(log)) if c}
        return Rollout(request, outcome, log, COMPILE_SECONDS, None)

    def columns(self, outcome: Mapping[str, float]) -> Mapping[str, float]:
        return {"bytes": STOCK_BYTES + sum(outcome.values())}

    def scorers(self, *_args: Any, **_options: Any) -> Scorers:
        return Scorers({name: Sum() for name in self.units})

    def scorer(self, data: Mapping[str, Any]) -> Scorer:
        return Sum()

    def credit(
        self,
        before: tuple[Trajectory, Mapping[str, float]],
        after: tuple[Trajectory, Mapping[str, float]],
    ) -> Credit:
        change = np.zeros(len(after[0]))
        for name, value in after[1].items():
            change[int(name)] = value
        left = after[0].answer != after[0].default
        return Credit(change, np.where(left, change, 0.0))


@dataclass(frozen=True)
class ToyPool:
    """Runs the compiles of a toy problem, one after the other."""

    problem: Toy
    requests: list[Request] = field(default_factory=list)
    """All that were run."""

    def run(self, requests: Sequence[Request], *_args: Any) -> list[Rollout]:
        self.requests.extend(requests)
        return [self.problem.compile(request) for request in requests]


@dataclass(frozen=True)
class World(Episodes):
    """Episodes of a toy problem, and what the right answers are."""

    right: Callable[[Trajectory], I64]
    """The best answer to each question, ``[questions]``."""

    def rightness(self, policy: Policy) -> float:
        """Return the part of the decisions that ``policy`` takes rightly."""
        parts = []
        for stock in self.reference.stocks:
            log = stock.trajectory
            action = policy.actions(log.rows(policy.features), log.questions)
            answer = log.default ^ action if policy.metadata.answers == "deviation" else action
            parts.append(answer == self.right(log))
        return float(np.concatenate(parts).mean())


def threshold_world(units: int = 6, questions: int = 60) -> World:
    """Acting saves 20 bytes where ``benefit`` is above 0, and costs 20 else; stock never acts."""
    generator = np.random.default_rng(1)
    logs = []
    for _ in range(units):
        log = blank_log(questions)
        log.decisions["benefit"] = generator.integers(-60, 60, questions) * 2 + 1
        logs.append(log)

    def changes(log: Trajectory) -> F64:
        cost = np.where(log.decisions["benefit"] > 0, -BYTES, BYTES)
        return np.where(log.answer > 0, cost, 0.0)

    return build_world(THRESHOLD, logs, changes, lambda log: (log.decisions["benefit"] > 0) * 1)


def coupled_world(units: int = 6, pairs: int = 30) -> World:
    """Acting pays only if the other question of the pair acts too, and only where ``benefit`` > 0.

    A pair has one benefit. Both acting saves 2 · 20 bytes where it is above 0; else an action adds
    20 bytes, whatever the other does. A pair is a group.
    """
    generator = np.random.default_rng(2)
    logs = []
    for _ in range(units):
        log = blank_log(2 * pairs, (*FEATURES, "group"))
        log = replace(log, features=FEATURES)
        log.decisions["group"] = np.arange(2 * pairs) // 2
        log.decisions["benefit"] = np.repeat(generator.integers(-60, 60, pairs) * 2 + 1, 2)
        logs.append(log)

    def changes(log: Trajectory) -> F64:
        both = np.repeat(log.answer.reshape(-1, 2).min(axis=1), 2) > 0
        saves = both & (log.decisions["benefit"] > 0)
        return np.where(log.answer > 0, np.where(saves, -BYTES, BYTES), 0.0)

    return build_world(THRESHOLD, logs, changes, lambda log: (log.decisions["benefit"] > 0) * 1)


def pick_world(units: int = 6, questions: int = 40) -> World:
    """Of two to six candidates, the one of greatest ``benefit`` adds nothing, any other 20 bytes.

    The default is the candidate of greatest ``age``, which says nothing of the benefit.
    """
    generator = np.random.default_rng(3)
    kind = [("age", "<i8"), ("benefit", "<i8")]
    logs = []
    for _ in range(units):
        count = generator.integers(2, 7, questions)
        question = np.repeat(np.arange(questions), count)
        rows = np.zeros(len(question), kind)
        rows["age"] = generator.permutation(len(rows))
        rows["benefit"] = generator.permutation(len(rows))
        log = blank_log(questions, FEATURES[:1])
        log.decisions["default"] = greatest(rows["age"], question)
        log.decisions["answer"] = log.decisions["default"]
        logs.append(replace(log, features=("age", "benefit"), candidates=rows, question=question))

    def best(log: Trajectory) -> I64:
        assert log.candidates is not None
        return greatest(log.candidates["benefit"], log.questions)

    def changes(log: Trajectory) -> F64:
        right = best(log)
        wrong: F64 = (log.answer != right).astype(float) - (log.default != right)
        return BYTES * wrong

    return build_world(PICK, logs, changes, best)


def showing_the_default(world: World) -> World:
    """Return ``world``, whose questions have several candidates, with the default as a feature."""
    logs = []
    for stock in world.reference.stocks:
        log = stock.trajectory
        assert log.candidates is not None
        names = (*log.features, "default")
        rows = np.zeros(len(log.candidates), [(name, "<i8") for name in names])
        for name in log.features:
            rows[name] = log.candidates[name]
        first = np.searchsorted(log.questions, np.arange(len(log)))
        rows["default"][first + log.default] = 1
        logs.append(replace(log, features=names, candidates=rows))
    problem = world.reference.problem
    assert isinstance(problem, Toy)
    return build_world(problem.rule, logs, problem.changes, world.right)


def greatest(values: npt.NDArray[Any], question: I64) -> I64:
    """Return the place of the greatest value of each question's rows."""
    parts = [values[question == number] for number in range(question[-1] + 1)]
    return np.array([int(np.argmax(part)) for part in parts])


def blank_log(questions: int, features: Sequence[str] = FEATURES) -> Trajectory:
    """Return questions of zeros that a policy answered."""
    kinds = [(name, "<i8") for name in (*features, "answer")]
    reals = [("logit", "<f8"), ("log_probability", "<f8")]
    records = np.zeros(questions, [*kinds, *reals])
    records["logit"] = 1.0
    return Trajectory(tuple(features), records, "default")


def build_world(
    rule: Any, logs: Sequence[Trajectory], changes: Changes, right: Any, kind: type[Toy] = Toy
) -> World:
    """Return the world of units with these questions."""
    names = [f"m{number}.o" for number in range(len(logs))]
    features = logs[0].features
    problem = kind(
        "toy", "a toy", rule, ("-Oz",), "bytes", "default",
        FeatureSets(features, features, features, features), Report("bytes", ("bytes",)),
        credit_unit=16.0, credit_clip=60.0, changes=changes,
        units=dict(zip(names, logs, strict=True)),
    )  # fmt: skip
    stocks = []
    for name, log in problem.units.items():
        unit = Module(name, "p", "c", "", ())
        stocks.append(Stock(unit, log, {}, STOCK_BYTES, Sum(), COMPILE_SECONDS))
    reference = Reference(problem, features, tuple(stocks), {})
    tally = Tally(prices=reference.prices())
    return World(ToyPool(problem), reference, tally, right)  # type: ignore[arg-type]


def beginner(
    world: World, hidden: tuple[int, ...] = (), explore: float = 0.2, answers: str = "deviation"
) -> MlpPolicy:
    """Return a policy whose logits are alike; it acts with probability ``explore``."""
    problem = world.reference.problem
    layers = network.initial_layers((2, *hidden, 1), np.random.default_rng(0))
    odds = np.log(explore / (1 - explore)) if problem.rule == THRESHOLD else 0.0
    bias = np.full(1, odds, dtype=np.float32)
    last = replace(layers[-1], weight=np.zeros_like(layers[-1].weight), bias=bias)
    scale = LogNormalisation(np.zeros(2), np.array([1.0, 0.2]))
    kind = answers if problem.rule == THRESHOLD else "decision"
    return network.build(
        world.reference.features, kind, scale, (*layers[:-1], last),
        problem=problem.name, rule=problem.rule.name,
    )  # fmt: skip


def acts_below(benefit: float) -> MlpPolicy:
    """Return a policy that acts where ``benefit`` is below a number: ``threshold:N`` of old."""
    scale = LogNormalisation(np.zeros(1), np.array([1.0]))
    weight = np.array([[-1.0]], dtype=np.float32)
    bias = network.squash(np.array([benefit - 0.5])).astype(np.float32)
    layers = (network.Layer(weight, bias),)
    return network.build(("benefit",), "decision", scale, layers, problem="toy")
