"""What a search for speed may change: sites whose calls take much of the run, and idle ones."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from nestor.build.calls import Calls
from nestor.build.incremental import ProgramBuild
from nestor.policy.spec import F64
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search.moves import SiteMoves
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import (
    Site,
    SiteReach,
    answers_by_caller,
    sites_of,
)
from nestor.problems.inlining_speed.executed import (
    CHEAP,
    HOT,
    SELDOM,
    SURE,
    kept_sites,
    proposal,
    vain_cold_sites,
    vain_sites,
    written_calls,
)
from nestor.problems.inlining_speed.expected import EXPECTED, move_features
from nestor.tune.improvement import ExpectedImprovement
from nestor.tune.moves import Candidate, Candidates, Evidence, Move, Reach
from nestor.tune.state import Tried

_FARTHEST: Final = 0.999
"""The distance of a site that executes a thousandth of what the greatest one does."""


class CallReach(SiteReach):
    """Which functions a move can change, those besides that are called further down.

    What was inlined through a call that is kept now is called by the callee itself, and the other
    way round: then it is executed elsewhere.
    """

    def __init__(self, *builds: Mapping[str, Trajectory]):
        """Read what was inlined and what is called in ``builds``."""
        super().__init__(*builds)
        self._callers: dict[int, set[int]] = defaultdict(set)
        for trajectory in chain.from_iterable(build.values() for build in builds):
            rows = trajectory.decisions
            ends = (rows[end].view("<u8").tolist() for end in ("caller", "callee"))
            for caller, callee in zip(*ends, strict=True):
                self._callers[callee].add(caller)
        self._leading: dict[int, dict[int, int]] = {}

    def indirect(self, move: Move, functions: frozenset[int]) -> dict[int, int]:
        """Return those of ``functions`` that are called further down from what ``move`` calls."""
        called = {site.callee for site in move.questions if isinstance(site, Site)}
        found = {}
        for function in functions:
            leading = self._leading_to(function)
            distances = [leading[callee] for callee in called if callee in leading]
            if distances:
                found[function] = min(distances)
        return found

    def _leading_to(self, function: int) -> dict[int, int]:
        """Return the functions from which calls lead to ``function``, with the number of calls."""
        if function not in self._leading:
            seen: dict[int, int] = {}
            level, distance = {function}, 0
            while level:
                distance += 1
                level = {c for f in level for c in self._callers.get(f, ()) if c not in seen}
                seen |= dict.fromkeys(level, distance)
            self._leading[function] = seen
        return self._leading[function]


@dataclass(frozen=True)
class SpeedMoves(SiteMoves):
    """The moves of inlining by what the calls of a run take."""

    starts: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    improvement: ExpectedImprovement | None = EXPECTED
    """Parts of the score that a move may be expected to save, by what is known of it."""

    def reach(self, *builds: Mapping[str, Trajectory]) -> CallReach:
        """Return the reach of moves between builds with these trajectories."""
        return CallReach(*builds)

    def candidates(
        self,
        trajectories: Mapping[str, Trajectory],
        reach: Reach,
        scale: float,
        exact: int = 0,
        evidence: Evidence | None = None,
    ) -> Candidates:
        """Return the sites: those that are kept and called most, then inlined ones in hot callers.

        A call is taken back only in callers that this run tells of: elsewhere only code would be
        saved, and another input may spend its time there.

        :param evidence: of the build and its run; without it no site is known to be called.
        """
        evidence = evidence or Evidence()
        weights, calls = evidence.functions, evidence.calls
        total, most = sum(weights.values()), max(weights.values(), default=1.0) or 1.0
        sites = sites_of(trajectories)
        context = answers_by_caller(sites)
        ranked = kept_sites(trajectories, calls or Calls())
        called = [one for one in ranked if one.saved > SELDOM * total]
        # A function that is inlined everywhere has entries where nothing is inlined.
        entries = {
            **(evidence.written.entries if evidence.written else {}),
            **(calls.entries if calls else {}),
        }

        def candidate(site: Site, distance: float) -> Candidate:
            move = Move.one(site.key, not site.answer, (site,))
            near = frozenset((site.caller, site.callee))
            own = context[site.caller]
            claims, frees = reach.of(move), bool(site.answer)
            return Candidate(move, claims, distance, own, near, units=site.units, frees=frees)

        kept = [candidate(one.site, 1.0 - one.saved / most) for one in called]
        inlined, besides = [], []
        for site in sites:
            executed, entered = weights.get(site.caller, 0.0), entries.get(site.caller, SURE)
            distance = 1.0 - executed / most
            has_evidence = entered >= SURE or (entered > 0 and executed >= HOT * total)
            if site.answer and has_evidence and distance < _FARTHEST:
                inlined.append(candidate(site, distance))
            elif site.answer and has_evidence and site.cost >= CHEAP and not site.last:
                besides.append(candidate(site, 1.0 / site.cost))
        return Candidates(first=[kept, inlined], besides=besides)

    def features(
        self,
        trajectories: Mapping[str, Trajectory],
        candidates: Sequence[Candidate],
        reach: Reach,
        evidence: Evidence,
        tried: Mapping[int, Tried],
    ) -> F64:
        """Return what is known of each candidate before it is built, ``[candidates, features]``."""
        return move_features(trajectories, candidates, reach, evidence, tried)

    def plain(self, build: ProgramBuild) -> dict[Key, bool]:
        """Return overrides that inline nothing: a run then tells of all calls that were written."""
        return {site.key: False for site in sites_of(build.trajectories) if not site.copy}

    def written(self, plain: ProgramBuild) -> Calls:
        """Return what the run of ``plain`` tells of each call that was written."""
        return written_calls(plain.trajectories, next(iter(plain.calls.values()), Calls()))

    def proposal(
        self, build: ProgramBuild, written: Calls | None, extent: float
    ) -> dict[Key, bool]:
        """Return overrides that keep cold sites and inline those whose calls take most a byte."""
        mode, columns = next(iter(build.columns.items()))
        calls = build.calls.get(mode, Calls())
        growth = extent * columns["text"]
        return dict(proposal(build.trajectories, calls, written, columns["J"], growth))

    def revised(self, before: ProgramBuild, after: ProgramBuild) -> dict[Key, bool]:
        """Return the overrides of ``after`` without those that did not pay."""
        mode = next(iter(before.columns))
        calls = before.calls.get(mode, Calls())
        weights = before.functions[mode], after.functions[mode]
        logs, reach = before.trajectories, SiteReach(before.trajectories)
        vain = vain_sites(logs, calls, after.overrides, *weights)
        vain |= vain_cold_sites(logs, reach, after.overrides, *weights)
        return {key: answer for key, answer in after.overrides.items() if key not in vain}
