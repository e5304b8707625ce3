"""One rollout: a unit compiled under a policy, as a request and its result.

A rollout is pure: the same request gives the same bytes on every machine and in any order. A
request and its result carry content or its digest, never a path of one machine, so that a pool
may run them anywhere.
"""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Limits
from nestor.corpus.model import Corpus, Module
from nestor.policy.names import NamedPolicy
from nestor.problem.places import Places
from nestor.problem.trajectory import Trajectory


@dataclass(frozen=True)
class Request:
    """What to compile and who decides."""

    unit: Module
    policy: NamedPolicy | None = None
    """None is the stock compiler, of which nothing is observed."""
    seed: int | None = None
    """Sample the actions with this seed; None takes the greedy ones."""
    by_group: bool = False
    """When sampling, let all questions of a group (see the problem) draw the same number."""
    temperature: float | None = None
    """Divides the logits before sampling; None is 1."""
    also: tuple[NamedPolicy, ...] = ()
    """Policies about other decisions, in the same compile."""
    overrides: str | None = None
    """The text of a file of overrides."""
    summary: str | None = None
    """The text of the program's summary, for policies that read one."""
    log: bool = False
    """Return the trajectory."""
    names: bool = False
    """Return the functions' names with it."""
    keep: bool = False
    """Keep the object, so that it can be linked."""
    places: bool = False
    """Return where the questions stand in the source; takes ``log`` and ``names``."""


@dataclass(frozen=True)
class Rollout:
    """What became of one request; a failure is a result with its reason."""

    request: Request
    outcome: Any
    """What the compile came to, in the problem's own type; None if there is no object."""
    trajectory: Trajectory | None
    cpu_seconds: float
    """User and system time of the compiler; 0 if its object had been kept."""
    failure: str | None
    """Why there is no result, in one line; None if all went well."""
    object: str | None = None
    """SHA-256 of the object in the store of the caller; None unless it was to be kept."""
    places: Places | None = None
    """None unless they were wanted."""

    @property
    def ok(self) -> bool:
        """The compile, its object and its log are all there."""
        return self.failure is None

    @staticmethod
    def failed(request: Request, reason: str, cpu_seconds: float = 0.0) -> "Rollout":
        """Return the result of a compile that failed."""
        return Rollout(request, None, None, cpu_seconds, reason)


class Store(Protocol):
    """Files by the SHA-256 of their content."""

    def put(self, file: Path) -> str:
        """Copy ``file`` in and return its SHA-256."""

    def write(self, content: bytes) -> Path:
        """Return a file with ``content``."""

    def path(self, digest: str) -> Path:
        """Return the file of this SHA-256."""

    def release(self, digest: str) -> None:
        """Take one :meth:`put` of this content back; a file with none left may be deleted."""


@dataclass(frozen=True)
class Workplace:
    """Where one rollout runs."""

    corpus: Corpus
    plugin: Plugin
    limits: Limits
    files: Store
    """Local files with the contents of requests (policies, overrides, summaries)."""
    objects: Store
    """Where objects are kept that a request wants to keep."""
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)
