"""From the name that a user gives to the file that the plugin loads."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.plugin import cache_folder
from nestor.policy import builtin, bundle
from nestor.policy.spec import Policy


@dataclass(frozen=True)
class PolicyFile:
    """A policy under the name that the user gave it."""

    name: str
    policy: Policy | None
    """None is the default heuristic."""
    path: Path | None
    """None is the default heuristic."""
    digest: str
    """SHA-256 of the file; ``default`` for the default heuristic."""

    @property
    def argument(self) -> Path | str:
        """What a rollout request and the plugin's option take."""
        return self.path or "default"


def holds(path: Path, digest: str) -> bool:
    """Tell whether the file ``path`` has the SHA-256 ``digest``; not if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def policy_file(name_or_path: str) -> PolicyFile:
    """Resolve a built-in name or a path; built-ins are written to the cache once.

    :raises PolicyError: if there is no such policy or the file is not one.
    """
    policy = builtin.resolve(name_or_path)
    if policy is None:
        return PolicyFile(name_or_path, None, None, "default")
    given = Path(name_or_path)
    digest = bundle.digest(policy)
    if given.is_file() and name_or_path not in builtin.BUILTINS:
        return PolicyFile(name_or_path, policy, given.resolve(), digest)
    path = cache_folder() / "policies" / f"{digest[:32]}.safetensors"
    if not holds(path, digest):
        path.parent.mkdir(parents=True, exist_ok=True)
        bundle.save(policy, path)
    return PolicyFile(name_or_path, policy, path, digest)
