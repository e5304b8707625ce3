"""Inlining for size, as most tests of builds, searches and evaluations use it."""

from typing import Final

from nestor.build.build import Job
from nestor.build.link import LinkBuild
from nestor.build.lto import LtoBuild
from nestor.build.lto_link import LtoLink, prelink
from nestor.compiler.invocation import LtoKind
from nestor.policy.names import NamedPolicy, named_policy
from nestor.problems.inlining_size.problem import PROBLEM as PROBLEM
from nestor.rollout.local_pool import LocalPool

LINK: Final = LinkBuild()
KINDS: Final[tuple[LtoKind, ...]] = ("full", "thin")


def policy_named(name: str) -> NamedPolicy:
    """Return a built-in policy, or that of a file."""
    return named_policy(name, PROBLEM.builtins)


def lto(kind: LtoKind) -> LtoBuild:
    """Return the build by LTO of a kind."""
    build = PROBLEM.builds()[f"{kind}-lto"]
    assert isinstance(build, LtoBuild)
    return build


def lto_link(pool: LocalPool, job: Job, kind: LtoKind) -> LtoLink:
    """Return one link by LTO."""
    return lto(kind).link(pool, job, prelink(pool, [job.program], kind))
