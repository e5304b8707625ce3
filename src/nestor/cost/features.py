"""The names of what the learned residual sees, in the order of the native side.

The values are computed in ``native/cost/Features.cpp`` and ``native/cost/Memory.cpp``.
"""

from typing import Final

from nestor.cost.instruction_categories import CATEGORIES

_SIMULATION: Final = (
    "simulated", "chain", "front end", "ports", "over chain", "over front end", "over ports",
    "instructions", "bytes", "bytes each", "longest", "long ones", "forwarded", "renamed",
    "partly forwarded", "split lines", "split pages", "lines", "pages", "loads", "stores", "slots",
    "ALU", "busiest ALU", "load ports", "store ports", "FP", "busiest FP", "FP store", "divider",
    "high bytes", "rip-relative", "indexed", "wide accesses", "narrow", "segments", "idioms",
    "memory operands", "large immediates", "close links", "carried", "carried others",
    "measured instructions", "last category",
)  # fmt: skip

_LISTS: Final = ("form", "pair", "link")
MEMORY_FEATURES: Final = (
    *(f"{name} {what}" for name in _LISTS for what in ("mean", "least", "most", "known", "new")),
    "skeleton mean", "skeleton known", "sequence mean", "sequence known",
)  # fmt: skip
"""What training remembers of code like the block's: see ``Memory.h``."""

PLAIN: Final = len(_SIMULATION) + len(CATEGORIES)
"""Features that do not depend on labels."""

FEATURES: Final = (
    *_SIMULATION,
    *(f"count of {name}" for name in CATEGORIES),
    *MEMORY_FEATURES,
    "machine",
)
