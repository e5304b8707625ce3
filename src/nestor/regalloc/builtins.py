"""Policies that need no file of the user's: packaged ones, and those of one feature."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nestor.policy import bundle, network
from nestor.policy.network import Layer, LogNormalisation
from nestor.policy.rule import PICK, Rule
from nestor.policy.spec import Policy


@dataclass(frozen=True)
class AllocationBuiltins:
    """See :class:`nestor.policy.names.Builtins`."""

    problem: str
    rule: Rule
    data: Path
    """The folder of the packaged files."""
    shipped: str
    """The packaged policy; it need not be there."""
    features: Mapping[str, tuple[str, float]]
    """For each other policy the feature that decides, and whether its largest (1) or its smallest
    (-1) value comes first."""

    @property
    def packaged(self) -> tuple[str, ...]:
        """Policies in files."""
        return (self.shipped,) if self._file(self.shipped).is_file() else ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.packaged, *self.features)

    def resolve(self, name: str) -> Policy | None:
        """Return the policy of this name, None if it is not a built-in."""
        if name in self.packaged:
            return bundle.load(self._file(name))
        if name not in self.features:
            return None
        feature, factor = self.features[name]
        return network.build(
            (feature,),
            "decision",
            LogNormalisation(np.zeros(1), np.ones(1)),
            (Layer(np.full((1, 1), factor, dtype=np.float32), np.zeros(1, dtype=np.float32)),),
            {"builtin": name},
            problem=self.problem,
            rule=self.rule.name,
            candidate_features=(feature,) if self.rule == PICK else (),
        )

    def _file(self, name: str) -> Path:
        return self.data / f"{name}.safetensors"
