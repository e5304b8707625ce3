"""One rollout: compile a module under a policy, and keep what it decided and what it cost.

A rollout is pure: the same module, policy and seed give the same bytes on every machine and in
any order. A failure is a result with its reason, never an exception.
"""

import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.invocation import compile_command
from nestor.compiler.objects import Measure, ObjectError, measure
from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Ending, Limits, run
from nestor.compiler.trajectory_log import LogError, Trajectory, read
from nestor.corpus.model import Corpus, Module
from nestor.files import replacing


@dataclass(frozen=True)
class Request:
    """What to compile and who decides."""

    module: Module
    policy: Path | str | None = None
    """A policy file, ``"default"`` for the default heuristic seen through the plugin, or None
    for the stock compiler without the plugin."""
    seed: int | None = None
    """Sample decisions with this seed; greedy without."""
    seed_callees: bool = False
    """Draw one answer for all sites of a callee."""
    temperature: float | None = None
    overrides: Path | None = None
    program: Path | None = None
    """The summary of the program that the module is compiled for, for policies that read it."""
    log: bool = False
    """Keep the trajectory."""
    names: bool = False
    """Keep the functions' names with it."""
    keep: Path | None = None
    """Copy the object here, so that it can be linked."""


@dataclass(frozen=True)
class Rollout:
    """What became of one request."""

    request: Request
    measure: Measure | None
    """The object's sizes; None if there is no object."""
    trajectory: Trajectory | None
    cpu_seconds: float
    """User and system time of the compiler."""
    failure: str | None
    """Why there is no result, in one line; None if all went well."""

    @property
    def ok(self) -> bool:
        """The compile, its object and its log are all there."""
        return self.failure is None


def rollout(
    request: Request,
    corpus: Corpus,
    plugin: Plugin,
    limits: Limits,
    cancelled: threading.Event | None = None,
) -> Rollout:
    """Compile ``request.module`` and read what came of it."""
    try:
        with tempfile.TemporaryDirectory(prefix="nestor-rollout-") as text:
            return _compile(request, corpus, plugin, limits, cancelled, Path(text))
    except OSError as error:  # a full disk, most likely
        return _failed(request, f"{Ending.NOT_STARTED.value}: {error}")


def _compile(
    request: Request,
    corpus: Corpus,
    plugin: Plugin,
    limits: Limits,
    cancelled: threading.Event | None,
    folder: Path,
) -> Rollout:
    out, log = folder / "module.o", folder / "log"
    command = compile_command(
        plugin.toolchain,
        request.module.options,
        corpus.bitcode(request.module),
        out,
        plugin_flags(request, plugin, log),
    )
    outcome = run(command, limits, cancelled=cancelled)
    if not outcome.ok:
        return _failed(request, outcome.reason, outcome.cpu_seconds)
    try:
        sizes = measure(out)
        trajectory = read(log) if request.log else None
    except (ObjectError, LogError) as error:
        return _failed(request, f"{Ending.FAILED.value}: {error}", outcome.cpu_seconds)
    if request.keep is not None:
        keep_object(out, request.keep)
    return Rollout(request, sizes, trajectory, outcome.cpu_seconds, None)


def plugin_flags(request: Request, plugin: Plugin, log: Path) -> list[str]:
    """Return the compiler's options for ``request``."""
    if request.policy is None:
        return []
    return plugin.flags(
        request.policy,
        log=log if request.log else None,
        names=request.names,
        overrides=request.overrides,
        program=request.program,
        seed=request.seed,
        seed_callees=request.seed_callees,
        temperature=request.temperature,
    )


def keep_object(compiled: Path, kept: Path) -> None:
    """Copy an object to ``kept``, which no reader and no other process ever sees in part."""
    with replacing(kept) as scratch:
        shutil.copyfile(compiled, scratch)


def _failed(request: Request, reason: str, cpu_seconds: float = 0.0) -> Rollout:
    return Rollout(request, None, None, cpu_seconds, reason)
