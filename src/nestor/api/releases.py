"""Release policies in forms that other builds take."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nestor.api.workplace import USUAL_PROBLEM
from nestor.compiler.plugin import ensure_plugin
from nestor.compiler.toolchain import find
from nestor.files import refuse_folder
from nestor.policy.names import NamedPolicy
from nestor.problem.registry import find_policy, find_problem, problem_names
from nestor.progress import Progress, silent
from nestor.release.in_tree import ReleaseError
from nestor.rollout.gate import require

if TYPE_CHECKING:
    from nestor.release.forms import Form, Released, ReleaseSettings


def release_policy(
    policies: Sequence[NamedPolicy | str] | NamedPolicy | str,
    form: "Form",
    out: str | os.PathLike[str],
    *,
    settings: "ReleaseSettings | None" = None,
    llvm: str | None = None,
    progress: Progress = silent,
) -> "Released":
    """Write a policy in the folder ``out`` in a form that another build takes.

    :param policies: a policy, by its name or path or as such; a plugin takes several, for different
        problems.
    :param form: ``plugin`` (built for ``llvm``, with flags, a CMake and a Debian package),
        ``llvm-header`` (for an LLVM that is built from source), ``mlir`` or ``tflite``.
    :param settings: what the plugin and its packages are called.
    :param llvm: a prefix such as ``/usr/lib/llvm-22``, or a clang; None looks for one.
    :raises ReleaseError: if a policy cannot take the form; the text says what stands in the way.
    :raises NestorError: if the folder cannot be written.
    """
    from nestor.release.forms import release_in_tree, release_plugin

    refuse_folder(Path(out))
    several = [policies] if isinstance(policies, NamedPolicy | str) else list(policies)
    named = [_named(policy) for policy in several]
    toolchain = find(llvm)
    if form != "plugin":
        if len(named) != 1:
            raise ReleaseError(f"--as {form} takes one policy, not {len(named)}.")
        return release_in_tree(named[0], form, Path(out), toolchain)
    plugin = ensure_plugin(toolchain, progress)
    for policy in named:
        if policy.policy is not None and policy.policy.metadata.problem in problem_names():
            require(find_problem(policy.policy.metadata.problem), plugin)
    return release_plugin(named, Path(out), plugin, settings, progress)


def _named(policy: NamedPolicy | str) -> NamedPolicy:
    """Return a policy that is passed as such, or by its name or path."""
    if isinstance(policy, NamedPolicy):
        return policy
    return find_policy(policy, sorted(problem_names(), key=USUAL_PROBLEM.__ne__))[1]
