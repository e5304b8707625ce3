"""The results of an evaluation: sizes, programs, failures, and what follows from them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nestor.corpus.relink import LinkMode
from nestor.evaluate.statistics import (
    change_pct,
    geometric_mean_change_pct,
    paired_bootstrap_pct,
)


@dataclass(frozen=True)
class Sizes:
    """Loadable bytes of one program."""

    object: int
    """Sum over the objects of its modules."""
    linked: int
    """Of the linked program."""
    text: int
    """Code bytes of the linked program."""
    modules: Mapping[str, float]
    """What of ``linked`` is each module's, by the shares of ``rewards.linked_size``."""

    def to_json(self) -> dict[str, int]:
        """Return the sizes of the whole program."""
        return {"object": self.object, "linked": self.linked, "text": self.text}


@dataclass(frozen=True)
class ProgramResult:
    """One program under both compilers; a side that could not be linked is None."""

    name: str
    project: str
    language: str
    style: str
    """The project's, in a few words."""
    style_group: str
    """See :func:`nestor.evaluate.groups.style_group`."""
    stock: Sizes | None
    policy: Sizes | None

    @property
    def linked_change_pct(self) -> float | None:
        """Change of the linked bytes; None if a side failed."""
        if self.stock is None or self.policy is None:
            return None
        return change_pct(self.stock.linked, self.policy.linked)

    def modules(self) -> list[dict[str, Any]]:
        """Return each module's bytes of the linked program, the worst growth first."""
        if self.stock is None or self.policy is None:
            return []
        before, after = self.stock.modules, self.policy.modules
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
            "stock": self.stock.to_json() if self.stock else None,
            "policy": self.policy.to_json() if self.policy else None,
            "linked_change_pct": self.linked_change_pct,
            "modules": self.modules(),
        }


@dataclass(frozen=True)
class Failure:
    """Something that did not work."""

    what: str
    """A module or a program."""
    side: str
    reason: str


@dataclass(frozen=True)
class SmokeTests:
    """How many programs ran as the stock build does, in short runs."""

    passed: int
    failed: int
    """Each is among the evaluation's failures."""
    without: int
    """Programs of which no short run is known, or that were not linked."""


@dataclass(frozen=True)
class Evaluation:
    """A policy against stock on some programs of a corpus, linked in one mode."""

    policy: str
    mode: LinkMode
    summary: bool
    """The policy was told what the rest of the program does."""
    programs: tuple[ProgramResult, ...]
    """Worst regression first; failed programs before all."""
    failures: tuple[Failure, ...]
    compile_cpu_ratio: float | None
    """CPU seconds under the policy over stock, of the modules that both compiled."""
    decisions: int
    growth_capped: tuple[str, ...]
    """Modules in which the advisor stopped asking because the module had doubled."""
    smoke: SmokeTests | None
    """None if nothing was run."""
    hashes: Mapping[str, str | None]

    @property
    def compared(self) -> tuple[tuple[ProgramResult, Sizes, Sizes], ...]:
        """The programs that both sides linked."""
        return tuple(
            (p, p.stock, p.policy)
            for p in self.programs
            if p.stock is not None and p.policy is not None
        )

    def total(self) -> dict[str, Any]:
        """Return the change over all programs that both sides linked."""
        rows = self.compared
        if not rows:
            return {
                "object_change_pct": None,
                "linked_change_pct": None,
                "ci95": None,
                "linked_geomean_pct": None,
            }
        stock = [s.linked for _, s, _ in rows]
        policy = [p.linked for _, _, p in rows]
        return {
            "object_change_pct": change_pct(
                sum(s.object for _, s, _ in rows), sum(p.object for _, _, p in rows)
            ),
            "linked_change_pct": change_pct(sum(stock), sum(policy)),
            "ci95": list(paired_bootstrap_pct([r.project for r, _, _ in rows], stock, policy)),
            "linked_geomean_pct": geometric_mean_change_pct(stock, policy),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data (docs/reference/formats.md)."""
        return {
            "policy": self.policy,
            "link_mode": self.mode,
            "summary": self.summary,
            "programs": [p.to_json() for p in self.programs],
            "total": self.total(),
            "compile_cpu_ratio": self.compile_cpu_ratio,
            "decisions": self.decisions,
            "growth_capped": list(self.growth_capped),
            "smoke": asdict(self.smoke) if self.smoke else None,
            "failures": [asdict(f) for f in self.failures],
            "hashes": dict(self.hashes),
        }


def worst_first(result: ProgramResult) -> tuple[bool, float, str]:
    """Return what programs are sorted by: failed ones, then the largest growth."""
    change = result.linked_change_pct
    return (change is not None, -(change or 0.0), result.name)
