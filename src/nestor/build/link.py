"""Programs linked from stand-alone objects, as their recorded link lines say."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, cast, get_args

from nestor.build.assembly import Assembly, failed_assembly, measured_functions
from nestor.build.linking import LINKED, TEXT, Link, link, shares
from nestor.build.unit_build import UnitBuild
from nestor.compiler.objects import Function, Measure
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.problem.problem import Pool
from nestor.problem.rollout import Rollout
from nestor.problem.trajectory import Trajectory
from nestor.temporary import temporary_folder


@dataclass(frozen=True)
class LinkBuild(UnitBuild):
    """Links the objects of a program's modules (:class:`nestor.build.build.Build`).

    It is for problems whose outcome is a :class:`nestor.compiler.objects.Measure`.
    """

    name: ClassVar[str] = "link"
    modes: ClassVar[tuple[str, ...]] = get_args(LinkMode)
    options: ClassVar[str] = "-ffunction-sections -fdata-sections"

    def assemble(
        self,
        pool: Pool,
        program: Program,
        rollouts: Mapping[str, Rollout],
        mode: str,
        keep: bool = False,
    ) -> Assembly:
        """Link ``program`` and read from the linker's map what it kept of each module."""
        linked, kept = link_rollouts(pool, program, rollouts, cast(LinkMode, mode), keep)
        if linked.measure is None:
            return failed_assembly(linked.failure or "not linked")
        sizes: dict[str, Measure] = {name: done.outcome for name, done in rollouts.items()}
        columns = {LINKED: linked.measure.loadable, TEXT: linked.measure.text}

        @cache
        def scores() -> Mapping[str, float]:
            weights = shares(program, linked, sizes)
            return {name: weights.score(name, own) for name, own in sizes.items()}

        return Assembly(columns, None, scores, lambda logs: _functions(linked, sizes, logs), kept)


def link_rollouts(
    pool: Pool,
    program: Program,
    rollouts: Mapping[str, Rollout],
    mode: LinkMode,
    keep: bool = False,
) -> tuple[Link, str | None]:
    """Link ``program`` from the kept objects of ``rollouts``, and say which functions it keeps.

    :param keep: keep the binary in the pool's store of objects.
    :return: the link, and the SHA-256 of the binary; None if it is not kept or not linked.
    """
    with temporary_folder("binary") as folder:
        binary = Path(folder) / "program"
        linked = link(
            pool.plugin.toolchain,
            pool.corpus,
            program,
            {n: pool.objects.path(r.object) for n, r in rollouts.items() if r.object},
            mode=mode,
            out=binary if keep else None,
            want_kept=True,
            limits=pool.limits,
        )
        kept = pool.objects.put(binary) if keep and linked.measure is not None else None
    return linked, kept


def _functions(
    linked: Link, sizes: Mapping[str, Measure], logs: Mapping[str, Trajectory]
) -> dict[int, int]:
    """Return what each function takes of one link, by function id."""
    found: defaultdict[int, int] = defaultdict(int)
    for function, number in kept_functions(linked, sizes, logs):
        found[number] += function.size
    return dict(found)


def kept_functions(
    linked: Link, sizes: Mapping[str, Measure], logs: Mapping[str, Trajectory]
) -> Iterator[tuple[Function, int]]:
    """Yield the functions of the units' objects that the link keeps, with their ids."""
    for name, function, number in measured_functions(sizes, logs):
        if (name, function.name) in linked.kept:
            yield function, number
