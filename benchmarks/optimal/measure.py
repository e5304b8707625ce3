"""Measure every cluster of every small component of a program, many in each build."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.optimal.graph import Graph, Inlined
from benchmarks.optimal.record import ByMode, Part, Record, load, record_path
from benchmarks.pool import LINK
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.corpus.model import Program
from nestor.policy.names import DEFAULT
from nestor.problem.problem import Pool
from nestor.problems.inlining_size.search.components import components_of
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import ONLY, sites_of

MODES: Final = ("gc", "no-gc")
"""With no-gc every function of an object stays, so it shows bytes of objects."""

Answers = dict[Key, bool]


def enumerate_program(
    pool: Pool, program: Program, sites: int, work: Path, most_clusters: int
) -> Record:
    """Measure the components of at most ``sites`` call sites; go on from what is in ``work``.

    :param most_clusters: components of more clusters than this are left out.
    """
    path = record_path(work, program.name)
    builder = LINK.incremental(pool, program, DEFAULT, MODES)
    try:
        keep, base = _nothing_inlined(builder)
        if path.exists():
            record = load(path)
        else:
            parts = _components(builder, base, sites, most_clusters)
            level = next(o for o in pool.corpus.module(program.modules[0]).options if o[:2] == "-O")
            record = Record(program.name, program.language, level, parts)
            record.save(path)
        while batch := _batch(record):
            inlined = {
                Key(ONLY, part.keys[number]): True for part, cluster in batch for number in cluster
            }
            build = builder.build({**keep, **inlined})
            for part, cluster in batch:
                functions = part.graph.of_cluster(cluster)
                now, before = _bytes(build, functions), _bytes(base, functions)
                part.values[cluster] = {mode: now[mode] - before[mode] for mode in MODES}
            builder.keep_only(keep)
            record.save(path)
        return record
    finally:
        builder.close()


def component_bytes(build: ProgramBuild, graph: Graph) -> ByMode:
    """Return what the functions of a component take of ``build``, by mode."""
    return _bytes(build, graph.functions)


def _bytes(build: ProgramBuild, functions: frozenset[int]) -> dict[str, float]:
    return {mode: sum(own.get(f, 0) for f in functions) for mode, own in build.functions.items()}


def _nothing_inlined(builder: ProgramBuilder) -> tuple[Answers, ProgramBuild]:
    """Return overrides under which every call is kept, and the build under them."""
    keep: Answers = {}
    while True:
        build = builder.build(keep)
        callees = {site.callee for site in sites_of(build.trajectories)}
        missing = {Key("callee", callee): False for callee in callees} - keep.keys()
        if not missing:
            return keep, build
        keep |= dict.fromkeys(missing, False)


def _components(
    builder: ProgramBuilder, base: ProgramBuild, most: int, most_clusters: int
) -> list[Part]:
    """Return the components of at most ``most`` sites that the linker keeps something of."""
    stock = {site.key: site.answer for site in sites_of(builder.build({}).trajectories)}
    found = []
    for component in components_of(sites_of(base.trajectories)):
        if not 2 <= len(component.sites) <= most:
            continue
        graph = Graph(tuple((site.caller, site.callee) for site in component.sites))
        own = component_bytes(base, graph)
        if not own["gc"] or sum(1 for _ in graph.clusters()) > most_clusters:
            continue
        found.append(
            Part(
                graph,
                tuple(site.key.number for site in component.sites),
                tuple(site.cost for site in component.sites),
                own,
                stock=tuple(bool(stock.get(site.key)) for site in component.sites),
            )
        )
    return found


def _batch(record: Record) -> Sequence[tuple[Part, Inlined]]:
    """Return clusters that are not measured yet and share no function: one build shows them all."""
    batch: list[tuple[Part, Inlined]] = []
    for part in record.parts:
        taken: set[int] = set()
        for cluster in part.graph.clusters():
            functions = part.graph.of_cluster(cluster)
            if cluster not in part.values and taken.isdisjoint(functions):
                taken |= functions
                batch.append((part, cluster))
    return batch
