"""Which policy decides at which optimisation level in ``nestor make``, and where none does."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from nestor.cli.make.records import Record
from nestor.cli.setup import DEFAULT_PROBLEM
from nestor.problem.in_builds import InBuilds, like_at, problems_in_builds
from nestor.rollout.ready import stored_policy

_IN_CMAKE: Final = {
    "-Oz": '-DCMAKE_CXX_FLAGS_MINSIZEREL="-Oz -DNDEBUG"',
    "-Os": "-DCMAKE_BUILD_TYPE=MinSizeRel",
    "-O2": '-DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG"',
    "-O3": "-DCMAKE_BUILD_TYPE=Release",
}
"""How CMake is told to compile at a level."""


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
