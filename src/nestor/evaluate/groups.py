"""Changes by language and style of code: what a policy does to code unlike its training's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nestor.corpus.model import Corpus, Program
from nestor.evaluate.result import Evaluation, ProgramResult, worst_first
from nestor.evaluate.statistics import geometric_mean_change_pct
from nestor.problem.score import Report

ALL = "all"
"""The group of every program."""


@dataclass(frozen=True)
class Group:
    """The programs of one language and style under one policy, built in one mode."""

    name: str
    policy: str
    mode: str
    least: float
    """The score of a stock program from which on it counts."""
    programs: int
    """That count and that both sides built."""
    failed: tuple[str, ...]
    """Programs that a side did not build, unless stock's score shows that they do not count."""
    geomean_pct: Mapping[str, float | None]
    """Change of the geometric mean, by column of the report; None without programs."""
    worst: ProgramResult | None
    """Of those that count, the one that grew most."""
    report: Report
    """What the columns are."""

    def to_json(self) -> dict[str, Any]:
        """Return the group as plain data (docs/reference/formats.md)."""
        worst = self.worst
        return {
            "group": self.name,
            "policy": self.policy,
            "link_mode": self.mode,
            f"least_{self.report.unit}": self.least,
            "programs": self.programs,
            "failed": list(self.failed),
            **{f"{column}_geomean_pct": mean for column, mean in self.geomean_pct.items()},
            "worst": worst
            and {"name": worst.name, f"{self.report.score}_change_pct": worst.change_pct},
        }


def style_group(corpus: Corpus, program: Program) -> str:
    """Return ``"C"``, ``"C++, KIND"`` for a kind that training has, or what C++ it is otherwise.

    The kind is what stands before the colon of ``Project.style``; behind it is what is particular
    to the project. Training has it if some project of the split "train" is of that kind.
    """
    if program.language != "c++":
        return "C"
    kind = _kind(corpus.project(program.project).style)
    if not kind:
        return "C++, style unknown"
    seen = any(_kind(p.style) == kind for p in corpus.projects if p.split == "train")
    return f"C++, {kind}" if seen else "C++, style unseen"


def _kind(style: str) -> str:
    return style.partition(":")[0].strip()


def groups(evaluations: Sequence[Evaluation], least: float) -> tuple[Group, ...]:
    """Sum up by group, all programs first; within a group in the order of ``evaluations``.

    Groups without a program that counts or failed are left out.

    :param least: the score of a stock program from which on it counts.
    """
    names = sorted({p.style_group for e in evaluations for p in e.programs})
    found = [_group(name, e, least) for name in (ALL, *names) for e in evaluations]
    counted = {g.name for g in found if g.programs or g.failed}
    return tuple(g for g in found if g.name in counted)


def _group(name: str, evaluation: Evaluation, least: float) -> Group:
    report = evaluation.report
    members = [
        p
        for p in evaluation.programs
        if name in (ALL, p.style_group)
        and (p.stock is None or p.stock.columns[report.score] >= least)
    ]
    rows = [(p, p.stock.columns, p.policy.columns) for p in members if p.stock and p.policy]
    return Group(
        name=name,
        policy=evaluation.policy,
        mode=evaluation.mode,
        least=least,
        programs=len(rows),
        failed=tuple(p.name for p in members if not (p.stock and p.policy)),
        geomean_pct={
            column: geometric_mean_change_pct(
                [stock[column] for _, stock, _ in rows], [policy[column] for _, _, policy in rows]
            )
            if rows
            else None
            for column in report.columns
        },
        worst=min((p for p, _, _ in rows), key=worst_first, default=None),
        report=report,
    )
