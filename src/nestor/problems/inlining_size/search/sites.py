"""The call sites of a program, as a build's trajectories show them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
import xxhash

from nestor.compiler.demangle import demangle
from nestor.compiler.toolchain import Toolchain
from nestor.policy.names import NamedPolicy
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import DEFAULT, FAILED
from nestor.problems.inlining_size.score.reach import Reach
from nestor.problems.inlining_size.search.overrides import SITE_KINDS, Key, Overrides
from nestor.tune.moves import Move, Question

ONLY: Final = "site-only"
"""The kind of a search's overrides of single sites: it answers every copy of a call by itself."""


@dataclass(frozen=True)
class Site(Question):
    """One call site; copies in COMDAT functions are one site."""

    caller: int
    callee: int
    cost: int
    logit: float
    copy: bool = False
    """Whether inlining made it, as a copy of another call."""
    last: bool = False
    """Whether it is the only use of a local function, so that inlining it drops that function."""
    units: frozenset[str] = frozenset()
    """The modules that ask about it."""


def sites_of(trajectories: Mapping[str, Trajectory]) -> list[Site]:
    """Return every site that could be answered either way, each once, in a fixed order."""
    found: dict[int, Site] = {}
    units: dict[int, set[str]] = defaultdict(set)
    for module, trajectory in trajectories.items():
        r = trajectory.decisions
        columns = (
            r["site"].view("<u8"), r["caller"].view("<u8"), r["callee"].view("<u8"),
            r["answer"] > 0, r[DEFAULT] > 0, r["cost_estimate"],
            r["logit"], r["effect"], r["copy_of"] != 0,
            (r["callee_disappears"] > 0) & (r["callee_is_local"] > 0),
        )  # fmt: skip
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (key, caller, callee, answer, default, cost, logit, effect, *kind) in enumerate(
            rows
        ):
            units[key].add(module)
            if effect != FAILED and key not in found:
                where = (module, row)
                found[key] = Site(
                    Key(ONLY, key), answer, default, where, caller, callee, cost, logit, *kind
                )
    return [replace(site, units=frozenset(units[key])) for key, site in found.items()]


def pins_of(trajectories: Mapping[str, Trajectory]) -> dict[Key, bool]:
    """Return the answer of every site whose copies in all modules agree."""
    answers: dict[int, set[bool]] = defaultdict(set)
    for trajectory in trajectories.values():
        r = trajectory.decisions[trajectory.decisions["effect"] != FAILED]
        decided = (r["answer"] > 0).tolist()
        for key, answer in zip(r["site"].view("<u8").tolist(), decided, strict=True):
            answers[key].add(answer)
    return {Key(ONLY, key): min(both) for key, both in answers.items() if len(both) == 1}


def answers_by_caller(sites: Iterable[Site]) -> dict[int, int]:
    """Return a hash of the answers in each function that calls others, the same in every process.

    It tells whether what was found about a move still holds (:attr:`Candidate.context`).
    """
    found: dict[int, int] = defaultdict(int)
    for site in sites:
        own = (site.key.number << 1 | site.answer).to_bytes(9, "little")
        found[site.caller] ^= xxhash.xxh3_64_intdigest(own)
    return found


class SiteReach(Reach):
    """Which functions a move can change.

    The caller, every function into which the caller is inlined, and perhaps the callee, which may
    lose its last use.
    """

    def of(self, move: Move) -> frozenset[int]:
        """Return the functions whose bytes ``move`` can change."""
        sites = [site for site in move.questions if isinstance(site, Site)]
        callers = {site.caller for site in sites}
        return frozenset({s.callee for s in sites}.union(*(self.above(c) for c in callers)))

    def indirect(self, move: Move, functions: frozenset[int]) -> Mapping[int, int]:
        """Return nothing: bytes that moves give or take elsewhere are few."""
        return {}


def effective(
    overrides: Overrides, trajectories: Mapping[str, Trajectory], policy: NamedPolicy
) -> dict[Key, bool]:
    """Return ``overrides`` without those that change no answer of ``policy``."""
    needed: set[Key] = set()
    for trajectory in trajectories.values():
        records = trajectory.decisions
        logits, own = records["logit"] > 0, records[DEFAULT] > 0
        if policy.policy is not None:
            answers = policy.policy.metadata.answers
            decided = logits if answers == "decision" else logits != own
            own = np.where(trajectory.by_policy, decided, own)
        columns = (records["site"].view("<u8"), records["callee"].view("<u8"), own)
        for site, callee, unmoved in zip(*(c.tolist() for c in columns), strict=True):
            single, all_calls = Key(ONLY, site), Key("callee", callee)
            for_all = overrides.get(all_calls, unmoved)
            if single not in overrides:
                if for_all != unmoved:
                    needed.add(all_calls)
            elif overrides[single] != unmoved or for_all != unmoved:
                # It may say what the policy says and stand against its callee's.
                needed.add(single)
    return {key: answer for key, answer in overrides.items() if key in needed}


def comments(
    toolchain: Toolchain, overrides: Overrides, trajectories: Mapping[str, Trajectory]
) -> dict[Key, str]:
    """Return what each override is about, in the names of the source."""
    found = describe(toolchain, trajectories.values(), overridden=True)
    return {key: text for key, text in found.items() if key in overrides}


def describe(
    toolchain: Toolchain, trajectories: Iterable[Trajectory], *, overridden: bool = False
) -> dict[Key, str]:
    """Return what each callee and each site is about, in the names of the source.

    :param overridden: only those that overrides answered.
    """
    found: dict[Key, str] = {}
    logs = list(trajectories)
    names = dict(chain.from_iterable(log.names.items() for log in logs))
    readable = demangle(toolchain, names.values())

    def name(number: int) -> str:
        mangled = names.get(number, "?")
        return readable.get(mangled, mangled)

    for log in logs:
        records = log.decisions[log.decisions["overridden"] > 0] if overridden else log.decisions
        columns = (records[column].view("<u8").tolist() for column in ("site", "caller", "callee"))
        for site, caller, callee in zip(*columns, strict=True):
            found[Key("callee", callee)] = name(callee)
            for kind in SITE_KINDS:
                found[Key(kind, site)] = f"{name(callee)} in {name(caller)}"
    return found
