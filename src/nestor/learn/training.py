"""The loop that all learners share: resume, update, plot, checkpoint, finish."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from nestor.errors import NestorError
from nestor.files import read_regular_text, write_atomically
from nestor.learn import checkpoint
from nestor.learn.learner import Learner
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent

_LARGEST: Final = 1 << 30
"""Bytes of a file of curves, at most."""

State = TypeVar("State", bound=Any)  # a frozen dataclass with an integer field "step"
Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Run:
    """Where a run lives and what it depends on."""

    folder: Path
    identity: Mapping[str, Any]
    """Everything that decides the result: settings, seed, hashes. Kept as ``run.json``."""
    raisable: frozenset[str] = frozenset()
    """Entries of it that only end the run: one that is done goes on when they are raised."""
    checkpoint_seconds: float = 10.0
    """The time after which the next finished step is kept."""

    @property
    def digest(self) -> str:
        """SHA-256 of the identity, without what may be raised."""
        fixed = {name: value for name, value in self.identity.items() if name not in self.raisable}
        return hashlib.sha256(_canonical(fixed).encode()).hexdigest()


@dataclass(frozen=True)
class Result:
    """What a run ended with."""

    policy: Policy
    resumed_at: int
    """The step at which this process took the run over; 0 for a fresh one."""
    last_metrics: Mapping[str, float]


def train(
    learner: Learner[State, Batch], run: Run, progress: Progress = silent, stage: str = "Training"
) -> Result:
    """Run ``learner`` to its end, from the last checkpoint if there is one.

    Writes ``run.json``, ``checkpoint.safetensors``, TensorBoard curves and the same numbers as
    lines of JSON (``curves.jsonl``) to the run's folder.

    :raises CheckpointError: if the folder holds another run, one that went further than
        ``learner`` is to go.
    :raises NestorError: if the folder cannot be written.
    """
    from torch.utils.tensorboard import SummaryWriter  # slow to import

    _make_folder(run)
    path = run.folder / "checkpoint.safetensors"
    fresh = learner.init()
    state = checkpoint.load(path, fresh, run.digest) or fresh
    if state.step > learner.steps:
        raise checkpoint.CheckpointError(
            f"The run in {run.folder} has gone further than this: take another --out."
        )
    write_atomically(run.folder / "run.json", json.dumps(run.identity, indent=2, sort_keys=True))
    resumed_at = int(state.step)
    metrics: Mapping[str, float] = {}
    kept = time.monotonic()
    # What a killed run had plotted after its last checkpoint is purged.
    writer = SummaryWriter(str(run.folder / "curves"), purge_step=resumed_at)
    lines = run.folder / "curves.jsonl"
    _cut(lines, resumed_at)
    try:
        progress(stage, resumed_at, learner.steps)
        while state.step < learner.steps:
            step = int(state.step)
            state, metrics = learner.update(state, learner.batch(state))
            for name, value in metrics.items():
                writer.add_scalar(name, value, step)
            with lines.open("a") as file:
                file.write(json.dumps({"step": step, **metrics}) + "\n")
            if time.monotonic() - kept > run.checkpoint_seconds:
                checkpoint.save(path, state, run.digest)
                kept = time.monotonic()
            progress(stage, int(state.step), learner.steps)
        checkpoint.save(path, state, run.digest)
    finally:
        writer.close()
    return Result(learner.policy(state), resumed_at, metrics)


def _make_folder(run: Run) -> None:
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NestorError(
            f"The run's folder {run.folder} cannot be written ({error.strerror}); take another"
            " --out."
        ) from None


def _cut(lines: Path, step: int) -> None:
    """Remove from a file of curves everything from ``step`` on."""
    kept = []
    text = read_regular_text(lines, "curves", limit=_LARGEST) if lines.exists() else ""
    for line in text.splitlines():
        try:
            before = json.loads(line)["step"] < step
        except (ValueError, KeyError, TypeError):
            break  # the last line of a process that was killed
        if before:
            kept.append(line + "\n")
    write_atomically(lines, "".join(kept))


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
