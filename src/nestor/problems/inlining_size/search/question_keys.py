"""What a compile asked, and which overrides answer that.

A copy of a call is only asked about under its own key, but the plugin lets the line of a site
answer for those copies alone that it asks about after the site itself: so the keys that a compile
asked about are all that its overrides can answer.

A search holds thousands of sites to their answers, so overrides are indexed by number once for all
the compiles of a build.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from nestor.compiler.toolchain import Toolchain
from nestor.problem.override_text import TextOverrides
from nestor.problem.overrides import Deviation, QuestionKeys
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import DEFAULT
from nestor.problems.inlining_size.search.overrides import (
    EVERY_MODULE,
    TEXT,
    Key,
    Kind,
    Overrides,
)

Answers = Mapping[tuple[Kind, int], Mapping[int, bool]]
"""Overrides by kind and module, then by number."""


@dataclass(frozen=True)
class AskedSites:
    """The sites, callees and modules that a compile asked about, by kind."""

    numbers: Mapping[Kind, frozenset[int]]
    in_module: Mapping[int, frozenset[int]]
    """The sites by the module that asked."""
    answered: tuple[tuple[int, int, bool, bool], ...] = ()
    """Of each question the site, the callee, the answer, and whether it takes an override."""

    @staticmethod
    def of(trajectories: Iterable[Trajectory]) -> "AskedSites":
        """Return what the compiles with these trajectories asked about."""
        own = list(trajectories)
        callees: set[int] = set()
        in_module: dict[int, frozenset[int]] = {}
        for trajectory in own:
            module, decisions = trajectory.facts["module"], trajectory.decisions
            callees.update(decisions["callee"].view("<u8").tolist())
            sites = frozenset(decisions["site"].view("<u8").tolist())
            in_module[module] = in_module.get(module, frozenset()) | sites
        every = frozenset[int]().union(*in_module.values())
        numbers: dict[Kind, frozenset[int]] = {
            "site": every,
            "site-only": every,
            "callee": frozenset(callees),
            "module": frozenset(in_module),
        }
        return AskedSites(numbers, in_module, tuple(chain.from_iterable(map(_answered, own))))

    def among(self, index: Answers) -> Answers:
        """Return those answers of ``index`` that were asked for."""
        return {
            place: {number: answers[number] for number in own}
            for place, answers in index.items()
            if (own := self._numbers_of(*place) & answers.keys())
        }

    def answered_alike(self, index: Answers) -> bool:
        """Tell whether the overrides of ``index`` surely give every question its answer of then.

        What the policy would answer without an override that was there then is not asked.
        """
        if not all(self._leaves_to_keys(*place, own) for place, own in index.items()):
            return False
        sites = index.get(("site-only", EVERY_MODULE), {})
        callees = index.get(("callee", EVERY_MODULE), {})
        for site, callee, answer, overridden in self.answered:
            now = sites.get(site, callees.get(callee))
            if overridden if now is None else now != answer:
                return False
        return True

    def matched_by(self, key: Key) -> bool:
        """Tell whether ``key`` is one of these, or the module of one."""
        return key.number in self._numbers_of(key.kind, key.module)

    def _leaves_to_keys(self, kind: Kind, module: int, answers: Mapping[int, bool]) -> bool:
        """Tell whether ``answers`` are of single sites or callees in all modules, or no concern.

        Which copies the line of a site answers is the plugin's to say, as is the line of a module.
        """
        if kind in ("site", "module") or module != EVERY_MODULE:
            return self._numbers_of(kind, module).isdisjoint(answers)
        return True

    def _numbers_of(self, kind: Kind, module: int) -> frozenset[int]:
        if module == EVERY_MODULE:
            return self.numbers[kind]
        return self.in_module.get(module, frozenset())


def _answered(trajectory: Trajectory) -> Iterable[tuple[int, int, bool, bool]]:
    """Return site, callee, answer and whether it takes an override, of every question.

    Where no policy is asked, an override that says what the default says is not needed for it.
    """
    rows = trajectory.decisions
    takes = rows["overridden"] > 0
    if not trajectory.by_policy.any():
        takes &= (rows["answer"] > 0) != (rows[DEFAULT] > 0)
    return zip(
        rows["site"].view("<u8").tolist(),
        rows["callee"].view("<u8").tolist(),
        (rows["answer"] > 0).tolist(),
        takes.tolist(),
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

    def deviations(self, toolchain: Toolchain, trajectory: Trajectory) -> Sequence[Deviation]:
        """Return the call sites of a module whose answers left the default.

        Copies of a call are inlined or kept by themselves, so what is replayed is each site alone;
        what is reverted is the call with its copies, since a policy would inline those instead.
        """
        from nestor.problems.inlining_size.search.sites import describe

        module, rows = trajectory.facts["module"], trajectory.decisions
        about = describe(toolchain, [trajectory])
        answers, defaults = rows["answer"] > 0, rows[DEFAULT] > 0
        left = answers != defaults
        sites = rows["site"].view("<u8")
        return [
            Deviation(
                replay={Key("site-only", site, module): answer},
                revert={Key("site", site, module): not answer},
                about=about[Key("site", site)],
            )
            for site, answer in zip(sites[left].tolist(), answers[left].tolist(), strict=True)
        ]

    def index(self, overrides: Overrides) -> Answers:
        """Return ``overrides`` by kind and module, then by number."""
        found: defaultdict[tuple[Kind, int], dict[int, bool]] = defaultdict(dict)
        for key, answer in overrides.items():
            found[key.kind, key.module][key.number] = answer
        return found

    def question_keys(self, trajectories: Iterable[Trajectory]) -> QuestionKeys:
        """Return what the compiles with these trajectories asked."""
        return AskedSites.of(trajectories)

    def unit(self, trajectory: Trajectory) -> Key:
        """Return the key of the module with this trajectory."""
        return Key("module", trajectory.facts["module"])
