"""What a policy must be to become a model of LLVM itself, which computes its own features only."""

import re
from pathlib import Path
from typing import Final

from nestor.compiler.process import run_tool
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.policy.names import NamedPolicy
from nestor.policy.network import MlpPolicy
from nestor.policy.trees import TreesPolicy
from nestor.temporary import temporary_folder

PROBLEM: Final = "inlining-size"
"""The problem whose models LLVM can be built with."""

DECISION: Final = "inlining_decision"
"""LLVM's name of the answer; its type is int64 [1]."""

_HEADER: Final = "llvm/Analysis/InlineModelFeatureMaps.h"
_LISTS: Final = ("INLINE_COST_FEATURE_ITERATOR", "INLINE_FEATURE_ITERATOR")
_MARK: Final = "nestor_feature"

InTreePolicy = MlpPolicy | TreesPolicy
"""The kinds of policies that can answer for LLVM's own advisor."""


class ReleaseError(NestorError):
    """A policy cannot be released in this form; the text says why and what to do."""


def features_of_llvm(toolchain: Toolchain) -> tuple[str, ...]:
    """Return the features that LLVM's own inline advisor computes, in its order.

    They are read from the headers of ``toolchain`` by its preprocessor.

    :raises ReleaseError: if the headers are not there or say nothing of features.
    """
    lists = "\n".join(f"{name}({_MARK.upper()})" for name in _LISTS)
    mark = f"#define {_MARK.upper()}(TYPE, SHAPE, NAME, DOC) {_MARK} TYPE NAME;"
    with temporary_folder("features") as folder:
        source = Path(folder) / "features.cpp"
        source.write_text(f'#include "{_HEADER}"\n{mark}\n{lists}\n')
        include = ["-I", str(toolchain.prefix / "include")]
        done = run_tool([str(toolchain.clangxx), "-E", "-P", *include, str(source)])
    found = re.findall(rf"{_MARK} int64_t (\w+);", done.stdout)
    if done.returncode != 0 or not found:
        raise ReleaseError(
            f"{_HEADER} of LLVM {toolchain.version} in {toolchain.prefix} cannot be read: install"
            f" its development files (Debian: llvm-{toolchain.major}-dev)."
        )
    return tuple(found)


def in_tree_policy(named: NamedPolicy, form: str, toolchain: Toolchain) -> InTreePolicy:
    """Return the policy if LLVM's own advisor can ask it.

    An input that LLVM does not have would stay 0 without a word, so it is refused here.

    :param form: the form that is wanted, for messages.
    :raises ReleaseError: if it cannot; the text names what stands in the way.
    """
    policy = named.policy
    if policy is None:
        raise ReleaseError(
            "'default' is the compiler's own heuristic: an LLVM without a model already decides so."
        )
    instead = "use --as plugin"
    if policy.metadata.problem != PROBLEM:
        raise ReleaseError(
            f"--as {form} is for policies about {PROBLEM}, and {named.name} is one about"
            f" {policy.metadata.problem}: {instead}."
        )
    if policy.metadata.answers != "decision":
        raise ReleaseError(
            f"{named.name} answers with deviations from the default heuristic, whose answer a model"
            f" of LLVM is not told: {instead}, or a policy whose answers are decisions."
        )
    offered = features_of_llvm(toolchain)
    missing = [name for name in policy.features if name not in offered]
    if missing:
        raise ReleaseError(
            f"{named.name} reads features that LLVM {toolchain.version} itself does not compute"
            f" ({', '.join(missing)}): {instead}, or train a policy without them."
        )
    assert isinstance(policy, MlpPolicy | TreesPolicy)
    return policy
