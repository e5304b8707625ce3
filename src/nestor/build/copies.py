"""Programs as parts of larger ones: what the same objects weigh if more modules hold copies.

A module does not know how many others hold a copy of a COMDAT function. A policy may get rid of its
own copy by putting the code elsewhere. That saves something only if all other copies go too, and
what it adds elsewhere is added in each module. So a policy that makes a program of few modules
smaller may make one of many larger. Here the objects of one program are weighed as if every COMDAT
function had at least so many copies: each counts that much less, and all else counts in full.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from nestor.build.assembly import Assembly, failed_assembly, measured_functions
from nestor.build.link import LinkBuild, link_rollouts
from nestor.build.linking import LINKED, TEXT, Shares, shares
from nestor.compiler.objects import Measure
from nestor.corpus.model import Program
from nestor.problem.problem import Pool
from nestor.problem.rollout import Rollout
from nestor.problem.trajectory import Trajectory

_LEAST: Final[Mapping[str, int]] = {f"copies-{count}": count for count in (3, 10, 100)}
"""The least copies of each COMDAT function by mode."""


@dataclass(frozen=True)
class CopiesBuild(LinkBuild):
    """Links, and also weighs as parts of larger programs (:class:`nestor.build.build.Build`)."""

    name: ClassVar[str] = "copies"
    modes: ClassVar[tuple[str, ...]] = (*LinkBuild.modes, *_LEAST)

    def assemble(
        self,
        pool: Pool,
        program: Program,
        rollouts: Mapping[str, Rollout],
        mode: str,
        keep: bool = False,
    ) -> Assembly:
        """Link ``program``; in the modes of more copies weigh the functions of the link ``gc``."""
        if mode not in _LEAST:
            return super().assemble(pool, program, rollouts, mode, keep)
        linked, kept = link_rollouts(pool, program, rollouts, "gc", keep)
        if linked.measure is None:
            return failed_assembly(linked.failure or "not linked")
        sizes: dict[str, Measure] = {name: done.outcome for name, done in rollouts.items()}
        weights = shares(program, linked, sizes, _LEAST[mode])
        scores = {name: weights.score(name, own) for name, own in sizes.items()}
        code = sum(weights.code(name, own) for name, own in sizes.items())
        return Assembly(
            {LINKED: sum(scores.values()), TEXT: code},
            None,
            lambda: scores,
            lambda logs: _functions(weights, sizes, logs),
            kept,
        )


def _functions(
    weights: Shares, sizes: Mapping[str, Measure], logs: Mapping[str, Trajectory]
) -> dict[int, float]:
    """Return what the copies of each function weigh together, by function id."""
    found: defaultdict[int, float] = defaultdict(float)
    for name, function, number in measured_functions(sizes, logs):
        weight = weights.functions.get((name, function.name))
        if weight:
            found[number] += weight * function.size
    return dict(found)
