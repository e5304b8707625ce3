"""Keep the objects of baselines on disk, by what they depend on.

A greedy rollout depends on the problem, the compiler, the plugin, the unit, its options and the
policy, and on nothing else, so its object can be looked up by a hash over these. Losing the cache
costs time and nothing else. Any number of processes on any number of hosts may share it: files are
put in place whole, and one that is gone or damaged is made again.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from nestor.compiler.plugin import cache_folder
from nestor.corpus.model import Module
from nestor.files import write_atomically
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request
from nestor.progress import Progress, silent
from nestor.rollout.kept import is_whole, keep
from nestor.rollout.records import policy_copy


def baseline_key(pool: Pool, unit: Module, policy: NamedPolicy | None) -> str:
    """Return the hash under which the object of ``unit`` under ``policy`` is kept."""
    plugin = pool.plugin
    parts = [
        plugin.toolchain.build_id,
        unit.digest,
        list(unit.options),
        None if policy is None else [pool.problem.name, plugin.digest, policy.digest],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def baseline_path(pool: Pool, unit: Module, policy: NamedPolicy | None) -> Path:
    """Return where the object of ``unit`` under ``policy`` is kept, or would be."""
    key = baseline_key(pool, unit, policy)
    return cache_folder() / "objects" / key[:2] / f"{key}.o"


def policy_path(policy: NamedPolicy) -> Path:
    """Return a file with ``policy`` that stays as it is: its name is its digest.

    A build system that sees the path in a command line compiles again when the policy changes.
    """
    path = policy_copy(policy.digest)
    try:
        whole = path.read_bytes() == policy.data
    except OSError:
        whole = False
    if not whole:
        write_atomically(path, policy.data)
    return path


def baselines(
    pool: Pool,
    units: Sequence[Module],
    policy: NamedPolicy | None,
    progress: Progress = silent,
    stage: str = "Compiling the baseline",
) -> dict[str, Path]:
    """Return the object of every unit under ``policy``, compiling those that are not kept.

    Units that fail to compile are absent from the result.

    :raises OSError: if an object cannot be kept.
    """
    kept = {unit.name: baseline_path(pool, unit, policy) for unit in units}
    missing = [unit for unit in units if not is_whole(kept[unit.name])]
    requests = [Request(unit, policy, keep=True) for unit in missing]
    failed = set()
    for done in pool.run(requests, progress, stage) if requests else []:
        name = done.request.unit.name
        if done.object is None:
            failed.add(name)
            continue
        keep(pool.objects.path(done.object), kept[name])
    return {name: path for name, path in kept.items() if name not in failed}
