"""A pool on top of another one, for pools that change only how rollouts are made."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Limits
from nestor.corpus.model import Corpus
from nestor.problem.problem import Pool, Problem
from nestor.problem.rollout import Request, Rollout, Store, Workplace
from nestor.progress import Progress, silent

Item = TypeVar("Item")
Result = TypeVar("Result")


class LayeredPool:
    """A :class:`nestor.problem.problem.Pool` that is the pool below it, except for what a subclass
    overrides.
    """

    def __init__(self, below: Pool):
        """Stand for ``below``."""
        self.below = below

    @property
    def problem(self) -> Problem:
        """What is decided."""
        return self.below.problem

    @property
    def corpus(self) -> Corpus:
        """The units and programs."""
        return self.below.corpus

    @property
    def plugin(self) -> Plugin:
        """The plugin and the toolchain that compile."""
        return self.below.plugin

    @property
    def limits(self) -> Limits:
        """What each compiler may use."""
        return self.below.limits

    @property
    def place(self) -> Workplace:
        """Where the work of :meth:`map` runs."""
        return self.below.place

    @property
    def jobs(self) -> int:
        """Compilers at once."""
        return self.below.jobs

    @property
    def cancelled(self) -> bool:
        """Whether nothing is compiled any more."""
        return self.below.cancelled

    @property
    def objects(self) -> Store:
        """The objects of the requests that wanted them kept."""
        return self.below.objects

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = "Compiling"
    ) -> list[Rollout]:
        """Run all requests and return their rollouts in the order of the requests."""
        return self.below.run(requests, progress, stage)

    def map(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        progress: Progress = silent,
        stage: str = "Linking",
    ) -> list[Result]:
        """Run ``work`` on every item; results in the order of the items."""
        return self.below.map(work, items, progress, stage)

    def cancel(self) -> None:
        """Kill what runs and start nothing new."""
        self.below.cancel()
