"""Register eviction: which live range gives up its register at -O2, judged by static cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nestor.build.build import Build
from nestor.build.objects import object_builds
from nestor.corpus.model import Program
from nestor.policy.rule import PICK
from nestor.problem.problem import Credit, Pool, Problem, Report, Scorers
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.trajectory import Trajectory
from nestor.problems.regalloc_eviction import credit as crediting
from nestor.problems.regalloc_eviction.builtins import BUILTINS, NAME
from nestor.problems.regalloc_eviction.compile import compile_module
from nestor.problems.regalloc_eviction.cost import StaticCost, function_code, static_cost
from nestor.problems.regalloc_eviction.features import FEATURES
from nestor.problems.regalloc_eviction.play import DEFAULT
from nestor.progress import Progress, silent

COLUMNS = ("cost", "instructions", "reads", "writes", "text")


@dataclass(frozen=True)
class CostOfFunctions:
    """Scores a unit by the static cost of its functions; nothing of it depends on a program."""

    def parts(self, outcome: StaticCost) -> Mapping[str, float]:
        """Return the cost of each function by its name."""
        return {name: float(function.cost) for name, function in outcome.functions.items()}

    def total(self, outcome: StaticCost) -> float:
        """Return the cost of all functions."""
        return float(outcome.total("cost"))

    def to_json(self) -> dict[str, Any]:
        """Return no data: there are no settings."""
        return {}


@dataclass(frozen=True)
class RegallocEviction(Problem):
    """See :class:`nestor.problem.problem.Problem`; a group of questions is a function's."""

    def compile(self, request: Request, place: Workplace) -> Rollout:
        """Compile one module over the channel; the outcome is a ``StaticCost`` of the object."""
        return compile_module(request, place)

    def outcome_of(self, compiled: Path) -> StaticCost:
        """Count the object's instructions and accesses to memory."""
        return static_cost(function_code(compiled))

    def columns(self, outcome: StaticCost) -> Mapping[str, float]:
        """Return the sums over an object's functions."""
        return {name: float(outcome.total(name)) for name in COLUMNS}

    def scorers(
        self,
        pool: Pool,
        programs: Sequence[Program],
        rollouts: Mapping[str, Rollout],
        progress: Progress = silent,
    ) -> Scorers:
        """Score each unit by itself: no link is needed."""
        compiled = [name for name, rollout in rollouts.items() if rollout.ok]
        return Scorers(dict.fromkeys(compiled, CostOfFunctions()))

    def builds(self) -> Mapping[str, Build]:
        """Judge programs by their objects."""
        return object_builds()

    def scorer(self, data: Mapping[str, Any]) -> CostOfFunctions:
        """Return the scorer; it has no data."""
        return CostOfFunctions(**data)

    def credit(
        self,
        before: tuple[Trajectory, Mapping[str, float]],
        after: tuple[Trajectory, Mapping[str, float]],
    ) -> Credit:
        """Put a function's change in cost down to the decisions in its allocation."""
        return crediting.credit(before, after)

    def environment(self, **settings: Any) -> Any:
        """Return a Gymnasium environment whose action is the index of a candidate."""
        from nestor.environment import CompileEnvironment
        from nestor.problems.regalloc_eviction.live import LIVE

        return CompileEnvironment(LIVE, **settings)

    def describe(self, trajectory: Trajectory, row: int) -> dict[str, Any]:
        """Return one question with its function, the candidates' indices and the logit."""
        record = trajectory.decisions[row]
        number = int(record[crediting.FUNCTION])
        return {
            "function": trajectory.names.get(number, f"{number % 2**64:016x}"),
            "candidates": int(record["rows"]),
            "default": int(record["default_index"]),
            "answer": int(record["index"]),
            "logit": float(record["logit"]),
            "log_probability": float(record["log_probability"]),
        }


PROBLEM = RegallocEviction(
    name=NAME,
    summary="which live range gives up its register when none is free",
    rule=PICK,
    level="-O2",
    score="instructions and accesses to memory in the object",
    default_column=DEFAULT,
    features=FEATURES,
    report=Report(score="cost", columns=COLUMNS, unit="operations"),
    builtins=BUILTINS,
    kept_columns=crediting.COLUMNS,
    credit_unit=4.0,  # operations: about a spill and its reload
    credit_clip=60.0,
)
