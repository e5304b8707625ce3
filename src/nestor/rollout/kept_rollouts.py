"""Rollouts on disk, with their objects and trajectories, so that a process can go on from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from nestor.errors import NestorError
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.problem.trajectory import Trajectory
from nestor.rollout.kept import keep_arrays, read_arrays


def keep_rollout(pool: Pool, rollout: Rollout, path: Path) -> None:
    """Write ``rollout``, which has an object and a trajectory, to ``path``, whole or not at all.

    :raises OSError: if it cannot be written.
    """
    trajectory, digest = rollout.trajectory, rollout.object
    assert trajectory is not None and digest is not None, "a rollout that is linked has both"
    about = {
        "features": trajectory.features,
        "default_column": trajectory.default_column,
        "names": {str(number): name for number, name in trajectory.names.items()},
        "facts": dict(trajectory.facts),
    }
    arrays = {
        "object": np.frombuffer(pool.objects.path(digest).read_bytes(), np.uint8),
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        "decisions": trajectory.decisions,
    }
    if trajectory.candidates is not None:
        arrays["candidates"] = trajectory.candidates
    if trajectory.question is not None:
        arrays["question"] = trajectory.question
    keep_arrays(arrays, path)


def read_rollout(pool: Pool, request: Request, path: Path) -> Rollout | None:
    """Return the rollout in ``path`` as if ``request`` had been run.

    None if it is not there or not as it was written, or if the problem cannot tell its outcome from
    the object.
    """
    arrays = read_arrays(path)
    if arrays is None:
        return None
    try:
        about: dict[str, Any] = json.loads(arrays["about"].tobytes())
        trajectory = Trajectory(
            features=tuple(about["features"]),
            decisions=arrays["decisions"],
            default_column=str(about["default_column"]),
            candidates=arrays.get("candidates"),
            question=arrays.get("question"),
            names={int(number): str(name) for number, name in about["names"].items()},
            facts={str(name): int(value) for name, value in about["facts"].items()},
        )
        file = pool.objects.write(arrays["object"].tobytes())
        outcome = pool.problem.outcome_of(file)
    except (KeyError, TypeError, ValueError, AttributeError, NestorError):
        return None
    if outcome is None:
        return None
    return Rollout(request, outcome, trajectory, 0.0, None, pool.objects.put(file))
