"""The moves of inlining: single sites, all sites of a callee, or the sites of a component."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nestor.build.calls import Calls
from nestor.build.incremental import ProgramBuild
from nestor.compiler.toolchain import Toolchain
from nestor.policy.names import NamedPolicy
from nestor.policy.spec import F64
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search import sites as own
from nestor.problems.inlining_size.search.components import Component, components_of
from nestor.problems.inlining_size.search.expected import EXPECTED, move_features
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import (
    Site,
    SiteReach,
    answers_by_caller,
    pins_of,
    sites_of,
)
from nestor.problems.inlining_size.summary.program_summary import FunctionUse
from nestor.tune.improvement import ExpectedImprovement
from nestor.tune.moves import Candidate, Candidates, Combination, Evidence, Move, Reach
from nestor.tune.state import Tried

FAR_FROM_DEFAULT: Final = 160
"""A site of more ``cost_estimate`` than this is hardly ever worth inlining for size, unless its
callee goes away."""

_SHARED_CALLEE: Final = 4
"""A callee of more sites than this will not disappear because one of them goes."""

_FLIP: Final = 0.25
"""What a combination of answers is farther away for each site that it answers otherwise."""


@dataclass(frozen=True)
class SiteMoves:
    """The moves of inlining (:class:`nestor.tune.moves.MoveSource`)."""

    threshold: int = 5
    """The stock heuristic inlines where ``cost_estimate`` is below this."""
    starts: tuple[str, ...] = ("threshold:0", "threshold:15", "threshold:25")
    """The sweep that a search from the default must beat."""
    policies: tuple[str, ...] = ("shipped", "distilled")
    """The best of these and of the default is where a search starts."""
    improvement: ExpectedImprovement | None = EXPECTED
    """Bytes that a move may be expected to save, by what is known of it."""
    uses: Mapping[int, FunctionUse] | None = None
    """What a summary of the program says of its functions, by id; None without one."""

    def reach(self, *builds: Mapping[str, Trajectory]) -> SiteReach:
        """Return the reach of moves between builds with these trajectories."""
        return SiteReach(*builds)

    def candidates(
        self,
        trajectories: Mapping[str, Trajectory],
        reach: Reach,
        scale: float,
        exact: int = 0,
        evidence: Evidence | None = None,
    ) -> Candidates:
        """Return the moves of single sites, of callees and of small components.

        Where a callee's last call is kept, inlining that call comes first.

        :param scale: half the cost units, or the logit, that make a distance of 1.
        :param exact: components of at most so many sites are moved as a whole.
        """
        sites = sites_of(trajectories)
        uses = Counter(site.callee for site in sites)
        answers = answers_by_caller(sites)
        last = self._last_calls(sites)
        small = [c for c in components_of(sites) if 0 < len(c.sites) <= exact]
        whole = {site.key for component in small for site in component.sites}

        def candidate(move: Move) -> Candidate:
            members = [question for question in move.questions if isinstance(question, Site)]
            reached = claims = reach.of(move)
            if len(members) == 1 and uses[members[0].callee] > _SHARED_CALLEE:
                claims -= {members[0].callee}
            apart = sum(_distance(site, self.threshold) for site in members) / len(members)
            distance = apart / scale
            if move.answer and all(site.key in last for site in members):
                distance = -1.0
            near = frozenset(f for site in members for f in (site.caller, site.callee))
            units = frozenset[str]().union(*(site.units for site in members))
            context = _context(reached, answers)
            return Candidate(move, claims, distance, context, near, units=units)

        free = [site for site in sites if site.key not in whole]
        first: list[Candidate] = []
        # About a callee's only site, a move decides what becomes of the callee.
        only: list[Candidate] = []
        others: list[Candidate] = []
        for site in free:
            for one in map(candidate, site_moves([site], last)):
                group = only if uses[site.callee] == 1 else others
                (first if one.distance < 0 else group).append(one)
        of_callees = [candidate(move) for move in callee_moves(free, self._droppable(free))]
        return Candidates(
            first=[
                first,
                [one for component in small for one in self._combinations(component, scale)],
            ],
            turns=[[*of_callees, *only], others],
        )

    def features(
        self,
        trajectories: Mapping[str, Trajectory],
        candidates: Sequence[Candidate],
        reach: Reach,
        evidence: Evidence,
        tried: Mapping[int, Tried],
    ) -> F64:
        """Return what is known of each candidate before it is built, ``[candidates, features]``."""
        return move_features(trajectories, candidates, reach, evidence.functions, tried)

    def plain(self, build: ProgramBuild) -> dict[Key, bool]:
        """Return nothing: no run tells of calls."""
        return {}

    def written(self, plain: ProgramBuild) -> Calls | None:
        """Return nothing, likewise."""
        return None

    def proposal(
        self, build: ProgramBuild, written: Calls | None, extent: float
    ) -> dict[Key, bool]:
        """Return nothing: what a link tells of sizes says little of single sites."""
        return {}

    def revised(self, before: ProgramBuild, after: ProgramBuild) -> dict[Key, bool]:
        """Return the overrides of ``after``."""
        return dict(after.overrides)

    def pins(self, trajectories: Mapping[str, Trajectory]) -> dict[Key, bool]:
        """Return the answer of every site whose copies in all modules agree."""
        return pins_of(trajectories)

    def effective(self, build: ProgramBuild, policy: NamedPolicy) -> dict[Key, bool]:
        """Return the overrides of ``build`` without those that change no answer of ``policy``."""
        return own.effective(build.overrides, build.trajectories, policy)

    def comments(self, toolchain: Toolchain, build: ProgramBuild) -> Mapping[Key, str]:
        """Return what each override of ``build`` is about, in the names of the source."""
        return own.comments(toolchain, build.overrides, build.trajectories)

    def _droppable(self, sites: Iterable[Site]) -> frozenset[int]:
        """Return the callees that go away once the calls in ``sites`` are inlined.

        Only other modules, or an address that is taken, could use them otherwise, and the summary
        says that nothing does.
        """

        def goes_away(site: Site) -> bool:
            use = None if self.uses is None else self.uses.get(site.callee)
            if use is None:  # the stock build has dropped it, if there is a summary of it
                return site.last or self.uses is not None
            return not use.address_taken and not use.users

        return frozenset(site.callee for site in sites if goes_away(site))

    def _last_calls(self, sites: Sequence[Site]) -> frozenset[Key]:
        """Return the sites that are kept, and without which their callees would go away."""
        droppable = self._droppable(sites)
        kept = Counter(site.callee for site in sites if not site.answer)
        return frozenset(
            site.key
            for site in sites
            if not site.answer and site.callee in droppable and kept[site.callee] == 1
        )

    def _combinations(self, component: Component, scale: float) -> Iterable[Candidate]:
        """Yield a candidate for every combination of answers, but the one that there is."""
        uses = self.uses or {}
        current = component.current
        now = component.terms(current, uses)
        before = sum(now.values())
        context = component.number
        for answers in component.answered:
            flips = sum(a != b for a, b in zip(answers, current, strict=True))
            if not flips and not component.copies:
                continue
            terms = component.terms(answers, uses)
            distance = (sum(terms.values()) - before) / (2 * scale) + _FLIP * flips
            yield Candidate(
                component.move(answers),
                component.functions,
                distance,
                context,
                combination=Combination(terms, now),
                units=frozenset[str]().union(*(site.units for site in component.sites)),
            )


def site_moves(sites: Iterable[Site], last: frozenset[Key] = frozenset()) -> list[Move]:
    """Return the moves that turn one site around.

    :param last: sites that are worth inlining whatever they cost: their callees go away.
    """
    return [
        Move.one(site.key, not site.answer, (site,))
        for site in sites
        if site.answer or site.cost <= FAR_FROM_DEFAULT or site.key in last
    ]


def callee_moves(sites: Iterable[Site], droppable: frozenset[int] = frozenset()) -> list[Move]:
    """Return the moves that give one answer to all sites of a callee, where there are several.

    :param droppable: callees that go away once these sites are inlined.
    """
    by_callee: dict[int, list[Site]] = defaultdict(list)
    for site in sites:
        by_callee[site.callee].append(site)
    moves = []
    for callee, group in by_callee.items():
        if len(group) == 1:
            continue  # the move of its site does the same
        typical = sorted(site.cost for site in group)[len(group) // 2]
        keys = tuple(site.key for site in group)
        few = callee in droppable and len(group) <= _SHARED_CALLEE
        for answer in (True, False):
            changed = tuple(site for site in group if site.answer != answer)
            if not changed:
                continue
            # Many copies of something large never pay; a single one may save its function.
            if answer and not few and (typical > 250 or (len(group) > 40 and typical > 20)):
                continue
            moves.append(Move.one(Key("callee", callee), answer, changed, keys))
    return moves


def _distance(site: Site, threshold: int) -> float:
    """Return how far the site is from being answered otherwise, in half cost units or logits."""
    return abs(site.logit) if site.logit else abs(site.cost - threshold) / 2


def _context(functions: Iterable[int], answers: Mapping[int, int]) -> int:
    """Return a hash of the answers in ``functions``, in which their order does not count."""
    context = 0
    for function in functions:
        context ^= answers.get(function, 0)
    return context
