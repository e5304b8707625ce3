"""What a compile asked, and whether other overrides would have answered it otherwise.

A compile depends on the answers to the questions that it asks and on nothing else. A search holds
thousands of sites to their answers, so overrides are indexed once for all the compiles of a build.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from nestor.compiler.trajectory_log import Trajectory
from nestor.policy.overrides import Overrides


@dataclass(frozen=True)
class Answers:
    """Overrides by number."""

    sites: Mapping[int, bool]
    callees: Mapping[int, bool]

    @staticmethod
    def of(overrides: Overrides) -> "Answers":
        """Index ``overrides``."""
        sites = {key.number: answer for key, answer in overrides.items() if key.kind == "site"}
        others = {key.number: answer for key, answer in overrides.items() if key.kind != "site"}
        return Answers(sites, others)


@dataclass(frozen=True)
class Asked:
    """The sites and callees that a compile asked about."""

    sites: frozenset[int]
    callees: frozenset[int]

    @staticmethod
    def of(trajectories: Iterable[Trajectory]) -> "Asked":
        """Return what the compiles with these logs asked about."""
        records = [trajectory.records for trajectory in trajectories]
        sites, callees = (
            frozenset[int]().union(*(r[tensor].view("<u8").tolist() for r in records))
            for tensor in ("site", "callee")
        )
        return Asked(sites, callees)

    def among(self, answers: Answers) -> Answers:
        """Return those of ``answers`` that were asked for."""
        return Answers(
            {n: answers.sites[n] for n in self.sites & answers.sites.keys()},
            {n: answers.callees[n] for n in self.callees & answers.callees.keys()},
        )


@dataclass(frozen=True)
class Made:
    """Something that was compiled."""

    asked: Asked
    answers: Answers
    """The overrides among that."""


AnyMade = TypeVar("AnyMade", bound=Made)


def known(all_made: Iterable[AnyMade], answers: Answers) -> AnyMade | None:
    """Return what compiling again under ``answers`` would give, if it has been made."""
    for made in all_made:
        if made.answers == made.asked.among(answers):
            return made
    return None
