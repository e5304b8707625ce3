"""A policy and a plugin that are ready to use, found without reading either.

Reading a policy and running the identity gate take numpy, whose import takes longer than all else
that ``nestor flags`` and ``nestor clang`` do. So both are done the first time only: a policy file
in the cache was checked when it was written, under its own hash, and a plugin's gate leaves a
record beside the plugin. (The plugin checks every policy file that it loads, too.) Overrides and
summaries are kept and checked likewise.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.toolchain import find
from nestor.errors import NestorError
from nestor.files import ReadError, read_regular, write_atomically
from nestor.problem.in_builds import TextKind
from nestor.progress import Progress, silent
from nestor.rollout.records import has_passed, policy_copy, text_copy


@dataclass(frozen=True)
class StoredPolicy:
    """A policy as the plugin's option takes it."""

    problem: str
    """The problem that it is for."""
    place: Path | str
    """Its copy in the cache, or ``default``."""
    is_portfolio: bool = False
    """Whether the compiler compiles functions on trial under its members."""
    features: tuple[str, ...] = ()
    """What it reads; nothing is said of ``default``."""


def stored_policy(name_or_path: str, problems: Sequence[str]) -> StoredPolicy:
    """Return the policy that a user means.

    :param problems: whose built-in policies may be named; of two that have one of this name the
        first is meant.
    :raises PolicyError: if there is no such policy or the file is not one.
    """
    if name_or_path == "default":
        return StoredPolicy(problems[0], name_or_path)
    digest = _digest(named_file(name_or_path, problems))
    copy = policy_copy(digest)
    if digest and _digest(copy) == digest:
        return _described(copy)
    from nestor.problem.registry import find_policy
    from nestor.rollout.cache import policy_path

    _, policy = find_policy(name_or_path, problems)
    return _described(policy_path(policy))


def stored_text(path: Path, kind: TextKind) -> Path:
    """Return the copy in the cache of a text file that the user names; its name is its digest.

    :raises NestorError: if the file cannot be read or is not of this kind; it names the file.
    """
    makers = " or ".join(kind.makers)
    content = read_regular(path, kind.holds, remedy=f"{makers} makes such a file")
    digest = hashlib.sha256(content).hexdigest()
    copy = text_copy(kind.folder, digest)
    if _digest(copy) != digest:
        try:
            kind.check(content.decode(errors="replace"))
        except NestorError as error:
            raise type(error)(f"{path}: {error} Make it anew: {makers}.") from None
        write_atomically(copy, content)
    return copy


def passed_plugin(llvm: str | None, problems: Iterable[str], progress: Progress = silent) -> Plugin:
    """Return the plugin of the toolchain to use, built and through the problems' identity gates.

    :param progress: hears of the plugin's build.
    :raises ToolchainError: if there is no usable LLVM, or it does not pass.
    """
    plugin = ensure_plugin(find(llvm), progress)
    for problem in problems:
        if not has_passed(plugin, problem):
            from nestor.problem.registry import find_problem
            from nestor.rollout.gate import require

            require(find_problem(problem), plugin)
    return plugin


def named_file(name_or_path: str, problems: Sequence[str]) -> Path:
    """Return the file that a policy's name stands for: one of the package, or the user's own.

    It need not exist; for a policy that is no file it does not.
    """
    home = Path(str(resources.files("nestor"))) / "problems"
    if name_or_path.replace("-", "").isalnum():
        for problem in problems:
            folder = home / problem.replace("-", "_") / "data"
            packaged = folder / f"{name_or_path}.safetensors"
            if packaged.is_file():
                return packaged
    # A name without a slash or this suffix may be a built-in's, which wins over a file.
    is_path = "/" in name_or_path or name_or_path.endswith(".safetensors")
    return Path(name_or_path) if is_path else Path()


def _described(copy: Path) -> StoredPolicy:
    """Return what a policy file says of itself, which was checked when it was copied."""
    content = copy.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    fields = json.loads(header["__metadata__"]["nestor"])
    features = tuple(map(str, fields["features"]))
    return StoredPolicy(str(fields["problem"]), copy, fields["kind"] == "portfolio", features)


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, nothing if it cannot be read."""
    try:
        return hashlib.sha256(read_regular(path, "a policy")).hexdigest()
    except ReadError:
        return ""
