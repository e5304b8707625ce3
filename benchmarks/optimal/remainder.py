"""What single flips and neighbouring pairs still save where a search has ended.

Every call site of a program is answered the other way alone, and every two sites that share a
function together, whatever the search would have left out. Flips whose reaches are disjoint are
measured in one build; two that meet after all are measured again, apart.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from nestor.build.build import BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import Site, SiteReach, pins_of, sites_of
from nestor.progress import Progress, silent
from nestor.tune.moves import Move
from nestor.tune.steps.credit import assign, changes

Answers = Mapping[Key, bool]

_MOST_TIMES: Final = 3
"""Flips that keep meeting others are measured alone after so many builds."""


@dataclass(frozen=True)
class Remainder:
    """What is left."""

    sites: int
    singles: int
    """Single flips that were measured."""
    pairs: int
    """Pairs of neighbours that were measured."""
    failed: int
    """Flips whose build failed."""
    better: int
    """Flips and pairs that save something alone."""
    before: float
    """Bytes of the program at the end of the search."""
    after: float
    """Bytes with all of them that do not meet, the largest savings first; verified by a build."""
    best: Answers
    """The overrides under which the program has those bytes."""

    @property
    def left(self) -> float:
        """What they leave, in per cent of the program."""
        return 100 * (self.before - self.after) / self.before


def remainder(
    builder: ProgramBuilder, overrides: Answers, progress: Progress = silent
) -> Remainder:
    """Measure all single flips and all pairs of neighbours of a build in the builder's one mode.

    :param overrides: of the build; all other questions are held to their answers.
    """
    (mode,) = builder.modes
    before = builder.build(overrides)
    held = {**pins_of(before.trajectories), **overrides}
    base = builder.build(held)
    sites = sites_of(base.trajectories)
    singles = [(site,) for site in sites]
    pairs = _neighbours(sites)
    flips: list[tuple[Site, ...]] = [*singles, *pairs]
    found = _measure(builder, mode, base, held, flips, progress)
    taken: set[int] = set()
    chosen = dict(held)
    better = [(change, flip, reach) for flip, (change, reach) in found.items() if change < 0]
    for _, flip, reach in sorted(better, key=lambda one: one[0]):
        if taken.isdisjoint(reach):
            taken |= reach
            chosen |= _flipped(flip)
    ends = [before, base, builder.build(chosen)]
    best = min(ends, key=lambda build: build.total)
    return Remainder(
        sites=len(sites),
        singles=len(singles),
        pairs=len(pairs),
        failed=len(flips) - len(found),
        better=len(better),
        before=before.total,
        after=best.total,
        best=best.overrides,
    )


def _neighbours(sites: Sequence[Site]) -> list[tuple[Site, ...]]:
    """Return all two sites that share a caller or a callee."""
    by_function: dict[int, list[Site]] = defaultdict(list)
    for site in sites:
        for function in {site.caller, site.callee}:
            by_function[function].append(site)
    found = {
        (one.key, other.key): (one, other)
        for own in by_function.values()
        for one, other in combinations(own, 2)
    }
    return list(found.values())


def _flipped(flip: Sequence[Site]) -> dict[Key, bool]:
    return {site.key: not site.answer for site in flip}


def _measure(
    builder: ProgramBuilder,
    mode: str,
    base: ProgramBuild,
    held: Answers,
    flips: Sequence[tuple[Site, ...]],
    progress: Progress,
) -> dict[tuple[Site, ...], tuple[float, frozenset[int]]]:
    """Return the change of bytes that each flip makes alone, and the functions that change."""
    found: dict[tuple[Site, ...], tuple[float, frozenset[int]]] = {}
    times: dict[tuple[Site, ...], int] = defaultdict(int)
    reach = SiteReach(base.trajectories)
    claims = {flip: reach.of(_move(flip)) for flip in flips}
    waiting = list(flips)
    while waiting:
        progress("Measuring flips", len(flips) - len(waiting), len(flips))
        batch, later = _disjoint(waiting, claims, times)
        builder.keep_only(held)
        overrides = {key: answer for flip in batch for key, answer in _flipped(flip).items()}
        try:
            build = builder.build({**held, **overrides})
        except BuildError:
            # One alone that cannot be built is given up; of several each is tried alone.
            waiting = later + ([] if len(batch) == 1 else batch)
            times.update(dict.fromkeys(batch, _MOST_TIMES))
            continue
        after = SiteReach(base.trajectories, build.trajectories)
        reaches = [claims[flip] | after.of(_move(flip)) for flip in batch]
        credit = assign(reaches, changes(base.functions[mode], build.functions[mode]))
        for share in credit.shares:
            if len(share.moves) == 1:
                flip = batch[share.moves[0]]
                found[flip] = share.change, share.functions | claims[flip]
                continue
            for index in share.moves:
                times[batch[index]] += 1
                later.append(batch[index])
        waiting = later
    progress("Measuring flips", len(flips), len(flips))
    return found


def _disjoint(
    waiting: Sequence[tuple[Site, ...]],
    claims: Mapping[tuple[Site, ...], frozenset[int]],
    times: Mapping[tuple[Site, ...], int],
) -> tuple[list[tuple[Site, ...]], list[tuple[Site, ...]]]:
    """Return flips of disjoint reaches, and the others; one alone that has met others too often."""
    batch: list[tuple[Site, ...]] = []
    later: list[tuple[Site, ...]] = []
    taken: set[int] = set()
    alone = times[waiting[0]] >= _MOST_TIMES
    for flip in waiting:
        wanted = not batch if alone else times[flip] < _MOST_TIMES
        if wanted and taken.isdisjoint(claims[flip]):
            taken |= claims[flip]
            batch.append(flip)
        else:
            later.append(flip)
    return batch, later


def _move(flip: Sequence[Site]) -> Move:
    overrides = tuple(_flipped(flip).items())
    return Move(overrides, tuple(flip))
