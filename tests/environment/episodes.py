"""Environments and whole episodes for the tests."""

from pathlib import Path
from typing import Any

from nestor.environment import CompileEnvironment, make

ENVIRONMENT_ID = "nestor/InliningForSize-v0"
EVICTION_ID = "nestor/RegallocEviction-v0"


def inlining(*corpus: Path, **settings: Any) -> CompileEnvironment:
    """The environment of inlining for size."""
    environment = make("inlining-size", **({"corpus": corpus[0]} if corpus else {}), **settings)
    assert isinstance(environment, CompileEnvironment)
    return environment


def play(env: CompileEnvironment, action: int | None = None, **reset: Any) -> dict[str, Any]:
    """Play one episode with always the same action, or the default's; return the end."""
    _, info = env.reset(**reset)
    rewards, done = [], False
    while not done:
        answer = info["default"] if action is None else action
        _, reward, terminated, truncated, info = env.step(answer)
        rewards.append(reward)
        done = terminated or truncated
    assert not any(rewards[:-1])
    return {**info, "reward": rewards[-1], "truncated": truncated, "steps": len(rewards)}
