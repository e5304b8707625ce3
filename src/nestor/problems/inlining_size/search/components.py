"""Components of the call graph: functions whose sizes depend on one another's call sites only.

Two functions belong to one component if a call site between them is asked about. What is answered
in one component changes no function of another, so components are searched independently, and a
small one can be searched exactly, by trying every combination of its answers (after Theodoridis et
al., "Understanding and exploiting optimal function inlining", ASPLOS 2022).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import xxhash

from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import Site
from nestor.problems.inlining_size.summary.program_summary import FunctionUse
from nestor.tune.moves import Move
from nestor.tune.steps.estimates import Terms

BYTES_PER_COST: Final = 0.8
"""Bytes of x86-64 code for a unit of LLVM's inline cost, of which an instruction has five."""

LAST_CALL_BONUS: Final = 15_000
"""LLVM takes this off the cost of the only call of a local function (``LastCallToStaticBonus``)."""

_ENTRY_BYTES: Final = 24
"""What a function takes besides its code, with its unwind entry, where no summary says it."""


@dataclass(frozen=True)
class Component:
    """Functions joined by call sites, and all call sites among them."""

    functions: frozenset[int]
    sites: tuple[Site, ...]
    """Those of the source, sorted by key; an answer to one is also that to its copies."""
    copies: tuple[Site, ...]
    """Those that inlining made."""

    @property
    def number(self) -> int:
        """A 64-bit number that is the same for the same sites in every process."""
        keys = b"".join(site.key.number.to_bytes(8, "little") for site in self.sites)
        return xxhash.xxh3_64_intdigest(keys)

    @property
    def current(self) -> tuple[bool, ...]:
        """The answers as they are."""
        return tuple(site.answer for site in self.sites)

    @property
    def answered(self) -> Iterator[tuple[bool, ...]]:
        """Every combination of answers, that of the stock compiler's default among them."""
        return product((False, True), repeat=len(self.sites))

    def move(self, answers: tuple[bool, ...]) -> Move:
        """Return the move to these answers, one for each site.

        All copies of a call that is kept are kept too: where it is inlined there are none.
        """
        callees = sorted({site.callee for site in self.sites})
        inlined = [s for s, answer in zip(self.sites, answers, strict=True) if answer]
        own = (*self.sites, *self.copies)
        return Move(
            overrides=(
                *((Key("callee", callee), False) for callee in callees),
                *((site.key, True) for site in inlined),
            ),
            questions=tuple(
                site
                for site, answer in zip(self.sites, answers, strict=True)
                if site.answer != answer
            ),
            clears=tuple(site.key for site in own),
            part=self.number,
        )

    def terms(self, answers: tuple[bool, ...], uses: Mapping[int, FunctionUse]) -> Terms:
        """Return roughly how many bytes these answers add to keeping every call, term by term.

        A term is a call that is inlined, or a function that goes away with its last call.

        :param uses: what the program's summary says of functions; empty without one.
        """
        by_callee: dict[int, list[tuple[Site, bool]]] = defaultdict(list)
        for site, answer in zip(self.sites, answers, strict=True):
            by_callee[site.callee].append((site, answer))
        found: dict[int, float] = {}
        for callee, pairs in by_callee.items():
            found |= {site.key.number: _added(site) for site, answer in pairs if answer}
            if all(answer for _, answer in pairs):
                # Keys and ids are not negative.
                found[-1 - callee] = -_saved(pairs[0][0], uses.get(callee))
        return found


def components_of(sites: Iterable[Site]) -> list[Component]:
    """Return the components of a program's sites, in the order of their first sites."""
    own = list(sites)
    above: dict[int, int] = {}

    def find(function: int) -> int:
        above.setdefault(function, function)
        while above[function] != function:
            above[function] = above[above[function]]
            function = above[function]
        return function

    for site in own:
        above[find(site.caller)] = find(site.callee)
    members: dict[int, list[Site]] = defaultdict(list)
    for site in own:
        members[find(site.caller)].append(site)
    return [_component(group) for group in members.values()]


def _component(group: Iterable[Site]) -> Component:
    ordered = sorted(group, key=lambda site: site.key.number)
    return Component(
        frozenset(f for site in ordered for f in (site.caller, site.callee)),
        tuple(site for site in ordered if not site.copy),
        tuple(site for site in ordered if site.copy),
    )


def _saved(site: Site, use: FunctionUse | None) -> float:
    """Return roughly the bytes of the callee of ``site`` if no call of it is left."""
    if use is not None:
        return 0.0 if use.address_taken or use.users else float(use.bytes)
    return max(0.0, _added(site)) + _ENTRY_BYTES


def _added(site: Site) -> float:
    """Return roughly the bytes that inlining ``site`` adds to its caller."""
    last = site.cost < -LAST_CALL_BONUS / 2
    return BYTES_PER_COST * (site.cost + (LAST_CALL_BONUS if last else 0))
