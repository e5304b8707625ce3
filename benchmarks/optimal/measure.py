"""Measure every cluster of every small component of a program, many in each build."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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
from nestor.problems.inlining_size.search.sites import ONLY, Site, sites_of

MODES: Final = ("gc", "no-gc")
"""With no-gc every function of an object stays, so it shows bytes of objects."""

Answers = dict[Key, bool]


def enumerate_program(
    pool: Pool, program: Program, sites: int, work: Path, most_clusters: int
) -> Record:
    """Measure the components of two to ``sites`` call sites; go on from what is in ``work``.

    Those of a module of which another program is known in ``work`` are not measured again.

    :param most_clusters: where there are more clusters than this, those with copies are left out.
    """
    path = record_path(work, program.name)
    builder = LINK.incremental(pool, program, DEFAULT, MODES)
    try:
        keep, base = _nothing_inlined(builder)
        if path.exists():
            record = load(path)
        else:
            known = {part.own_keys for part in _parts(work)}
            parts = [one for one in _components(builder, base, sites) if one.own_keys not in known]
            level = next(o for o in pool.corpus.module(program.modules[0]).options if o[:2] == "-O")
            record = Record(program.name, program.language, level, parts)
            record.save(path)
        waiting = [_Waiting(part, most_clusters) for part in record.parts]
        while batch := [(one.part, cluster) for one in waiting for cluster in one.next()]:
            inlined = {
                Key(ONLY, part.keys[number]): True for part, cluster in batch for number in cluster
            }
            keep, build = _all_else_kept(builder, keep, inlined)
            asked = sites_of(build.trajectories)
            for part, cluster in batch:
                _note(part, cluster, build, base, asked)
            builder.keep_only(keep)
            record.save(path)
        record.save(path)
        return record
    finally:
        builder.close()


def _parts(work: Path) -> Iterable[Part]:
    """Yield the components of all programs that were measured."""
    for path in sorted(work.glob("*.json")):
        yield from load(path).parts


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


def _all_else_kept(
    builder: ProgramBuilder, keep: Answers, inlined: Mapping[Key, bool]
) -> tuple[Answers, ProgramBuild]:
    """Return the build under which ``inlined`` are inlined, and what keeps all other calls.

    Calls through pointers may become calls that are asked about.
    """
    while True:
        build = builder.build({**keep, **inlined})
        sites = sites_of(build.trajectories)
        further = {Key("callee", s.callee) for s in sites if s.answer and s.key not in inlined}
        if further <= keep.keys():
            return keep, build
        keep = keep | dict.fromkeys(further, False)


def _components(builder: ProgramBuilder, base: ProgramBuild, most: int) -> list[Part]:
    """Return the components of at most ``most`` sites that the linker keeps something of."""
    stock = {site.key: site.answer for site in sites_of(builder.build({}).trajectories)}
    found = []
    for component in components_of(sites_of(base.trajectories)):
        if not 2 <= len(component.sites) <= most:
            continue
        graph = Graph(tuple((site.caller, site.callee) for site in component.sites))
        own = component_bytes(base, graph)
        if own["gc"]:
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


def _note(
    part: Part, cluster: Inlined, build: ProgramBuild, base: ProgramBuild, asked: Sequence[Site]
) -> None:
    """Keep what ``cluster`` weighs in ``build``, and the copies of calls that it has."""
    functions = part.graph.of_cluster(cluster)
    now, before = _bytes(build, functions), _bytes(base, functions)
    part.values[cluster] = {mode: now[mode] - before[mode] for mode in MODES}
    numbers = {key: number for number, key in enumerate(part.keys)}
    own = part.graph.functions
    offered = set()
    for site in asked:
        # A copy that calls a function outside of the component stays a call.
        if not site.copy or site.answer or site.caller not in functions or site.callee not in own:
            continue
        key = site.key.number
        if key not in numbers:
            numbers[key] = len(part.keys)
            part.keys += (key,)
            part.costs += (site.cost,)
            further = (*part.graph.sites, (site.caller, site.callee))
            part.graph = replace(part.graph, sites=further, copies=part.graph.copies + 1)
        offered.add(numbers[key])
    part.offers[cluster] = frozenset(offered)


class _Waiting:
    """The clusters of one component that are to be measured."""

    def __init__(self, part: Part, most: int):
        self.part = part
        self._most = most
        self._clusters = [c for c in part.graph.clusters() if c not in part.values]

    def next(self) -> Sequence[Inlined]:
        """Return clusters that share no function: one build shows them all."""
        part = self.part
        if not self._clusters and part.exact:
            self._clusters = list(part.graph.with_copies(part.offers))
            if len(part.values) + len(self._clusters) > self._most:
                self._clusters, part.exact = [], False
        batch: list[Inlined] = []
        later: list[Inlined] = []
        taken: set[int] = set()
        for cluster in self._clusters:
            functions = part.graph.of_cluster(cluster)
            if taken.isdisjoint(functions):
                taken |= functions
                batch.append(cluster)
            else:
                later.append(cluster)
        self._clusters = later
        return batch
