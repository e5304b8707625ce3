"""Changes by language and style of code: what a policy does to code unlike its training's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nestor.corpus.model import Corpus, Program
from nestor.corpus.relink import LinkMode
from nestor.evaluate.result import Evaluation, ProgramResult, worst_first
from nestor.evaluate.statistics import geometric_mean_change_pct

ALL = "all"
"""The group of every program."""


@dataclass(frozen=True)
class Group:
    """The programs of one language and style under one policy, linked in one mode."""

    name: str
    policy: str
    mode: LinkMode
    least_bytes: int
    """Linked bytes of a stock program from which on it counts."""
    programs: int
    """That count and that both sides linked."""
    failed: tuple[str, ...]
    """Programs that a side did not link, of any size that is not known to be too small."""
    linked_geomean_pct: float | None
    text_geomean_pct: float | None
    worst: ProgramResult | None
    """Of those that count, the one that grew most."""

    def to_json(self) -> dict[str, Any]:
        """Return the group as plain data (docs/reference/formats.md)."""
        worst = self.worst
        return {
            "group": self.name,
            "policy": self.policy,
            "link_mode": self.mode,
            "least_bytes": self.least_bytes,
            "programs": self.programs,
            "failed": list(self.failed),
            "linked_geomean_pct": self.linked_geomean_pct,
            "text_geomean_pct": self.text_geomean_pct,
            "worst": worst and {"name": worst.name, "linked_change_pct": worst.linked_change_pct},
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


def groups(evaluations: Sequence[Evaluation], least_bytes: int) -> tuple[Group, ...]:
    """Sum up by group, all programs first; within a group in the order of ``evaluations``.

    Groups without a program that counts or failed are left out.
    """
    names = sorted({p.style_group for e in evaluations for p in e.programs})
    made = [_group(name, e, least_bytes) for name in (ALL, *names) for e in evaluations]
    counted = {g.name for g in made if g.programs or g.failed}
    return tuple(g for g in made if g.name in counted)


def _group(name: str, evaluation: Evaluation, least_bytes: int) -> Group:
    members = [
        p
        for p in evaluation.programs
        if name in (ALL, p.style_group) and (p.stock is None or p.stock.linked >= least_bytes)
    ]
    rows = [(p, p.stock, p.policy) for p in members if p.stock and p.policy]
    return Group(
        name=name,
        policy=evaluation.policy,
        mode=evaluation.mode,
        least_bytes=least_bytes,
        programs=len(rows),
        failed=tuple(p.name for p in members if not (p.stock and p.policy)),
        linked_geomean_pct=geometric_mean_change_pct(
            [s.linked for _, s, _ in rows], [p.linked for _, _, p in rows]
        )
        if rows
        else None,
        text_geomean_pct=geometric_mean_change_pct(
            [s.text for _, s, _ in rows], [p.text for _, _, p in rows]
        )
        if rows
        else None,
        worst=min((p for p, _, _ in rows), key=worst_first, default=None),
    )
