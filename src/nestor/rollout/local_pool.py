"""Run many rollouts at once on this machine.

The workers of the pool are the compiler processes themselves: each runs under its own time and
memory limits, and one that crashes, hangs or is killed costs its own rollout and nothing else. A
thread per worker waits for it; the interpreter's lock is free while a compiler works.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Ending, Limits
from nestor.corpus.model import Corpus
from nestor.corpus.release import require_readable
from nestor.errors import NestorError
from nestor.numbers import refuse_numbers
from nestor.problem.problem import Problem
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.progress import Progress, silent
from nestor.rollout.store import FileStore
from nestor.temporary import temporary_folder

_LONGEST_WAIT = 1.0
"""Seconds. A signal that comes just before a wait is seen only after it."""

Item = TypeVar("Item")
Result = TypeVar("Result")


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


class LocalPool:
    """Runs rollouts on this machine (:class:`nestor.problem.problem.Pool`).

    A context manager: leaving it cancels what runs and deletes the objects that were kept.
    """

    def __init__(
        self,
        problem: Problem,
        corpus: Corpus,
        plugin: Plugin,
        settings: PoolSettings | None = None,
    ):
        """Prepare; nothing runs yet.

        :raises CorpusError: if the corpus is of a newer LLVM than the plugin's.
        :raises NestorError: if a number of the settings cannot be what it is.
        """
        self.settings = settings or PoolSettings()
        refuse_numbers(self.settings)
        require_readable(corpus, plugin.toolchain)
        self.problem = problem
        self.corpus = corpus
        self.plugin = plugin
        self.limits = Limits(self.settings.timeout, self.settings.memory)
        self._folder = temporary_folder("pool")
        self.objects = FileStore(Path(self._folder.name) / "objects")
        self.place = Workplace(
            corpus, plugin, self.limits, FileStore(Path(self._folder.name) / "files"), self.objects
        )
        self._closed = False
        self._threads = ThreadPoolExecutor(self.settings.jobs, "nestor-rollout")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.cancel()
        self._closed = True
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._folder.cleanup()

    @property
    def jobs(self) -> int:
        """Compilers at once."""
        return self.settings.jobs

    @property
    def cancelled(self) -> bool:
        """Whether nothing is compiled any more."""
        return self.place.cancelled.is_set()

    def cancel(self) -> None:
        """Kill what runs and start nothing new; those rollouts fail as cancelled."""
        self.place.cancelled.set()

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = "Compiling"
    ) -> list[Rollout]:
        """Run all requests and return their rollouts in the order of the requests.

        :raises NestorError: if the pool is closed.
        """
        return self.map(self._rollout, requests, progress, stage)

    def map(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        progress: Progress = silent,
        stage: str = "Linking",
    ) -> list[Result]:
        """Run ``work``, which waits for a process, on every item; results in the items' order.

        :raises NestorError: if the pool is closed.
        """
        if self._closed:
            raise NestorError("This pool is closed: use it in its 'with' block, or open another.")
        futures: list[Future[Result]] = [self._threads.submit(work, item) for item in items]
        pending = set(futures)
        progress(stage, 0, len(futures))
        try:
            while pending:
                done, pending = wait(pending, _LONGEST_WAIT, return_when=FIRST_COMPLETED)
                if done:
                    progress(stage, len(futures) - len(pending), len(futures))
        except BaseException:  # an interrupt must not wait for the compilers
            self.cancel()
            for future in pending:
                future.cancel()
            raise
        return [future.result() for future in futures]

    def _rollout(self, request: Request) -> Rollout:
        try:
            return self.problem.compile(request, self.place)
        except OSError as error:  # a full disk, most likely
            return Rollout.failed(request, f"{Ending.NOT_STARTED.value}: {error}")
