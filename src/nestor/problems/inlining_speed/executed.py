"""What the calls of a run say of call sites: where inlining saves calls, and where it only costs.

A run is counted by function, not by call site: the calls from one function to another are shared
out evenly among the sites between them. What runs of a function where it was inlined is not told
apart, so only the calls in a function that was inlined nowhere, and never ran, are known to be
idle.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nestor.build.calls import Calls
from nestor.problem.overrides import Overrides
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import Site, sites_of

BYTES_OF_COST: Final = 1.2
"""Bytes of code for one unit of ``cost_estimate``; an instruction is 5 units."""
LEAST_BYTES: Final = 8.0
CALL: Final = 8.0
ARGUMENT: Final = 2.0
"""Instructions, reads and writes that a call takes, and each argument of it."""

SELDOM: Final = 2e-6
"""Calls that take no more than this part of what a run executes do not matter."""
CHEAP: Final = 40
"""A site of less ``cost_estimate`` costs about what its call does: inlined everywhere."""


@dataclass(frozen=True)
class Ranked:
    """A site that could be inlined."""

    site: Site
    saved: float
    """What its calls take of the run, in operations."""
    bytes: float
    """What inlining it adds, by estimate."""


def kept_sites(trajectories: Mapping[str, Trajectory], calls: Calls) -> list[Ranked]:
    """Return the sites that are kept and run, those first that take most for a byte."""
    between: dict[tuple[int, int], list[Site]] = defaultdict(list)
    for site in sites_of(trajectories):
        if not site.answer and (site.caller, site.callee) in calls.edges:
            between[site.caller, site.callee].append(site)
    found = []
    for edge, sites in between.items():
        number = calls.edges[edge] / len(sites)
        for site in sites:
            arguments = float(_row(trajectories, site)["callee_arguments"])
            saved = number * (CALL + ARGUMENT * arguments)
            size = LEAST_BYTES if site.last else max(LEAST_BYTES, BYTES_OF_COST * site.cost)
            found.append(Ranked(site, saved, size))
    return sorted(found, key=lambda one: (-one.saved / one.bytes, one.site.key))


def idle_sites(trajectories: Mapping[str, Trajectory], calls: Calls) -> list[Site]:
    """Return the inlined sites whose code is large and which do not run."""
    sites = sites_of(trajectories)
    elsewhere = {site.callee for site in sites if site.answer}
    return [
        site
        for site in sites
        if site.answer
        and site.cost >= CHEAP
        and not _row(trajectories, site)["callee_disappears"]
        and calls.entries.get(site.caller) == 0
        and site.caller not in elsewhere
    ]


def proposal(
    trajectories: Mapping[str, Trajectory], calls: Calls, executed: float, growth: float
) -> Overrides:
    """Return overrides that keep idle sites, and inline what may be worth ``growth`` bytes.

    :param executed: by the whole run, in operations.
    """
    found = {site.key: False for site in idle_sites(trajectories, calls)}
    left = growth
    for one in kept_sites(trajectories, calls):
        if one.saved > SELDOM * executed and one.bytes <= left:
            left -= one.bytes
            found[one.site.key] = True
    return found


def vain_sites(
    trajectories: Mapping[str, Trajectory],
    calls: Calls,
    overrides: Overrides,
    before: Mapping[int, float],
    after: Mapping[int, float],
) -> frozenset[Key]:
    """Return the sites that ``overrides`` inline though their callers gain more than calls took.

    What a callee no longer takes is shared out among the callers by their calls. Callers that
    are inlined into one another are judged together.

    :param trajectories: of the build without these overrides, as ``calls`` and ``before``.
    :param before: what each function takes, its code included; ``after``, with the overrides.
    """
    inlined = [
        site
        for site in sites_of(trajectories)
        if not site.answer and overrides.get(site.key) and (site.caller, site.callee) in calls.edges
    ]
    edges = {(site.caller, site.callee): 0 for site in inlined}
    callers = {caller for caller, _ in edges}
    group = {caller: caller for caller in callers}

    def root(function: int) -> int:
        while group[function] != function:
            function = group[function]
        return function

    into: dict[int, int] = defaultdict(int)
    for caller, callee in edges:
        into[callee] += calls.edges[caller, callee]
        if callee in callers:
            group[root(callee)] = root(caller)
    change: dict[int, float] = defaultdict(float)
    for caller in callers:
        change[root(caller)] += after.get(caller, 0.0) - before.get(caller, 0.0)
    for caller, callee in edges:
        if callee not in callers and into[callee]:
            share = calls.edges[caller, callee] / into[callee]
            change[root(caller)] += share * (after.get(callee, 0.0) - before.get(callee, 0.0))
    return frozenset(site.key for site in inlined if change[root(site.caller)] >= 0)


def _row(trajectories: Mapping[str, Trajectory], site: Site) -> Mapping[str, float]:
    module, row = site.row
    decision: Mapping[str, float] = trajectories[module].decisions[row]
    return decision
