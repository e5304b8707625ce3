"""The builds of a step: moves on top of the verified build, all other questions held or free.

A move changes what the heuristic, or a policy, sees elsewhere, and may so change answers that it
is not about, one after the other. Held to their answers, what a build changes is what the moves
did. Free, the program may turn out better or worse than that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nestor.build.build import BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.problem.overrides import Answer, Key, Overrides
from nestor.tune.moves import Move, MoveSource


@dataclass(frozen=True)
class StepBuilds:
    """Builds moves on top of one verified build."""

    builder: ProgramBuilder
    moves: MoveSource
    verified: ProgramBuild
    hold: bool

    @cached_property
    def _pins(self) -> dict[Key, Answer]:
        return self.moves.pins(self.verified.trajectories) if self.hold else {}

    def held(self, moves: Sequence[Move]) -> ProgramBuild:
        """Build ``moves``, all other questions held to the answers that they have.

        :raises BuildError: if something cannot be compiled or linked.
        """
        return self.builder.build(_kept(self._pins, moves) | self._with(moves))

    def to_verify(self, moves: Sequence[Move]) -> list[ProgramBuild]:
        """Build ``moves`` with all other questions free, and held if that makes a difference.

        What could not be built is left out. The overrides of a build answer nothing that would be
        answered alike without them.
        """
        builds: list[ProgramBuild] = []
        try:
            builds.append(self.builder.build(self._with(moves)))
            if self._turns(builds[0], moves):
                held = self.held(moves)
                needed = self.moves.effective(held, self.builder.policy)
                builds.append(replace(held, overrides=self._with(moves) | needed))
        except BuildError:
            pass  # what was built may do
        return builds

    def _turns(self, build: ProgramBuild, moves: Sequence[Move]) -> bool:
        """Tell whether ``build`` answers questions otherwise that no move was to change."""
        moved = {question.key for move in moves for question in move.questions}
        moved.update(key for move in moves for key in move.clears)
        after = self.moves.pins(build.trajectories)
        return any(
            after.get(key, answer) != answer
            for key, answer in self._pins.items()
            if key not in moved
        )

    def _with(self, moves: Sequence[Move]) -> dict[Key, Answer]:
        """Return the verified overrides without those that ``moves`` clear, and ``moves``."""
        kept = _kept(self.verified.overrides, moves)
        return kept | {key: answer for move in moves for key, answer in move.overrides}


def _kept(overrides: Overrides, moves: Sequence[Move]) -> dict[Key, Answer]:
    """Return ``overrides`` without those that ``moves`` clear."""
    cleared = {key for move in moves for key in move.clears}
    return {key: answer for key, answer in overrides.items() if key not in cleared}
