"""A policy and a plugin that are ready to use, found without reading either.

Reading a policy and running the identity gate take numpy, whose import takes longer than all else
that ``nestor flags`` and ``nestor clang`` do. So both are done the first time only: a policy file
in the cache was checked when it was written, under its own hash, and a plugin's gate leaves a
record beside the plugin. (The plugin checks every policy file that it loads, too.) Overrides and
summaries are kept and checked likewise.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.toolchain import find
from nestor.errors import NestorError
from nestor.files import ReadError, read_regular, write_atomically
from nestor.progress import Progress, silent
from nestor.rollout.records import has_passed, policy_copy, text_copy


@dataclass(frozen=True)
class TextKind:
    """A kind of text files that users name and the plugin reads."""

    folder: str
    """Where the cache keeps copies."""
    holds: str
    """What such a file holds, for messages: "a summary"."""
    makers: str
    """The commands that make such files, for messages."""
    check: Callable[[str], object]
    """Raises a NestorError if a text is not of this kind."""


def stored_policy(name_or_path: str, problem: str) -> Path | str:
    """Return what the plugin's option takes: the policy's copy in the cache, or ``default``.

    :param problem: whose built-in policies may be named.
    :raises PolicyError: if there is no such policy or the file is not one.
    """
    if name_or_path == "default":
        return name_or_path
    digest = _digest(named_file(name_or_path, problem))
    copy = policy_copy(digest)
    if digest and _digest(copy) == digest:
        return copy
    from nestor.problem.registry import find_problem
    from nestor.rollout.cache import policy_path

    return policy_path(find_problem(problem).policy(name_or_path))


def stored_text(path: Path, kind: TextKind) -> Path:
    """Return the copy in the cache of a text file that the user names; its name is its digest.

    :raises NestorError: if the file cannot be read or is not of this kind; it names the file.
    """
    content = read_regular(path, kind.holds, remedy=f"{kind.makers} makes such a file")
    digest = hashlib.sha256(content).hexdigest()
    copy = text_copy(kind.folder, digest)
    if _digest(copy) != digest:
        try:
            kind.check(content.decode(errors="replace"))
        except NestorError as error:
            raise type(error)(f"{path}: {error} Make it anew: {kind.makers}.") from None
        write_atomically(copy, content)
    return copy


def passed_plugin(llvm: str | None, problem: str, progress: Progress = silent) -> Plugin:
    """Return the plugin of the toolchain to use, built and through the problem's identity gate.

    :param progress: hears of the plugin's build.
    :raises ToolchainError: if there is no usable LLVM, or it does not pass.
    """
    plugin = ensure_plugin(find(llvm), progress)
    if has_passed(plugin, problem):
        return plugin
    from nestor.problem.registry import find_problem
    from nestor.rollout.gate import require

    return require(find_problem(problem), plugin)


def named_file(name_or_path: str, problem: str) -> Path:
    """Return the file that a policy's name stands for: one of the package, or the user's own.

    It need not exist; for a policy that is no file it does not.
    """
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
        return hashlib.sha256(read_regular(path, "a policy")).hexdigest()
    except ReadError:
        return ""
