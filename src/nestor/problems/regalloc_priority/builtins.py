"""Policies that need no file of the user's: packaged ones, and those of one feature."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nestor.policy import bundle, network
from nestor.policy.network import Layer, LogNormalisation
from nestor.policy.rule import VALUE
from nestor.policy.spec import Policy

NAME: Final = "regalloc-priority"

DATA: Final = Path(__file__).parent / "data"

PACKAGED: Final = tuple(
    name for name in ("shipped-priority",) if (DATA / f"{name}.safetensors").is_file()
)
"""``shipped-priority`` is the one to use."""

_RULES: Final[Mapping[str, tuple[str, float]]] = {
    "heaviest": ("weight", 1.0),
    "smallest": ("li_size", -1.0),
}
"""The feature that decides, and whether its largest (1) or smallest (-1) values come first."""


@dataclass(frozen=True)
class PriorityBuiltins:
    """See :class:`nestor.policy.names.Builtins`.

    Within the classes of the stock heuristic, ``heaviest`` allocates live ranges of great spill
    weight earlier, and ``smallest`` short ones.
    """

    names: tuple[str, ...] = (*PACKAGED, *_RULES)

    def resolve(self, name: str) -> Policy | None:
        """Return the policy of this name, None if it is not a built-in."""
        if name in PACKAGED:
            return bundle.load(DATA / f"{name}.safetensors")
        if name not in _RULES:
            return None
        feature, factor = _RULES[name]
        return network.build(
            (feature,),
            "decision",
            LogNormalisation(np.zeros(1), np.ones(1)),
            (Layer(np.full((1, 1), factor, dtype=np.float32), np.zeros(1, dtype=np.float32)),),
            {"builtin": name},
            problem=NAME,
            rule=VALUE.name,
        )


BUILTINS: Final = PriorityBuiltins()
