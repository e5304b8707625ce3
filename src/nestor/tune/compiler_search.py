"""Searches that a compiler runs by itself, as a problem describes them.

Some compilers can try other answers within one compile, far faster than by builds of the program.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import Key, Overrides
from nestor.problem.problem import Problem
from nestor.problem.rollout import Rollout, Workplace


@dataclass(frozen=True)
class Target:
    """One function to search."""

    unit: str
    key: Key
    """Of an override about the whole function."""


@dataclass(frozen=True)
class Searched:
    """What one compile found."""

    found: Mapping[Target, Overrides]
    """Better answers by function; none where the stock heuristic's are the best that was found."""
    trials: int
    cpu_seconds: float
    failure: str | None = None
    """Why nothing was found, in one line; None if the compile ended."""


class CompilerSearch(Protocol):
    """A search that the compiler of a problem runs by itself."""

    def targets(self, rollouts: Mapping[str, Rollout]) -> Sequence[Target]:
        """Return the functions that are worth a search, the most expensive first.

        :param rollouts: of all units by the stock compiler, by name.
        """

    def at_once(self, rollout: Rollout, trials: int) -> int:
        """Return how many functions one compile of a unit should search.

        :param rollout: of the unit by the stock compiler.
        :param trials: per function.
        """

    def search(
        self,
        place: Workplace,
        rollout: Rollout,
        targets: Sequence[Target],
        policy: NamedPolicy,
        trials: int,
        seed: int,
    ) -> Searched:
        """Compile a unit once and search these functions of it.

        :param rollout: of the unit by the stock compiler.
        :param policy: a further start of each search, besides the stock heuristic.
        """

    def worse(self, before: Mapping[str, Rollout], after: Mapping[str, Rollout]) -> frozenset[Key]:
        """Return the functions, as :attr:`Target.key`, that cost more after than before."""

    def function_of(self, key: Key) -> Key:
        """Return the function, as :attr:`Target.key`, that an override is about."""


def compiler_search_of(problem: Problem) -> CompilerSearch | None:
    """Return the search that the compiler of ``problem`` runs by itself, if it does."""
    return cast(CompilerSearch | None, problem.compiler_search())
