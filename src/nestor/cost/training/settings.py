"""How our own model is trained."""

from dataclasses import dataclass, field
from typing import Final

from nestor.cost.core.parameters import MachineSettings


@dataclass(frozen=True)
class TrainingSettings:
    """How our own model is trained."""

    passes: int = 2
    """Rounds of coordinate descent over the parameters of the core; 0 leaves it unfitted."""
    machine: bool = True
    """Whether the settings of the machine are fitted too (``core/machine_fitting.py``)."""
    trees: int = 800
    """Trees of the residual."""
    leaves: int = 127
    """Leaves of one tree."""
    learning_rate: float = 0.03
    smallest_leaf: int = 12
    """Rows in a leaf at least."""
    in_per_cent: bool = False
    """Whether errors count by their share of the label, so that twice is worse than half; where
    much is uncertain, as with few labels, this keeps answers low."""
    threads: int = 2
    core: bool = True
    """Whether the trees see the simulation (an ablation)."""
    memory: bool = True
    """Whether the trees see what training remembers of like code (an ablation)."""
    share_new: float = 0.4
    """Share of rows that stand for sequences never seen."""
    simulation: MachineSettings = field(default_factory=MachineSettings)


ADAPTING: Final = TrainingSettings(
    trees=600, leaves=31, learning_rate=0.03, smallest_leaf=5, in_per_cent=True
)
"""For a few thousand labels of a machine, with another's model to start from."""
