"""Learners: they learn, and a run that is killed ends with the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from nestor.errors import NestorError
from nestor.learn import checkpoint
from nestor.learn.algorithms.cloning import Cloning, CloningSettings, clone
from nestor.learn.algorithms.es import (
    EvolutionSettings,
    EvolutionState,
    EvolutionStrategies,
)
from nestor.learn.batch import Examples
from nestor.learn.checkpoint import CheckpointError
from nestor.learn.training import Run, train
from nestor.policy import bundle, network
from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.policy.rule import THRESHOLD
from nestor.policy.spec import Policy

NAMES = ("cost", "constants")


def cloning(steps: int = 400, seed: int = 0) -> Cloning:
    """Clone 'inline when the cost is below 5' from synthetic decisions."""
    generator = np.random.default_rng(7)
    cost = generator.integers(-40, 60, size=4000) * 5.0
    x = np.stack([cost, generator.integers(0, 4, size=4000)], axis=1)
    settings = CloningSettings(hidden=(16,), steps=steps, batch_size=512)
    examples = Examples(x, np.arange(4000), (cost < 5).astype(np.int64))
    return Cloning.fit(settings, seed, NAMES, examples, "toy", THRESHOLD)


def start_policy(seed: int = 0) -> MlpPolicy:
    normalisation = LogNormalisation(np.zeros(2), np.ones(2))
    layers = network.initial_layers((2, 4, 1), np.random.default_rng(seed))
    return network.build(NAMES, "decision", normalisation, layers, problem="toy")


TARGET = np.linspace(-1, 1, 17)


def distance(policy: Policy) -> float:
    assert isinstance(policy, MlpPolicy)
    return float(((policy.flatten_parameters() - TARGET) ** 2).sum())


def evolution(settings: EvolutionSettings, fail: bool = False) -> EvolutionStrategies:
    """Minimise the distance of the parameters to TARGET; no compiler involved."""
    start = distance(start_policy())

    def compare(policies: Sequence[MlpPolicy]) -> npt.NDArray[np.float64]:
        rows = [[0.01 * (distance(p) - start)] for p in policies]
        for i in range(1, len(rows), 3):
            rows[i] = [np.nan] if fail else rows[i]
        return np.array(rows)

    return EvolutionStrategies(settings, 3, start_policy(), ("a",), compare, lambda _policy: 0.0)


def test_cloning_reaches_the_default() -> None:
    learner = cloning(800)
    before = learner.agreement(learner.policy(learner.init()))
    assert learner.agreement(clone(learner)) > 0.998 > before


def test_evolution_improves_and_never_accepts_worse() -> None:
    learner = evolution(EvolutionSettings(steps=60))
    state = learner.init()
    scores = []
    for _ in range(learner.steps):
        state, metrics = learner.update(state, learner.batch(state))
        scores.append(metrics["guarded_score_pct"])
    assert scores == sorted(scores, reverse=True)
    assert distance(learner.policy(state)) < 0.3 * distance(learner.start)


def test_centre_stays_in_the_trust_region() -> None:
    """Deviation is the distance from the start; the centre gets as far as it may, no further."""
    start = start_policy().flatten_parameters()

    def deviation(policy: MlpPolicy) -> float:
        return float(np.abs(policy.flatten_parameters() - start).max())

    for trust in (0.05, 0.5):
        free = evolution(EvolutionSettings(steps=30, trust=trust))
        learner = replace(free, deviation=deviation)
        state = learner.init()
        for _ in range(learner.steps):
            state, metrics = learner.update(state, learner.batch(state))
            assert metrics["deviation_pct"] <= 100 * trust
        assert deviation(learner.policy(state)) > 0.5 * trust


def test_failed_compiles_are_never_chosen() -> None:
    learner = evolution(EvolutionSettings(steps=3), fail=True)
    state = learner.init()
    for _ in range(3):
        state, metrics = learner.update(state, learner.batch(state))
        assert metrics["failed"] > 0
        assert np.isfinite(state.score)


def test_what_grows_a_program_is_not_chosen() -> None:
    """Two programs: every change that shrinks the first by 1 % grows the second by 0.5 %."""

    start = start_policy().flatten_parameters()

    def compare(policies: Sequence[MlpPolicy]) -> npt.NDArray[np.float64]:
        moved = [bool((p.flatten_parameters() != start).any()) for p in policies]
        return np.array([[-0.01, 0.005] if m else [0.0, 0.0] for m in moved])

    alone = evolution(EvolutionSettings(steps=2))
    learner = replace(alone, compare=compare, projects=("a", "a"))
    state = learner.init()
    after, _metrics = learner.update(state, learner.batch(state))
    assert (after.center == state.center).all()
    careless = replace(learner, settings=EvolutionSettings(steps=2, growth_penalty=0))
    after, _metrics = careless.update(state, careless.batch(state))
    assert (after.center != state.center).any()


@pytest.mark.parametrize("stop", [1, 7, 19])
@pytest.mark.parametrize("kind", ["cloning", "evolution"])
def test_resumed_run_ends_with_the_same_bytes(kind: str, stop: int, tmp_path: Path) -> None:
    learner = cloning(20) if kind == "cloning" else evolution(EvolutionSettings(steps=20))
    identity = {"test": kind}
    whole = train(learner, Run(tmp_path / "whole", identity))  # type: ignore[misc]

    state = learner.init()
    for _ in range(stop):
        state, _metrics = learner.update(state, learner.batch(state))  # type: ignore[arg-type]
    run = Run(tmp_path / "cut", identity)
    run.folder.mkdir()
    checkpoint.save(run.folder / "checkpoint.safetensors", state, run.digest)
    resumed = train(learner, run)  # type: ignore[misc]

    assert resumed.resumed_at == stop
    assert bundle.to_bytes(resumed.policy) == bundle.to_bytes(whole.policy)
    ends = [(tmp_path / f / "checkpoint.safetensors").read_bytes() for f in ("whole", "cut")]
    assert ends[0] == ends[1]


KILLED = """
import sys
from pathlib import Path
from nestor.learn.training import Run, train
from nestor.policy import bundle
from tests.learn.test_learners import cloning
run = Run(Path(sys.argv[1]), {"test": "killed"}, checkpoint_seconds=0.05)
result = train(cloning(300), run)
bundle.save(result.policy, Path(sys.argv[1]) / "policy.safetensors")
print(result.resumed_at)
"""


def test_run_killed_by_signal_goes_on(tmp_path: Path) -> None:
    def start(folder: Path) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", KILLED, str(folder)],
            cwd=Path(__file__).parent.parent.parent,
            stdout=subprocess.PIPE,
            text=True,
        )

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert start(whole).wait() == 0
    killed = start(cut)
    deadline = time.monotonic() + 60
    while not (cut / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (cut / "policy.safetensors").exists(), "it was killed too late to test anything"
    again = start(cut)
    spoken, _ = again.communicate()
    assert again.returncode == 0
    assert int(spoken) > 0, "it began anew instead of going on"
    assert (cut / "policy.safetensors").read_bytes() == (whole / "policy.safetensors").read_bytes()


def test_other_run_is_not_resumed(tmp_path: Path) -> None:
    train(cloning(3), Run(tmp_path, {"seed": 0}))
    with pytest.raises(CheckpointError, match="another --out"):
        train(cloning(3), Run(tmp_path, {"seed": 1}))
    assert json.loads((tmp_path / "run.json").read_text()) == {"seed": 0}


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_broken_checkpoint_is_refused(damage: str, tmp_path: Path) -> None:
    run = Run(tmp_path, {"seed": 0})
    train(cloning(3), run)
    path = tmp_path / "checkpoint.safetensors"
    data = path.read_bytes()
    broken = {"cut": data[:-9], "flip": data[:20] + b"\xff" + data[21:], "empty": b""}
    path.write_bytes(broken[damage])
    with pytest.raises(CheckpointError, match="delete it to start anew"):
        train(cloning(3), run)


def test_full_disk_keeps_the_checkpoint_before(full_disk: Path) -> None:
    (full_disk / "ballast").unlink()
    path = full_disk / "checkpoint.safetensors"
    learner = evolution(EvolutionSettings())
    state = learner.init()
    checkpoint.save(path, state, "run")
    before = path.read_bytes()
    huge = replace(state, center=np.zeros(20_000))
    with pytest.raises(CheckpointError, match=r"No space left.*make room"):
        checkpoint.save(path, huge, "run")
    assert path.read_bytes() == before
    kept = checkpoint.load(path, state, "run")
    assert isinstance(kept, EvolutionState)
    assert [p.name for p in full_disk.iterdir()] == [path.name]


def test_unwritable_run_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NestorError, match="take another --out"):
        train(cloning(1), Run(tmp_path / "file" / "run", {}))
