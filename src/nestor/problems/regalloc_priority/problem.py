"""Allocation order: how early each live range gets a register, judged by what will execute."""

from dataclasses import dataclass
from typing import Any

from nestor.policy.rule import VALUE
from nestor.problem.trajectory import Trajectory
from nestor.problems.regalloc_priority import log
from nestor.problems.regalloc_priority.builtins import BUILTINS, NAME
from nestor.problems.regalloc_priority.features import DEFAULT, FEATURES
from nestor.regalloc.problem import AllocationProblem


@dataclass(frozen=True)
class RegallocPriority(AllocationProblem):
    """See :class:`nestor.regalloc.problem.AllocationProblem`."""

    def parse_log(self, data: bytes, name: str) -> Trajectory:
        """Parse a log of priorities."""
        return log.parse(data, name)

    def describe(self, trajectory: Trajectory, row: int) -> dict[str, Any]:
        """Return one live range with its function, its stock priority and the one it was given."""
        record = trajectory.decisions[row]
        return {
            "function": self.function_name(trajectory, row),
            "question": int(record["question"]),
            "stock_priority": int(record[log.STOCK_PRIORITY]),
            "priority": int(record[log.PRIORITY]),
            "answer": float(record["answer"]),
            "overridden": bool(record["overridden"]),
            "log_probability": float(record["log_probability"]),
        }


PROBLEM = RegallocPriority(
    name=NAME,
    summary="how early each live range is allocated",
    decision="priority",
    rule=VALUE,
    default_column=DEFAULT,
    features=FEATURES,
    builtins=BUILTINS,
)
