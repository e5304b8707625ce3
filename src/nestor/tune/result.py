"""What tuning a program comes to."""

from collections.abc import Mapping
from dataclasses import dataclass

from nestor.build.incremental import ProgramBuild
from nestor.change import change_pct, change_text
from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import Key, Overrides
from nestor.problem.problem import Problem
from nestor.problem.score import Report
from nestor.tune.search import Point


@dataclass(frozen=True)
class Tuned:
    """What came of tuning a program."""

    program: str
    policy: NamedPolicy
    """Under which the overrides apply."""
    summary: str | None
    """The text of the program's summary that the policy reads with them."""
    overrides: Overrides
    comments: Mapping[Key, str]
    stock: ProgramBuild
    best: ProgramBuild
    """Both in every mode of the build, also in those that were not searched for."""
    modes: tuple[str, ...]
    """Those that were."""
    curve: tuple[Point, ...]
    """Verified scores by whole-program compiles, stock first."""

    @property
    def other_outputs(self) -> tuple[str, ...]:
        """The modes in which the run of the result printed or left something else than stock's."""
        return self.best.other_outputs(self.stock)

    def title(self, report: Report) -> str:
        """Return what a file of the overrides says at its top."""
        lines = [f"program {self.program}", f"policy {self.policy.name} {self.policy.digest}"]
        after = self.best.scores()
        for mode, before in self.stock.scores().items():
            change = change_text(change_pct(before, after[mode]))
            stock, tuned = (f"{n:,.{report.decimals}f}" for n in (before, after[mode]))
            lines.append(
                f"{report.score} {report.unit} {mode}: {stock} stock, {tuned} tuned ({change})"
            )
        return "\n".join(lines)

    def text(self, problem: Problem) -> str:
        """Return the overrides file."""
        title = self.title(problem.report)
        return problem.overrides().to_text(self.overrides, self.comments, title)
