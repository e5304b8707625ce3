"""Inlining for speed in a user's build: options and files are those of inlining for size."""

from dataclasses import replace
from typing import Final

from nestor.corpus.level import Level
from nestor.problem.in_builds import InLto
from nestor.problems.inlining_size import in_builds

NAME: Final = "inlining-speed"

LEVELS: Final[tuple[Level, ...]] = ("-O2", "-O3")
"""Where policies act: in functions that are not optimised for size."""

IN_BUILDS: Final = replace(
    in_builds.IN_BUILDS, problem=NAME, levels=LEVELS, summary=None, usual="shipped-speed",
    in_lto=InLto(unmade={"shipped-speed": "inside it code grows, and some programs slow down"}),
)  # fmt: skip
