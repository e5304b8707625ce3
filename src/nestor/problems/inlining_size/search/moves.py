"""The moves of inlining: one site, or all sites of a callee, answered the other way."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nestor.build.incremental import ProgramBuild
from nestor.compiler.toolchain import Toolchain
from nestor.policy.names import NamedPolicy
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search import sites as own
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import Site, SiteReach, pins_of, sites_of
from nestor.tune.moves import Candidate, Move, Reach

FAR_FROM_DEFAULT = 160
"""A site of more ``cost_estimate`` than this is hardly ever worth inlining for size."""

_THRESHOLD = 5
"""The stock heuristic inlines for size where ``cost_estimate`` is below this."""

_SHARED_CALLEE = 4
"""A callee of more sites than this will not disappear because one of them goes."""


@dataclass(frozen=True)
class SiteMoves:
    """The moves of inlining (:class:`nestor.tune.moves.MoveSource`)."""

    starts: tuple[str, ...] = ("threshold:0", "threshold:15", "threshold:25")
    """The sweep that a search from the default must beat; the default itself is threshold:5."""

    def reach(self, *builds: Mapping[str, Trajectory]) -> SiteReach:
        """Return the reach of moves between builds with these trajectories."""
        return SiteReach(*builds)

    def candidates(
        self, trajectories: Mapping[str, Trajectory], reach: Reach, scale: float
    ) -> Sequence[Sequence[Candidate]]:
        """Return the moves of callees, and those of single sites.

        :param scale: half the cost units, or the logit, that make a distance of 1.
        """
        sites = sites_of(trajectories)
        uses = Counter(site.callee for site in sites)

        def candidate(move: Move, members: Sequence[Site]) -> Candidate:
            claims = reach.of(move)
            if len(members) == 1 and uses[members[0].callee] > _SHARED_CALLEE:
                claims -= {members[0].callee}
            distance = sum(_distance(site, scale) for site in members) / len(members)
            return Candidate(move, claims, distance)

        def candidates(moves: Iterable[Move]) -> list[Candidate]:
            return [candidate(m, [q for q in m.questions if isinstance(q, Site)]) for m in moves]

        return candidates(callee_moves(sites)), candidates(site_moves(sites))

    def pins(self, trajectories: Mapping[str, Trajectory]) -> dict[Key, bool]:
        """Return the answer of every site whose copies in all modules agree."""
        return pins_of(trajectories)

    def effective(self, build: ProgramBuild, policy: NamedPolicy) -> dict[Key, bool]:
        """Return the overrides of ``build`` without those that change no answer of ``policy``."""
        return own.effective(build.overrides, build.trajectories, policy)

    def comments(self, toolchain: Toolchain, build: ProgramBuild) -> Mapping[Key, str]:
        """Return what each override of ``build`` is about, in the names of the source."""
        return own.comments(toolchain, build.overrides, build.trajectories)


def site_moves(sites: Iterable[Site]) -> list[Move]:
    """Return the moves that turn one site around."""
    return [
        Move(site.key, not site.answer, (site,))
        for site in sites
        if site.answer or site.cost <= FAR_FROM_DEFAULT
    ]


def callee_moves(sites: Iterable[Site]) -> list[Move]:
    """Return the moves that give one answer to all sites of a callee."""
    by_callee: dict[int, list[Site]] = defaultdict(list)
    for site in sites:
        by_callee[site.callee].append(site)
    moves = []
    for callee, group in by_callee.items():
        typical = sorted(site.cost for site in group)[len(group) // 2]
        keys = tuple(site.key for site in group)
        for answer in (True, False):
            changed = tuple(site for site in group if site.answer != answer)
            if not changed:
                continue
            # Many copies of something large never pay; a single one may save its function.
            if answer and (typical > 250 or (len(group) > 40 and typical > 20)):
                continue
            moves.append(Move(Key("callee", callee), answer, changed, keys))
    return moves


def _distance(site: Site, scale: float) -> float:
    """Return how far the site is from being answered otherwise."""
    units = abs(site.logit) if site.logit else abs(site.cost - _THRESHOLD) / 2
    return units / scale
