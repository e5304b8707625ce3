"""Inlining for size at -Os: which call sites of a module to inline, judged by linked bytes."""

from dataclasses import replace
from typing import Final

from nestor.problems.inlining_size.problem import PROBLEM as AT_OZ
from nestor.problems.inlining_size.search.moves import SiteMoves
from nestor.problems.inlining_size_os.builtins import BUILTINS
from nestor.problems.inlining_size_os.in_builds import LEVELS, NAME

_THRESHOLDS: Final = ("threshold:5", "threshold:25", "threshold:100")
"""On both sides of the default's, which is 50; 5 is that of -Oz."""

PROBLEM: Final = replace(
    AT_OZ,
    name=NAME,
    summary="which call sites to inline at -Os, for the size of linked programs",
    levels=LEVELS,
    builtins=BUILTINS,
    imitated=_THRESHOLDS,
    search=SiteMoves(threshold=50, starts=_THRESHOLDS, policies=("shipped-os",)),
)
