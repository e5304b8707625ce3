"""Inlining for speed in a user's build: options and files are those of inlining for size."""

from dataclasses import replace
from typing import Final

from nestor.problems.inlining_size import in_builds

IN_BUILDS: Final = replace(
    in_builds.IN_BUILDS, problem="inlining-speed", levels=("-O2", "-O3"), summary=None
)
