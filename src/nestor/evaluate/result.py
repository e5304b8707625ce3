"""The results of an evaluation: what programs come to, failures, and what follows from them."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nestor.change import change_pct
from nestor.evaluate.statistics import geometric_mean_change_pct, paired_bootstrap_pct
from nestor.problem.score import Report


@dataclass(frozen=True)
class Outcome:
    """What one program comes to under one compiler."""

    columns: Mapping[str, float]
    """By the columns of the report."""
    units: Mapping[str, float] = field(default_factory=dict)
    """What of the score is each unit's; empty where units cannot be told apart."""


@dataclass(frozen=True)
class ProgramResult:
    """One program under both compilers; a side that could not be built is None."""

    name: str
    project: str
    language: str
    style: str
    """The project's, in a few words."""
    style_group: str
    """See :func:`nestor.evaluate.groups.style_group`."""
    stock: Outcome | None
    policy: Outcome | None
    report: Report = field(repr=False)
    """What the columns are."""

    @property
    def change_pct(self) -> float | None:
        """Change of the score; None if a side failed."""
        return self.column_change_pct(self.report.score)

    def column_change_pct(self, column: str) -> float | None:
        """Return the change of one column; None if a side failed."""
        if self.stock is None or self.policy is None:
            return None
        return change_pct(self.stock.columns[column], self.policy.columns[column])

    def units(self) -> list[dict[str, Any]]:
        """Return each unit's part of the score, the worst growth first."""
        if self.stock is None or self.policy is None:
            return []
        before, after = self.stock.units, self.policy.units
        names = sorted(before, key=lambda name: (before[name] - after[name], name))
        return [
            {"name": n, "stock": round(before[n], 1), "policy": round(after[n], 1)} for n in names
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the program as plain data."""
        return {
            "name": self.name,
            "project": self.project,
            "language": self.language,
            "style": self.style,
            "style_group": self.style_group,
            "stock": dict(self.stock.columns) if self.stock else None,
            "policy": dict(self.policy.columns) if self.policy else None,
            f"{self.report.score}_change_pct": self.change_pct,
            "modules": self.units(),
        }


@dataclass(frozen=True)
class Failure:
    """Something that did not work."""

    what: str
    """A unit or a program."""
    side: str
    reason: str


@dataclass(frozen=True)
class SmokeTests:
    """How many programs ran as the stock build does, in short runs."""

    passed: int
    failed: int
    """Each is among the evaluation's failures."""
    without: int
    """Programs for which the corpus has no short run, or that were not built."""


@dataclass(frozen=True)
class Evaluation:
    """A policy against stock on some programs of a corpus, in one mode of one build."""

    policy: str
    mode: str
    summary: bool
    """The policy was given summaries of the programs."""
    programs: tuple[ProgramResult, ...]
    """Worst regression first; failed programs before all."""
    failures: tuple[Failure, ...]
    compile_cpu_ratio: float | None
    """CPU seconds under the policy over stock, of what both compiled."""
    decisions: int
    remarks: Mapping[str, tuple[str, ...]]
    """By the key of each of the report's remarks, the units that it is true of."""
    smoke: SmokeTests | None
    """None if nothing was run."""
    hashes: Mapping[str, str | None]
    problem: str
    build: str
    """The name of the way in which the programs were built."""
    report: Report
    """What the columns are."""

    def compared(self) -> Iterator[tuple[ProgramResult, Mapping[str, float], Mapping[str, float]]]:
        """Return the programs that both sides built, with their columns."""
        for program in self.programs:
            if program.stock is not None and program.policy is not None:
                yield program, program.stock.columns, program.policy.columns

    def total(self) -> dict[str, Any]:
        """Return the change over all programs that both sides built.

        ``ci95`` is None where they are of one project.
        """
        rows = list(self.compared())
        score = self.report.score
        result: dict[str, Any] = {
            f"{column}_change_pct": change_pct(
                sum(stock[column] for _, stock, _ in rows),
                sum(policy[column] for _, _, policy in rows),
            )
            if rows
            else None
            for column in self.report.columns
        }
        result |= {"ci95": None, f"{score}_geomean_pct": None}
        if rows:
            stock = [columns[score] for _, columns, _ in rows]
            policy = [columns[score] for _, _, columns in rows]
            projects = [program.project for program, _, _ in rows]
            if len(set(projects)) > 1:  # one says nothing of how projects differ
                result["ci95"] = list(paired_bootstrap_pct(projects, stock, policy))
            result[f"{score}_geomean_pct"] = geometric_mean_change_pct(stock, policy)
        return result

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data (docs/reference/formats.md)."""
        return {
            "problem": self.problem,
            "policy": self.policy,
            "build": self.build,
            "link_mode": self.mode,
            "score": self.report.score,
            "summary": self.summary,
            "programs": [p.to_json() for p in self.programs],
            "total": self.total(),
            "compile_cpu_ratio": self.compile_cpu_ratio,
            "decisions": self.decisions,
            **{key: list(units) for key, units in self.remarks.items()},
            "smoke": asdict(self.smoke) if self.smoke else None,
            "failures": [asdict(f) for f in self.failures],
            "hashes": dict(self.hashes),
        }


def worst_first(result: ProgramResult) -> tuple[bool, float, str]:
    """Return what programs are sorted by: failed ones, then the largest growth."""
    change = result.change_pct
    return (change is not None, -(change or 0.0), result.name)
