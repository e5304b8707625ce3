"""Policies that need no file of the user's: packaged ones, and those of one feature."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nestor.policy import bundle, network
from nestor.policy.network import Layer, LogNormalisation
from nestor.policy.rule import PICK
from nestor.policy.spec import Policy
from nestor.problems.regalloc_eviction.question import IS_OWN, POSITION, WEIGHT

NAME: Final = "regalloc-eviction"

DATA: Final = Path(__file__).parent / "data"

PACKAGED: Final = tuple(
    name for name in ("shipped-eviction",) if (DATA / f"{name}.safetensors").is_file()
)
"""``shipped-eviction`` is the one to use: a portfolio of which the compiler keeps the best."""

_RULES: Final[Mapping[str, tuple[str, float]]] = {
    "first": (POSITION, -1.0),
    "keep": (IS_OWN, 1.0),
    "lowest-density": (WEIGHT, -1.0),
}
"""The feature that decides, and whether the largest (1) or the smallest (-1) value is chosen."""


@dataclass(frozen=True)
class EvictionBuiltins:
    """See :class:`nestor.policy.names.Builtins`.

    ``first`` frees the first register that it may, ``keep`` evicts nothing where it need not, and
    ``lowest-density`` takes the candidate of the smallest spill weight, the one that asks included.
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
            rule=PICK.name,
            candidate_features=(feature,),
        )


BUILTINS: Final = EvictionBuiltins()
