"""What a run's compiles come to: how many, how many failed and why, and what they cost."""

import resource
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nestor.problem.rollout import Rollout


@dataclass
class Tally:
    """Counts of a run, which only grow; any thread may add to them."""

    rollouts: int = 0
    reused: int = 0
    """Rollouts whose outcome followed without compiling."""
    failures: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    """How often what failed for which reason."""
    prices: Mapping[str, float] = field(default_factory=dict, repr=False)
    """CPU seconds by unit and program; what is not listed costs nothing."""
    microseconds: int = 0
    """What the compiles and links cost by the prices; whole, so that sums are exact."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, rollouts: Sequence[Rollout]) -> None:
        """Count ``rollouts``, and what they cost."""
        self.count(len(rollouts))
        self.charge([rolled.request.unit.name for rolled in rollouts])
        for failed in (r for r in rollouts if not r.ok):
            self.fail(f"{failed.request.unit.name}: {failed.failure}")

    def count(self, rollouts: int, reused: int = 0) -> None:
        """Count so many rollouts, and so many that need not be compiled."""
        with self._lock:
            self.rollouts += rollouts
            self.reused += reused

    def charge(self, names: Sequence[str]) -> None:
        """Count the prices of a compile of each unit and of a link of each program named."""
        cost = sum(round(1e6 * self.prices.get(name, 0.0)) for name in names)
        with self._lock:
            self.microseconds += cost

    def fail(self, what: str) -> None:
        """Count one failure."""
        with self._lock:
            self.failures += 1
            self.reasons[what] = self.reasons.get(what, 0) + 1


@dataclass(frozen=True)
class Cost:
    """What a run cost, in CPU seconds."""

    rollouts: int
    failures: int
    compiler_seconds: float
    """User and system time of the compilers and linkers."""
    own_seconds: float
    """That of this process: learning, orchestration, reading objects."""
    wall_seconds: float

    @property
    def overhead(self) -> float:
        """The part of the CPU time that did not go into compilers."""
        total = self.own_seconds + self.compiler_seconds
        return self.own_seconds / total if total else 0.0

    @property
    def rollouts_per_cpu_second(self) -> float:
        """Rollouts per CPU second of everything."""
        total = self.own_seconds + self.compiler_seconds
        return self.rollouts / total if total else 0.0


class Meter:
    """Measures the CPU time from its construction to :meth:`read`."""

    def __init__(self) -> None:
        self._start = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (
            own.ru_utime + own.ru_stime,
            children.ru_utime + children.ru_stime,
            time.monotonic(),
        )

    def read(self, tally: Tally) -> Cost:
        """Return what was used since the meter was constructed."""
        own, children, wall = (b - a for a, b in zip(self._start, self._now(), strict=True))
        return Cost(tally.rollouts, tally.failures, children, own, wall)
