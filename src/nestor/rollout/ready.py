"""A policy and a plugin that are ready to use, found without reading either.

Reading a policy and running the identity gate take numpy, whose import takes longer than all else
that ``nestor flags`` and ``nestor clang`` do, the latter once per source file of a build. So both
are done the first time only: a policy file in the cache was checked when it was written, under its
own hash, and a plugin's gate leaves a record beside the plugin. (The plugin checks every policy
file that it loads, too.)
"""

import hashlib
from importlib import resources
from pathlib import Path

from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.toolchain import find
from nestor.rollout.records import has_passed, policy_copy


def stored_policy(name_or_path: str, problem: str) -> Path | str:
    """Return what the plugin's option takes: the policy's copy in the cache, or ``default``.

    :param problem: whose built-in policies may be named.
    :raises PolicyError: if there is no such policy or the file is not one.
    """
    if name_or_path == "default":
        return name_or_path
    digest = _digest(_file(name_or_path, problem))
    copy = policy_copy(digest)
    if digest and _digest(copy) == digest:
        return copy
    from nestor.problem.registry import find_problem
    from nestor.rollout.cache import policy_path

    return policy_path(find_problem(problem).policy(name_or_path))


def passed_plugin(llvm: str | None, problem: str) -> Plugin:
    """Return the plugin of the toolchain to use, built and through the problem's identity gate.

    :raises ToolchainError: if there is no usable LLVM, or it does not pass.
    """
    plugin = ensure_plugin(find(llvm))
    if has_passed(plugin, problem):
        return plugin
    from nestor.problem.registry import find_problem
    from nestor.rollout.gate import require

    return require(find_problem(problem), plugin)


def _file(name_or_path: str, problem: str) -> Path:
    """Return the file that a name stands for: a built-in's of the package, or the user's own."""
    folder = Path(str(resources.files("nestor"))) / "problems" / problem.replace("-", "_")
    packaged = folder / "data" / f"{name_or_path}.safetensors"
    if name_or_path.isalnum() and packaged.is_file():
        return packaged
    # A name without a slash or this suffix may be a built-in's, which wins over a file.
    is_path = "/" in name_or_path or name_or_path.endswith(".safetensors")
    return Path(name_or_path) if is_path else Path()


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, nothing if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return ""
