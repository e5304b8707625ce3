"""What a compile asked, and which overrides answer that.

A copy of a call is only asked about under its own key, but the plugin lets the line of a site
answer for those copies alone that it asks about after the site itself: so the keys that a compile
asked about are all that its overrides can answer.

A search holds thousands of sites to their answers, so overrides are indexed by number once for all
the compiles of a build.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from nestor.compiler.toolchain import Toolchain
from nestor.problem.override_text import TextOverrides
from nestor.problem.overrides import QuestionKeys
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search.overrides import KINDS, TEXT, Key, Kind, Overrides

Answers = Mapping[Kind, Mapping[int, bool]]
"""Overrides by kind and number."""


@dataclass(frozen=True)
class AskedSites:
    """The sites, callees and modules that a compile asked about, by kind."""

    numbers: Mapping[Kind, frozenset[int]]
    answered: tuple[tuple[int, int, bool, bool], ...] = ()
    """Of each question the site, the callee, the answer, and whether an override gave it."""

    @staticmethod
    def of(trajectories: Iterable[Trajectory]) -> "AskedSites":
        """Return what the compiles with these trajectories asked about."""
        own = list(trajectories)
        sites, callees = (
            frozenset[int]().union(*(t.decisions[name].view("<u8").tolist() for t in own))
            for name in ("site", "callee")
        )
        modules = frozenset(trajectory.facts["module"] for trajectory in own)
        numbers: dict[Kind, frozenset[int]] = {
            "site": sites, "site-only": sites, "callee": callees, "module": modules,
        }  # fmt: skip
        return AskedSites(numbers, tuple(chain.from_iterable(map(_answered, own))))

    def among(self, index: Answers) -> Answers:
        """Return those answers of ``index`` that were asked for."""
        return {
            kind: {number: answers[number] for number in self.numbers[kind] & answers.keys()}
            for kind, answers in index.items()
        }

    def answered_alike(self, index: Answers) -> bool:
        """Tell whether the overrides of ``index`` surely give every question its answer of then.

        What the policy would answer without an override that was there then is not asked.
        """
        if index["site"] or not index["module"].keys().isdisjoint(self.numbers["module"]):
            return False  # which copies those lines answer is the plugin's to say
        sites, callees = index["site-only"], index["callee"]
        for site, callee, answer, overridden in self.answered:
            now = sites.get(site, callees.get(callee))
            if overridden if now is None else now != answer:
                return False
        return True

    def matched_by(self, key: Key) -> bool:
        """Tell whether ``key`` is one of these, or the module of one."""
        return key.number in self.numbers[key.kind]


def _answered(trajectory: Trajectory) -> Iterable[tuple[int, int, bool, bool]]:
    """Return site, callee, answer and whether it was overridden, of every question."""
    rows = trajectory.decisions
    return zip(
        rows["site"].view("<u8").tolist(),
        rows["callee"].view("<u8").tolist(),
        (rows["answer"] > 0).tolist(),
        (rows["overridden"] > 0).tolist(),
        strict=True,
    )


@dataclass(frozen=True)
class SiteOverrides(TextOverrides):
    """The overrides of inlining (:class:`nestor.problem.overrides.OverrideFormat`)."""

    text = TEXT
    stock: bool = False

    def describe(
        self, toolchain: Toolchain, trajectories: Iterable[Trajectory]
    ) -> Mapping[Key, str]:
        """Return what each callee and each site is about, in the names of the source."""
        from nestor.problems.inlining_size.search.sites import describe

        return describe(toolchain, trajectories)

    def index(self, overrides: Overrides) -> Answers:
        """Return ``overrides`` by kind and number."""
        found: dict[Kind, dict[int, bool]] = {kind: {} for kind in KINDS}
        for key, answer in overrides.items():
            found[key.kind][key.number] = answer
        return found

    def question_keys(self, trajectories: Iterable[Trajectory]) -> QuestionKeys:
        """Return what the compiles with these trajectories asked."""
        return AskedSites.of(trajectories)

    def unit(self, trajectory: Trajectory) -> Key:
        """Return the key of the module with this trajectory."""
        return Key("module", trajectory.facts["module"])
