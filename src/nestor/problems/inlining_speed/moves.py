"""What a search for speed may change: sites between functions that matter in the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search.moves import SiteMoves, site_moves
from nestor.problems.inlining_size.search.sites import Site, sites_of
from nestor.tune.moves import Candidate, Candidates, Reach

_COLD: Final = 0.999
"""The distance of a site that executes less than a thousandth of what the greatest one does."""


@dataclass(frozen=True)
class SpeedMoves(SiteMoves):
    """The moves of inlining whose sites are drawn by what their functions execute."""

    starts: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()

    def candidates(
        self,
        trajectories: Mapping[str, Trajectory],
        reach: Reach,
        scale: float,
        exact: int = 0,
        functions: Mapping[int, float] | None = None,
    ) -> Candidates:
        """Return the sites, those first whose caller and callee both execute much.

        A callee that is inlined everywhere executes nothing itself: then the caller alone counts.

        :param functions: what each function executes, by id.
        """
        weights = functions or {}
        most = max(weights.values(), default=1.0) or 1.0
        sites = sites_of(trajectories)
        everything = frozenset(site.key for site in sites)
        context = {site.caller: 0 for site in sites}
        for site in sites:
            context[site.caller] ^= hash((site.key.number, site.answer)) & (1 << 63) - 1
        single = []
        for move in site_moves(sites, everything):
            (site,) = (question for question in move.questions if isinstance(question, Site))
            caller = weights.get(site.caller, 0.0)
            weight = caller if site.answer else min(caller, weights.get(site.callee, 0.0))
            claims = reach.of(move)
            near = frozenset((site.caller, site.callee))
            one = Candidate(move, claims, 1.0 - weight / most, context[site.caller], near)
            single.append(one)
        hot = [one for one in single if one.distance < _COLD]
        return Candidates(
            first=[
                [one for one in hot if one.move.answer],
                [one for one in hot if not one.move.answer],
            ],
            turns=[[one for one in single if one.distance >= _COLD]],
        )
