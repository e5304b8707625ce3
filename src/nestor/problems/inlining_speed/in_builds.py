"""Inlining for speed in a user's build: options and files are those of inlining for size."""

from dataclasses import replace
from typing import Final

from nestor.corpus.level import Level
from nestor.problems.inlining_size import in_builds

NAME: Final = "inlining-speed"

LEVELS: Final[tuple[Level, ...]] = ("-O2", "-O3")
"""Where policies act: in functions that are not optimised for size."""

IN_BUILDS: Final = replace(
    in_builds.IN_BUILDS, problem=NAME, levels=LEVELS, summary=None, usual="shipped-speed",
    for_lto={},
    only_in_lto={},
    not_for_lto={"shipped-speed": "inside it code grows, and some programs slow down"},
)  # fmt: skip
