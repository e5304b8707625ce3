"""What the tests of both problems about register allocation do."""

import dataclasses

import numpy as np

from nestor.policy import network
from nestor.policy.names import NamedPolicy
from nestor.policy.network import Layer, LogNormalisation, MlpPolicy
from nestor.problem.rollout import Request, Rollout
from nestor.problem.trajectory import Trajectory
from nestor.rollout.local_pool import LocalPool
from tests.conftest import module_named


def compiled(
    pool: LocalPool, policy: str | NamedPolicy | None, unit: str = "pressure.c.o", **more: object
) -> Rollout:
    """Compile one module of the small corpus, with its trajectory."""
    named = pool.problem.policy(policy) if isinstance(policy, str) else policy
    module = module_named(pool.corpus, unit)
    request = Request(module, named, log=policy is not None, names=policy is not None, keep=True)
    (rollout,) = pool.run([dataclasses.replace(request, **more)])  # type: ignore[arg-type]
    return rollout


def columns(pool: LocalPool, rollout: Rollout) -> dict[str, float]:
    """Return the report's columns of a compile that must have succeeded."""
    assert rollout.failure is None
    return dict(pool.problem.columns(rollout.outcome))


def log_of(rollout: Rollout) -> Trajectory:
    """Return the trajectory of a compile that must have succeeded."""
    assert rollout.failure is None
    assert rollout.trajectory is not None
    return rollout.trajectory


def linear(pool: LocalPool, weights: dict[str, float], bias: float = 0.0) -> MlpPolicy:
    """Return a policy that is linear in the squashed features of ``weights``."""
    count = len(weights)
    matrix = np.array([list(weights.values())], dtype=np.float32)
    return network.build(
        tuple(weights),
        "decision",
        LogNormalisation(np.zeros(count), np.ones(count)),
        (Layer(matrix, np.full(1, bias, dtype=np.float32)),),
        problem=pool.problem.name,
        rule=pool.problem.rule.name,
    )
