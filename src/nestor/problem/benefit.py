"""What answers to the questions of one unit would save and cost, as counts of a run say."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nestor.problem.trajectory import F64, Trajectory


@dataclass(frozen=True)
class Benefits:
    """By question: of those whose code the profile counted."""

    rows: npt.NDArray[np.int64]
    """The questions, as rows of the trajectory's decisions."""
    gain: F64
    """What the answer 1 would save of a run, in operations for each block that the profile
    counted, ``[rows]``."""
    cost: F64
    """The bytes of code that it would add, by estimate, ``[rows]``; positive."""


class Profiles(Protocol):
    """What profiles say of a problem's answers."""

    def benefits(self, trajectory: Trajectory, counted: Trajectory) -> Benefits:
        """Return what answers would save of a run, and cost.

        :param trajectory: of a unit, without a profile or with one.
        :param counted: of the same unit with a profile.
        """
