"""Keep the objects of baselines on disk, by content.

A greedy rollout depends on the compiler, the plugin, the module, its options and the policy, and
on nothing else, so its object can be looked up by a hash over these five. Losing the cache, or
having no room for it, costs time and nothing else. Any number of processes on any number of hosts
may share it: an object is put in place whole, and one that is gone or damaged is compiled again.
"""

import hashlib
import json
from pathlib import Path

from nestor.compiler.objects import is_complete
from nestor.compiler.plugin import cache_folder
from nestor.corpus.model import Module
from nestor.progress import Progress, silent
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request, Rollout


def baseline_key(pool: Pool, module: Module, policy: Path | str | None) -> str:
    """Return the hash under which the object of ``module`` under ``policy`` is kept."""
    plugin = pool.plugin
    parts = [
        plugin.toolchain.build_id,
        module.digest,
        list(module.options),
        None if policy is None else plugin.digest,
        _content(policy) if isinstance(policy, Path) else policy,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _content(policy: Path) -> str:
    return hashlib.sha256(policy.read_bytes()).hexdigest()


def baselines(
    pool: Pool,
    modules: tuple[Module, ...],
    policy: Path | str | None,
    progress: Progress = silent,
    stage: str = "Compiling the baseline",
) -> dict[str, Path]:
    """Return the object of every module under ``policy``, compiling those that are not kept.

    Modules that fail to compile are absent from the result.
    """
    folder = cache_folder() / "objects"
    kept = {}
    for module in modules:
        key = baseline_key(pool, module, policy)
        kept[module.name] = folder / key[:2] / f"{key}.o"
    missing = [module for module in modules if not is_complete(kept[module.name])]
    requests = [Request(module, policy, keep=kept[module.name]) for module in missing]
    results: list[Rollout] = pool.run(requests, progress, stage) if requests else []
    failed = {rollout.request.module.name for rollout in results if not rollout.ok}
    return {name: path for name, path in kept.items() if name not in failed}
