"""Two plain searches of a program, against which ``nestor tune`` has to justify itself.

*Greedy* turns one move around at a time, those nearest to the default's threshold first, and keeps
what made the program smaller. *Random* turns many moves around at once and keeps the whole lot
or nothing. Both begin at the default and spend whole-program compiles, as ``nestor tune`` does.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from benchmarks.pool import LINK
from nestor.build.build import BuildError
from nestor.build.incremental import ProgramBuild
from nestor.corpus.model import Program
from nestor.policy.names import DEFAULT
from nestor.problem.problem import Pool
from nestor.problems.inlining_size.search.moves import callee_moves, site_moves
from nestor.problems.inlining_size.search.sites import Site, sites_of
from nestor.tune.moves import Move

Kind = Literal["greedy", "random"]

_AT_ONCE = 0.02
"""The part of the moves that a random step turns around."""


def climb(pool: Pool, program: Program, kind: Kind, compiles: float, seed: int) -> tuple[int, int]:
    """Return the loadable bytes of the stock program and of the smallest build found.

    :param compiles: whole-program compiles to spend, the first build included.
    """
    builder = LINK.incremental(pool, program, DEFAULT, LINK.modes[:1])
    try:
        best = builder.build({})
        stock = round(best.total)
        for moves in _proposals(best, kind, np.random.default_rng(seed)):
            if builder.compiles >= compiles:
                break
            try:
                tried = builder.build({**best.overrides, **{m.key: m.answer for m in moves}})
            except BuildError:
                continue
            best = tried if tried.total < best.total else best
            builder.keep_only(best.overrides)
        return stock, round(best.total)
    finally:
        builder.close()


def _proposals(
    start: ProgramBuild, kind: Kind, rng: np.random.Generator
) -> Iterator[Sequence[Move]]:
    sites = sites_of(start.trajectories)
    moves = [*callee_moves(sites), *site_moves(sites)]
    if kind == "greedy":
        for move in sorted(moves, key=_distance):
            yield [move]
        return
    while moves:
        yield [move for move in moves if rng.random() < _AT_ONCE] or moves[:1]


def _distance(move: Move) -> float:
    """Return how far the move's sites are from the default's threshold, on average."""
    sites = [question for question in move.questions if isinstance(question, Site)]
    return sum(abs(site.cost - 5) for site in sites) / len(sites)
