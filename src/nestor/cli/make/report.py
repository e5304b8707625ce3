"""What ``nestor make`` has done, and what it says of a build."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nestor.cli.make.place import UNDER_POLICY_BY_LTO
from nestor.cli.make.records import Record
from nestor.cli.use.choice import DEFAULT_POLICY
from nestor.problem.in_builds import InBuilds, like_at, problems_in_builds

_IN_CMAKE: Final = {
    "-Oz": '-DCMAKE_CXX_FLAGS_MINSIZEREL="-Oz -DNDEBUG"',
    "-Os": "-DCMAKE_BUILD_TYPE=MinSizeRel",
    "-O2": '-DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG"',
    "-O3": "-DCMAKE_BUILD_TYPE=Release",
}
"""How CMake is told to compile at a level."""

_MOST_NAMES: Final = 3


@dataclass
class Report:
    """What was done."""

    objects: int = 0
    """Objects of the build that the compilers have recorded."""
    compiled_again: int = 0
    """Those that were compiled again under the policy."""
    from_source: int = 0
    """Of these, those whose bitcode would not do."""
    left: int = 0
    """Objects that were not worth a compile: see ``selection.py``."""
    saving: float = 0.0
    """Bytes that the policy expects the changed decisions to save."""
    saving_left: float = 0.0
    """Of these, those of the objects that were left."""
    functions: int = 0
    """In the summary."""
    failed: list[str] = field(default_factory=list)
    """What the compiler says of each object that stayed as it was."""
    warnings: list[str] = field(default_factory=list)


def decides_nothing(objects: Sequence[Record], policies: Mapping[str, InBuilds]) -> bool:
    """Tell whether none of ``objects`` is compiled at a level at which a policy decides.

    The default heuristic decides at each.
    """
    if DEFAULT_POLICY in policies:
        return False
    problems = policies.values()
    levels = {level for own in problems for level in own.levels}
    return all(own.levels for own in problems) and not any(r.level in levels for r in objects)


def wrong_level(objects: Sequence[Record], policies: Mapping[str, InBuilds]) -> str:
    """Return the warning of objects of which :func:`decides_nothing` is true."""
    found = sorted({record.level for record in objects})
    levels = list(dict.fromkeys(level for own in policies.values() for level in own.levels))
    wanted = f"{', '.join(levels[:-1])} or {levels[-1]}" if len(levels) > 1 else levels[0]
    own = next(iter(policies.values()))
    like = like_at(found[0], own, problems_in_builds(own.problem))
    remedy = f"Leave --policy out, and {like.usual} decides there; or put" if like else "Put"
    decide = "decides" if len(policies) == 1 else "decide"
    return (
        f"the build is compiled at {' and '.join(found)}, and {', '.join(policies)} {decide} at"
        f" {wanted} alone: nothing changes. {remedy} {levels[0]} into CFLAGS and CXXFLAGS and"
        f" clean the build (with CMake: {_IN_CMAKE[levels[0]]})."
    )


def without_summary(objects: Sequence[Record], policies: Mapping[str, InBuilds]) -> str:
    """Return what is said of a build of which no object is at a level where a summary is read."""
    if DEFAULT_POLICY in policies:
        return "the policy is default, stock's own heuristic: the build is done"
    found = sorted({record.level for record in objects})
    acting = [w for w, own in policies.items() if not own.levels or set(found) & set(own.levels)]
    decide = "decides and reads" if len(acting) == 1 else "decide and read"
    return f"at {' and '.join(found)} {', '.join(acting)} {decide} no summary: the build is done"


def linked_at_once(linked: Sequence[Record], reading: Mapping[str, str]) -> str:
    """Return the warning of programs that one command compiled and linked.

    :param reading: the policy that reads a summary, by level.
    """
    policies = " and ".join(dict.fromkeys(reading[record.level] for record in linked))
    return (
        f"{_names(linked)} compiled and linked by one command, so there is no object to summarise:"
        f" C is as stock compiles it, C++ as {policies} does without a summary. Compile with -c and"
        " link the objects, and they are under the policy with the summary."
    )


def linked_by_lto(linked: Sequence[Record], policies: Sequence[str], *, has_linker: bool) -> str:
    """Return what is said of programs that LTO linked.

    :param policies: those that decide in such links.
    :param has_linker: whether LLVM's lld is installed.
    """
    if not has_linker:
        end = "as stock does: LLVM's lld, in which policies decide, is not installed"
    elif all(record.mode != UNDER_POLICY_BY_LTO for record in linked):
        end = "as stock does: no policy decides there at this level, or another linker is named"
    else:
        decide = "decides" if len(policies) == 1 else "decide"
        end = f"under {' and '.join(policies)}, which {decide} there without a summary"
    return f"{_names(linked)} linked by LTO {end}"


def _names(linked: Sequence[Record]) -> str:
    count = len(linked)
    names = ", ".join(record.outputs[0].name for record in linked[:_MOST_NAMES])
    more = f" and {count - _MOST_NAMES} more" if count > _MOST_NAMES else ""
    return f"{names}{more} {'was' if count == 1 else 'were'}"
