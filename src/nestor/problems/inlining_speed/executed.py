"""What the calls of a run say of call sites: where inlining saves calls, and where it only costs.

A run is counted by function, not by call site: the calls from one function to another are shared
out evenly among the sites between them. What runs of a function where it was inlined is not told
apart, so which inlined calls are cold is told by a run of the program in which nothing is inlined.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nestor.build.calls import Calls
from nestor.problem.overrides import Overrides
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.score.reach import Reach
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
COLD: Final = 0.01
"""Calls that are reached in no more than this part of the entries of their function are cold."""
SURE: Final = 1000
"""So many entries of a function tell which of its calls are seldom reached."""
HOT: Final = 0.01
"""A function that ran and has this part of the score tells it, too."""
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


def written_calls(plain: Mapping[str, Trajectory], calls: Calls) -> Calls:
    """Return what a run in which nothing is inlined tells of the calls that were written.

    :param plain: the trajectories of that build, and ``calls`` those of its run.
    """
    pairs = {(site.caller, site.callee) for site in sites_of(plain)}
    edges = {pair: calls.edges.get(pair, 0) for pair in pairs if pair[1] in calls.entries}
    return Calls(edges, calls.entries)


def _is_cold(written: Calls, caller: int, callee: int) -> bool:
    """Tell whether the calls in a function that is often entered are next to never reached."""
    reached = written.edges.get((caller, callee))
    entries = written.entries.get(caller, 0)
    return reached is not None and entries >= SURE and reached <= COLD * entries


def cold_sites(trajectories: Mapping[str, Trajectory], written: Calls) -> list[Site]:
    """Return the inlined sites whose code is large and whose calls are next to never reached.

    Of a function that never ran nothing is said: another input may spend its time there.
    """
    origins = written_in(trajectories)

    def is_cold(site: Site) -> bool:
        origin = origins.get(site.key.number)
        return origin is not None and _is_cold(written, origin, site.callee)

    return [
        site
        for site in sites_of(trajectories)
        if site.answer
        and site.cost >= CHEAP
        and not _row(trajectories, site)["callee_disappears"]
        and is_cold(site)
    ]


def proposal(
    trajectories: Mapping[str, Trajectory],
    calls: Calls,
    written: Calls | None,
    executed: float,
    growth: float,
) -> Overrides:
    """Return overrides that keep cold sites, and inline what may be worth ``growth`` bytes.

    :param calls: of a run of this build; ``written``, of one in which nothing is inlined.
    :param executed: by the whole run, in operations.
    """
    cold = [] if written is None else cold_sites(trajectories, written)
    found = {site.key: False for site in cold}
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


def vain_cold_sites(
    trajectories: Mapping[str, Trajectory],
    reach: Reach,
    overrides: Overrides,
    before: Mapping[int, float],
    after: Mapping[int, float],
) -> frozenset[Key]:
    """Return the sites that ``overrides`` keep though what holds the caller takes more for it.

    A call that is kept may cost more than itself: what it is given cannot stay in registers.

    :param trajectories: of the build without these overrides, as ``reach`` and ``before``.
    :param before: what each function takes, its code included; ``after``, with the overrides.
    """
    kept = [
        site for site in sites_of(trajectories) if site.answer and overrides.get(site.key) is False
    ]
    change = {
        caller: sum(after.get(f, 0.0) - before.get(f, 0.0) for f in reach.above(caller))
        for caller in {site.caller for site in kept}
    }
    return frozenset(site.key for site in kept if change[site.caller] > 0)


def written_in(trajectories: Mapping[str, Trajectory]) -> Mapping[int, int]:
    """Return the function in which the call of each site was written, by the site's key.

    Sites whose call was written where no question was asked are left out.
    """
    copied: dict[int, int] = {}
    callers: dict[int, int] = {}
    for trajectory in trajectories.values():
        rows = trajectory.decisions
        columns = (rows[column].view("<u8").tolist() for column in ("site", "caller", "copy_of"))
        for site, caller, original in zip(*columns, strict=True):
            callers.setdefault(site, caller)
            if original and original != site:
                copied.setdefault(site, original)
    found = {}
    for site in callers:
        original, seen = site, {site}
        while (before := copied.get(original)) is not None and before not in seen:
            original = before
            seen.add(before)
        if original in callers:
            found[site] = callers[original]
    return found


def _row(trajectories: Mapping[str, Trajectory], site: Site) -> Mapping[str, float]:
    module, row = site.row
    decision: Mapping[str, float] = trajectories[module].decisions[row]
    return decision
