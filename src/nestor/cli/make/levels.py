"""Which policy decides at which optimisation level in ``nestor make``, and where none does."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from nestor.cli.make.records import Record
from nestor.cli.make.words import USUAL_INSIDE_LTO, USUAL_POLICIES
from nestor.cli.setup import DEFAULT_PROBLEM
from nestor.problem.in_builds import (
    InBuilds,
    like_at,
    made_for,
    made_without_lto,
    problems_in_builds,
)
from nestor.rollout.ready import stored_policy

_IN_CMAKE: Final = {
    "-Oz": '-DCMAKE_CXX_FLAGS_MINSIZEREL="-Oz -DNDEBUG"',
    "-Os": "-DCMAKE_BUILD_TYPE=MinSizeRel",
    "-O2": '-DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG"',
    "-O3": "-DCMAKE_BUILD_TYPE=Release",
}
"""How CMake is told to compile at a level."""

_MOST_NAMES: Final = 3


def problems_of(policies: Sequence[str]) -> Mapping[str, InBuilds]:
    """Return which problem each policy is for, by its name or file.

    :raises NestorError: if there is no such policy.
    """
    problems = problems_in_builds(DEFAULT_PROBLEM)
    return {word: problems[stored_policy(word, list(problems)).problem] for word in policies}


def reading_by_level(policies: Mapping[str, InBuilds]) -> Mapping[str, str]:
    """Return, by level, the policy that has features which a summary gives.

    :param policies: as :func:`problems_of` returns them.
    """
    reading = [word for word in policies if _reads_summary(word)]
    return {level: word for word in reading for level in policies[word].levels}


def inside_lto(policies: Sequence[str], reading: Collection[str]) -> tuple[str, ...]:
    """Return the policies that decide in links by LTO.

    Those that read a summary or were made without LTO do not, and neither do portfolios, which thin
    LTO cannot try.

    :param reading: those that read a summary.
    """
    if tuple(policies) == USUAL_POLICIES:
        return USUAL_INSIDE_LTO
    problems = list(problems_in_builds(DEFAULT_PROBLEM))
    without = {*reading, *made_without_lto()}
    able = (name for name in made_for(policies, lto=True) if name not in without)
    return tuple(name for name in able if not stored_policy(name, problems).is_portfolio)


def decides_nothing(objects: Sequence[Record], policies: Mapping[str, InBuilds]) -> bool:
    """Tell whether none of ``objects`` is compiled at a level at which a policy decides."""
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

    :param policies: those that decide there, as :func:`inside_lto` returns them.
    :param has_linker: whether LLVM's lld is installed.
    """
    problems = problems_of(policies)
    acting = [n for n, own in problems.items() if any(_may_decide(r, own) for r in linked)]
    if not has_linker:
        end = "as stock does: LLVM's lld, in which policies decide, is not installed"
    elif not acting:
        end = "as stock does: no policy decides there at this level, or another linker is named"
    else:
        decide = "decides" if len(acting) == 1 else "decide"
        end = f"under {' and '.join(acting)}, which {decide} there without a summary"
    return f"{_names(linked)} linked by LTO {end}"


def _may_decide(link: Record, own: InBuilds) -> bool:
    """Tell whether the policies of ``own`` are given to a link; of its objects nothing is known."""
    names_level = any(word.startswith("-O") for word in link.arguments)
    linkers = [word for word in link.arguments if word.startswith("-fuse-ld=")]
    is_lld = not linkers or linkers[-1] == "-fuse-ld=lld"
    return is_lld and (not own.levels or not names_level or link.level in own.levels)


def _names(linked: Sequence[Record]) -> str:
    count = len(linked)
    names = ", ".join(record.outputs[0].name for record in linked[:_MOST_NAMES])
    more = f" and {count - _MOST_NAMES} more" if count > _MOST_NAMES else ""
    return f"{names}{more} {'was' if count == 1 else 'were'}"


def _reads_summary(word: str) -> bool:
    place = stored_policy(word, list(problems_in_builds(DEFAULT_PROBLEM))).place
    if isinstance(place, str):
        return False
    # The header of a copy in the cache, which was checked when it was written; reading the policy
    # itself takes NumPy.
    content = place.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    features = json.loads(header["__metadata__"]["nestor"])["features"]
    return any(str(name).startswith("program_") for name in features)
