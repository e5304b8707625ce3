"""Search for the decisions that make one program smallest.

A step draws many moves with disjoint reaches, tries them all in one build, keeps those that saved
something (``tune.steps.credit``), does so a few times more with other moves, and then verifies:
only a build that is smaller than the verified one before it takes its place. So the result is never
larger than the start, however wrong a credit was. Where another column than the score has a limit,
what moves were found to do is chosen from so that the limit holds (``tune.steps.choice``).
While moves are tried, every other question is held to its answer (``hold``): a policy sees what
moves do to functions, and would answer elsewhere otherwise, for a change that no move is the cause
of.
No move is tried again before something changes on which its effect depends; when nothing is left
the search ends.
What is random is drawn from (seed, step), and a state is all that a step depends on: a search that
is resumed goes the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.progress import Progress, silent
from nestor.tune.moves import Evidence, MoveSource
from nestor.tune.state import Point as Point
from nestor.tune.state import State as State
from nestor.tune.steps.findings import Trial
from nestor.tune.steps.limits import Limits
from nestor.tune.steps.step import Step

_STEPS_THAT_TELL: Final = 2
"""Steps before the next, at most, that tell what it will cost."""


@dataclass(frozen=True)
class SearchSettings:
    """How far a search goes."""

    compiles: float = 25.0
    """Whole-program compiles to spend (units compiled, over the program's units)."""
    tries: int = 3
    """Builds that try moves before one that verifies."""
    scale: float = 30.0
    """Predicted gain, in units of the score, that counts like one earlier try."""
    chance: float = 0.2
    """What chance adds to a move's rank, at most, in earlier tries."""
    hold: bool = True
    """Hold all other questions to their answers while moves are tried."""
    exact: int = 6
    """Try every combination of the answers to so many questions that depend on no others."""
    unit: float = 1.0
    """What of the score counts as a byte does where sizes are searched."""
    pairs: bool = True
    """Try pairs of moves that did not pay alone."""
    learned: bool = True
    """Order moves by what earlier searches say that they save, where the problem knows."""
    covered: float = 0.8
    """A build tries moves in those units that have this part of what all of its moves may save."""


Observer = Callable[[ProgramBuild, Evidence, Sequence[Trial]], None]
"""Receives the trials of a build, with the verified build that their questions refer to, and what
that one says of its functions."""


def search(
    builder: ProgramBuilder,
    moves: MoveSource,
    state: State,
    settings: SearchSettings,
    seed: int,
    *,
    progress: Progress = silent,
    observe: Observer = lambda build, evidence, trials: None,
    keep: Callable[[State], None] = lambda state: None,
    limits: Limits | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> State:
    """Take steps until the compiles are spent or nothing is left; return the best verified state.

    :param limits: values by mode and column that no verified build may exceed.
    :param enough: ends the search between two builds, where trials are wanted and not the result.
    :param observe: is called with every trial.
    :param keep: is called with the state after every step, to resume from.
    """
    verified = builder.build(state.overrides)
    spent = state.curve[-1].compiles
    while (
        not state.exhausted
        and not enough()
        and spent + _next_step(state, settings) <= settings.compiles
    ):
        progress("Searching", int(spent), int(settings.compiles))
        builder.keep_only(verified.overrides)
        builder.compiled = 0
        rng = np.random.default_rng([seed, state.step])
        step = Step(builder, moves, verified, state, settings, rng, limits or {})
        for number in range(settings.tries):
            if enough():
                return state
            observe(verified, step.evidence, step.attempt(turn=number + state.step))
        if not step.attempted:
            state = replace(state, exhausted=True)
            keep(state)
            break
        verified = step.verify()
        spent += builder.compiles
        state = replace(
            state,
            step=state.step + 1,
            overrides=verified.overrides,
            tried=dict(step.tried),
            curve=(*state.curve, Point.of(spent, verified)),
        )
        keep(state)
    progress("Searching", int(settings.compiles), int(settings.compiles))
    return state


def _next_step(state: State, settings: SearchSettings) -> float:
    """Return what the next step will cost, in compiles: as much as the dearer of the last two.

    Later steps compile few units again. The first is taken for one of which every build compiles
    all units; others, too, are never taken for more, with the two builds that verify.
    """
    steps = min(state.step, _STEPS_THAT_TELL)
    if not steps:
        return settings.tries + 1.0
    spent = [point.compiles for point in state.curve[-1 - steps :]]
    return min(settings.tries + 2.0, max(after - before for before, after in pairwise(spent)))
