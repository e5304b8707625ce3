"""Run many rollouts at once.

The workers of the pool are the compiler processes themselves: each runs under its own time and
memory limits, and one that crashes, hangs or is killed costs its own rollout and nothing else. A
thread per worker waits for it; the interpreter's lock is free while a compiler works.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Limits
from nestor.corpus.model import Corpus
from nestor.progress import Progress, silent
from nestor.rollout.rollout import Request, Rollout, rollout

Item = TypeVar("Item")
Made = TypeVar("Made")


def available_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class PoolSettings:
    """How many compilers run at once, and what each may use."""

    jobs: int = field(default_factory=available_cores)
    """Compilers at once."""
    timeout: float = 120.0
    """Seconds until a compile is killed."""
    memory: int = 4096
    """MiB of address space that a compile may use."""


class Pool:
    """Runs rollouts on the local machine. A context manager: leaving it cancels what runs."""

    def __init__(self, corpus: Corpus, plugin: Plugin, settings: PoolSettings | None = None):
        self.corpus = corpus
        self.plugin = plugin
        self.settings = settings or PoolSettings()
        self.limits = Limits(self.settings.timeout, self.settings.memory)
        self._cancelled = threading.Event()
        self._threads = ThreadPoolExecutor(max(1, self.settings.jobs), "nestor-rollout")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)

    @property
    def cancelled(self) -> bool:
        """Nothing is compiled any more."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Kill what runs and start nothing new; their rollouts fail as cancelled."""
        self._cancelled.set()

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = "Compiling"
    ) -> list[Rollout]:
        """Run all requests and return their rollouts in the order of the requests."""

        def one(request: Request) -> Rollout:
            return rollout(request, self.corpus, self.plugin, self.limits, self._cancelled)

        return self.map(one, requests, progress, stage)

    def map(
        self,
        work: Callable[[Item], Made],
        items: Sequence[Item],
        progress: Progress = silent,
        stage: str = "Linking",
    ) -> list[Made]:
        """Run ``work``, which waits for a process, on every item; results in the items' order."""
        futures: list[Future[Made]] = [self._threads.submit(work, item) for item in items]
        pending = set(futures)
        progress(stage, 0, len(futures))
        try:
            while pending:
                _, pending = wait(pending, return_when=FIRST_COMPLETED)
                progress(stage, len(futures) - len(pending), len(futures))
        except BaseException:  # an interrupt must not wait for the compilers
            self.cancel()
            for future in pending:
                future.cancel()
            raise
        return [future.result() for future in futures]
