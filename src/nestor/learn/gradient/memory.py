"""The questions that Q-learning remembers: the newest ones, with their actions and rewards."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nestor.learn.batch import rows_of
from nestor.policy.questions import first_rows

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Memory:
    """Questions from the oldest to the newest, each with its rows."""

    z: F32
    """Normalised features, ``[rows, inputs]``."""
    question: I64
    """The question of each row, ``[rows]``."""
    action: I64
    """``[questions]``"""
    reward: F32
    """``[questions]``"""
    last: Bools
    """Whether a question ended its episode, ``[questions]``; else the next one followed it."""

    @staticmethod
    def empty(inputs: int) -> "Memory":
        """Return a memory of no questions with so many inputs."""
        numbers, reward = np.empty(0, np.int64), np.empty(0, np.float32)
        z, last = np.empty((0, inputs), np.float32), np.empty(0, np.bool_)
        return Memory(z, numbers, numbers, reward, last)

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self.action)

    def select(self, chosen: I64) -> "Memory":
        """Return the chosen questions in their order."""
        rows, question = rows_of(self.question, chosen)
        return Memory(
            self.z[rows], question, self.action[chosen], self.reward[chosen], self.last[chosen]
        )

    def with_newer(self, other: "Memory", capacity: int) -> "Memory":
        """Return the newest ``capacity`` questions of both; ``other`` has the newer ones."""
        whole = Memory(
            np.concatenate([self.z, other.z]),
            np.concatenate([self.question, len(self) + other.question]),
            np.concatenate([self.action, other.action]),
            np.concatenate([self.reward, other.reward]),
            np.concatenate([self.last, other.last]),
        )
        forgotten = len(whole) - capacity
        if forgotten <= 0:
            return whole
        start = first_rows(whole.question)[forgotten]
        return Memory(
            whole.z[start:],
            whole.question[start:] - forgotten,
            whole.action[forgotten:],
            whole.reward[forgotten:],
            whole.last[forgotten:],
        )
