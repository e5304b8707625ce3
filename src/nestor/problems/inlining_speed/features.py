"""Which features policies for speed read, unless a user names others."""

from dataclasses import replace
from typing import Final

from nestor.problems.inlining_size.features import sets
from nestor.problems.inlining_size.features.site import FREQUENCIES

_RUNS: Final = tuple(name for name in FREQUENCIES if name != "call_hotness")
_UNIT: Final = (*sets.FEATURES.unit, *_RUNS)

FEATURES: Final = replace(
    sets.FEATURES,
    few=(*sets.FEATURES.few, "call_frequency", "call_executions", "call_profile_share"),
    unit=_UNIT,
    program=_UNIT,
    mode="",
    modes=(),
)
"""Those of inlining for size, without a summary of the program, and how often code runs."""
