"""From the name of a policy to the path that the plugin takes, without reading the policy.

Reading a policy takes numpy, whose import takes longer than all else that ``nestor flags`` and
``nestor clang`` do, once per source file of a build. So a file is read the first time only: that
this version of Nestor has checked it is kept in the cache under the file's hash. The plugin checks
every file that it loads, too.
"""

import hashlib
from importlib import resources
from pathlib import Path

from nestor import __version__
from nestor.compiler.plugin import cache_folder
from nestor.files import write_atomically


def policy_path(name_or_path: str) -> Path | str:
    """Return what the plugin's option takes: a path that holds everywhere, or ``default``.

    :raises PolicyError: if there is no such policy or the file is not one.
    """
    if name_or_path == "default":
        return name_or_path
    packaged = Path(str(resources.files("nestor"))) / "policy" / "data"
    if name_or_path.isalnum() and (packaged / f"{name_or_path}.safetensors").is_file():
        return _copy((packaged / f"{name_or_path}.safetensors").read_bytes())
    # Of other names, only one that cannot be a built-in's is taken for a file here.
    digest = ""
    if "/" in name_or_path or name_or_path.endswith(".safetensors"):
        digest = _digest(Path(name_or_path))
        if digest and _mark(digest).exists():
            return Path(name_or_path).resolve()
    from nestor.rollout.policy_file import policy_file  # Takes numpy.

    found = policy_file(name_or_path).argument
    if digest and found == Path(name_or_path).resolve() and _digest(found) == digest:
        write_atomically(_mark(digest), "")
    return found


def _copy(data: bytes) -> Path:
    """Return the copy in the cache of a policy of the package, whose path may change with it."""
    digest = hashlib.sha256(data).hexdigest()
    path = cache_folder() / "policies" / f"{digest[:32]}.safetensors"
    if _digest(path) != digest:
        write_atomically(path, data)
    return path


def _mark(digest: str) -> Path:
    return cache_folder() / "policies" / f"checked-{__version__}" / digest


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, nothing if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return ""
