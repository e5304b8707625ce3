"""Register eviction: which live range gives up its register at -O2, judged by what will execute."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nestor.compiler.plugin import Plugin
from nestor.policy.names import NamedPolicy
from nestor.policy.rule import PICK
from nestor.problem.identity import Way
from nestor.problem.trajectory import Trajectory
from nestor.problems.regalloc_eviction import log
from nestor.problems.regalloc_eviction.builtins import BUILTINS, NAME
from nestor.problems.regalloc_eviction.channel import channel_ways
from nestor.problems.regalloc_eviction.features import FEATURES
from nestor.problems.regalloc_eviction.question import DEFAULT
from nestor.regalloc.credit import INDEX
from nestor.regalloc.problem import AllocationProblem


@dataclass(frozen=True)
class RegallocEviction(AllocationProblem):
    """See :class:`nestor.regalloc.problem.AllocationProblem`."""

    def parse_log(self, data: bytes, name: str) -> Trajectory:
        """Parse a log of questions about eviction."""
        return log.parse(data, name)

    def ways(self, plugin: Plugin, policy: NamedPolicy, folder: Path) -> Sequence[Way]:
        """Return the plugin's ways, and the channel's for policies that it can serve."""
        return (*super().ways(plugin, policy, folder), *channel_ways(policy))

    def environment(self, **settings: Any) -> Any:
        """Return a Gymnasium environment whose action is the index of a candidate."""
        from nestor.environment import CompileEnvironment
        from nestor.problems.regalloc_eviction.live import LIVE

        return CompileEnvironment(LIVE, **settings)

    def describe(self, trajectory: Trajectory, row: int) -> dict[str, Any]:
        """Return one question with its function, the candidates' indices and the logit."""
        record = trajectory.decisions[row]
        return {
            "function": self.function_name(trajectory, row),
            "question": int(record["question"]),
            "candidates": int(record["rows"]),
            "default": int(record["default_index"]),
            "answer": int(record[INDEX]),
            "overridden": bool(record["overridden"]),
            "logit": float(record["logit"]),
            "log_probability": float(record["log_probability"]),
        }


PROBLEM = RegallocEviction(
    name=NAME,
    summary="which live range gives up its register when none is free",
    decision="eviction",
    rule=PICK,
    default_column=DEFAULT,
    features=FEATURES,
    builtins=BUILTINS,
)
