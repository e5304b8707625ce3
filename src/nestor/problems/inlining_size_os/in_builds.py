"""Inlining at -Os in a user's build: options and files are those of inlining for size."""

from dataclasses import replace
from typing import Final

from nestor.corpus.level import Level
from nestor.problem.in_builds import InLto
from nestor.problems.inlining_size import in_builds

NAME: Final = "inlining-size-os"

LEVELS: Final[tuple[Level, ...]] = ("-Os",)
"""Where policies act: in functions that are optimised for size, but not for the smallest one."""

IN_BUILDS: Final = replace(
    in_builds.IN_BUILDS, problem=NAME, levels=LEVELS, usual="shipped-os",
    in_lto=InLto(unmade={"shipped-os": "what it does inside was not measured"}),
)  # fmt: skip
