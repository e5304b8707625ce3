"""What the problems about register allocation have in common: compile, score, credit, overrides."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from nestor.build.build import Build
from nestor.build.objects import object_builds
from nestor.compiler.plugin import Plugin
from nestor.corpus.level import Level
from nestor.corpus.model import Program
from nestor.files import read_regular
from nestor.policy.names import NamedPolicy
from nestor.problem.identity import Way
from nestor.problem.problem import Pool, Problem
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.score import Credit, Report, Scorers
from nestor.problem.trajectory import F64, Trajectory
from nestor.progress import Progress, silent
from nestor.regalloc import credit as crediting
from nestor.regalloc.compile import compile_module
from nestor.regalloc.outcome import COLUMNS, CostOfFunctions, ModuleCost
from nestor.regalloc.override_format import AllocationOverrides
from nestor.regalloc.overrides import STOCK, Key, to_text
from nestor.regalloc.plugin_flags import Decision
from nestor.regalloc.search import AllocationSearch
from nestor.regalloc.ways import ways

REPORT: Final = Report(
    score="cost",
    columns=COLUMNS,
    unit="operations",
    quantity="operations executed, by block frequency",
    mode="",
    detail=("reads", "writes"),
)

_LARGEST_LOG: Final = 1 << 32
"""Bytes of a log that a user names; a question about eviction takes 3.5 KB."""


@dataclass(frozen=True)
class AllocationProblem(Problem):
    """A problem about register allocation; a group of questions is a function's."""

    decision: Decision = field(kw_only=True)
    """Which of the allocator's questions."""
    levels: tuple[Level, ...] = field(default=("-O2", "-O1", "-O3", "-Os", "-Oz"), kw_only=True)
    score: str = field(
        default="instructions and accesses to memory that the functions will execute", kw_only=True
    )
    report: Report = field(default=REPORT, kw_only=True)
    kept_columns: tuple[str, ...] = field(default=crediting.COLUMNS, kw_only=True)
    credit_unit: float = field(default=4.0, kw_only=True)
    """In operations: about a spill and its reload, executed once."""
    credit_clip: float = field(default=60.0, kw_only=True)
    together: bool = field(default=True, kw_only=True)
    tries: bool = field(default=True, kw_only=True)
    labels: int = field(default=0, kw_only=True)
    """Trials per function, of other answers to its questions, whose costs trajectories get; 0 for
    none. They cost an allocation of the function each, and credit becomes exact for them."""

    @abstractmethod
    def parse_log(self, data: bytes, name: str) -> Trajectory:
        """Parse the log of questions of one module.

        :param name: of the file, for errors.
        :raises LogError: if it is no log, is malformed, or was cut short.
        """

    def read_log(self, path: Path) -> Trajectory:
        """Read a log that the plugin wrote."""
        return self.parse_log(read_regular(path, "a log", limit=_LARGEST_LOG), str(path))

    def compile(self, request: Request, place: Workplace) -> Rollout:
        """Compile one module with the plugin; the outcome is a ``ModuleCost``."""
        return compile_module(request, place, self.decision, self.read_log, self.labels)

    def columns(self, outcome: ModuleCost) -> Mapping[str, float]:
        """Return the sums over a module's functions, weighted by how often they are called."""
        return outcome.columns()

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

    def scorer(self, data: Mapping[str, Any]) -> CostOfFunctions:
        """Return the scorer; it has no data."""
        return CostOfFunctions(**data)

    def builds(self) -> Mapping[str, Build]:
        """Judge programs by what their modules' functions execute."""
        return object_builds()

    def credit(
        self,
        before: tuple[Trajectory, Mapping[str, float]],
        after: tuple[Trajectory, Mapping[str, float]],
    ) -> Credit:
        """Put a function's change in cost down to the decisions in its allocation."""
        return crediting.credit(before, after)

    def tried(self, outcome: ModuleCost) -> Mapping[str, F64]:
        """Return the cost of the functions that were tried, over that of stock's allocation."""
        return {f.name: np.array(f.tried[1:]) for f in outcome.functions if f.tried}

    def only(self, trajectory: Trajectory, parts: Collection[str]) -> str:
        """Return overrides that leave all functions but ``parts`` to stock."""
        others = [number for number, name in trajectory.names.items() if name not in parts]
        return to_text({Key("function", number): STOCK for number in others})

    def ways(self, plugin: Plugin, policy: NamedPolicy, folder: Path) -> Sequence[Way]:
        """Return the plugin's ways."""
        return ways(plugin, policy, folder, self.decision, self.read_log)

    def function_name(self, trajectory: Trajectory, question: int) -> str:
        """Return the name, or the id in hexadecimal digits, of the function that was allocated."""
        number = int(trajectory.decisions[crediting.FUNCTION][question]) % 2**64
        return trajectory.names.get(number, f"{number:016x}")

    def overrides(self) -> AllocationOverrides:
        """Return overrides by module, by function and by question of a function."""
        return AllocationOverrides("evict" if self.decision == "eviction" else "priority")

    def compiler_search(self) -> AllocationSearch:
        """Return the plugin's search over the answers to this problem's questions."""
        return AllocationSearch(self.decision)
