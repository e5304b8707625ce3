"""The names of what the trees see of a block, in the order of the native side.

The values are computed in ``native/cost/Features.cpp`` and ``native/cost/ResidualMemory.cpp``; that
both languages name them in the same order is checked when the library is loaded.
"""

from typing import Any, Final

import numpy as np

from nestor.cost.isa.instruction_categories import CATEGORIES

SIMULATION: Final = (
    "simulated", "chain", "front end", "ports", "over chain", "over front end", "over ports",
    "instructions", "bytes", "bytes each", "longest", "long ones", "forwarded", "renamed",
    "partly forwarded", "split lines", "split pages", "lines", "pages", "loads", "stores", "slots",
    "ALU", "busiest ALU", "load ports", "store ports", "FP", "busiest FP", "FP store", "divider",
    "high bytes", "rip-relative", "indexed", "wide accesses", "narrow", "segments", "idioms",
    "memory operands", "large immediates", "close links", "carried", "carried others",
    "measured instructions", "last category",
)  # fmt: skip
"""What the simulation and the code itself say; cycles are in logs."""

OF_THE_CORE: Final = frozenset(
    (
        "simulated", "chain", "front end", "ports", "over chain", "over front end", "over ports",
        "forwarded", "renamed", "partly forwarded", "split lines", "split pages", "lines", "pages",
        "slots", "ALU", "busiest ALU", "load ports", "store ports", "FP", "busiest FP", "FP store",
        "divider",
    )
)  # fmt: skip
"""Those that depend on the parameters of the simulated core."""

LIST_MEMORY: Final = np.dtype(
    [(name, np.float32) for name in ("mean", "least", "most", "seen", "unseen")]
)
"""What is remembered of a list of keys: shrunk mean residuals, how often the rarest key was seen
(log of 1 + count), and how many were never seen."""
KEY_MEMORY: Final = np.dtype([(name, np.float32) for name in ("mean", "seen")])
"""What is remembered of one key: its mean residual, and how often it was seen."""
BLOCK_MEMORY: Final = np.dtype(
    [
        *((name, LIST_MEMORY) for name in ("form", "pair", "link")),
        *((name, KEY_MEMORY) for name in ("skeleton", "sequence")),
    ]
)
"""What training remembers of code like the block's: ``struct BlockMemory``."""

_SHOWN: Final = {"seen": "known", "unseen": "new"}
"""Names in model files where they differ from the field's."""
MEMORY_FEATURES: Final = tuple(
    f"{of} {_SHOWN.get(what, what)}"
    for of in BLOCK_MEMORY.names or ()
    for what in BLOCK_MEMORY[of].names or ()
)

FEATURES: Final = (
    *SIMULATION,
    *(f"count of {name}" for name in CATEGORIES),
    *MEMORY_FEATURES,
    "machine",
)
"""The columns of a row of features."""

SIMULATED: Final = FEATURES.index("simulated")
CHAIN: Final = FEATURES.index("chain")
SEQUENCE_KNOWN: Final = FEATURES.index("sequence known")
"""Above 0 where training has the block's sequence, be it with other registers."""
PLAIN: Final = slice(0, FEATURES.index(MEMORY_FEATURES[0]))
"""The columns that do not depend on labels."""
MEMORY: Final = slice(PLAIN.stop, PLAIN.stop + len(MEMORY_FEATURES))
"""The columns of :data:`MEMORY_FEATURES`."""


def records() -> dict[str, np.dtype[Any]]:
    """Return the records of what is remembered, by their names in C++."""
    return {"ListMemory": LIST_MEMORY, "KeyMemory": KEY_MEMORY, "BlockMemory": BLOCK_MEMORY}
