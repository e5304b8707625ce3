"""What a step and its order read of :class:`nestor.tune.search.SearchSettings`."""

from typing import Protocol


class OrderSettings(Protocol):
    """What an order reads of :class:`nestor.tune.search.SearchSettings`."""

    @property
    def chance(self) -> float:
        """What chance adds to a move's rank, at most."""

    @property
    def unit(self) -> float:
        """What of the score counts as a byte does where sizes are searched."""

    @property
    def covered(self) -> float:
        """The part of what the moves of a build may be expected to save that is tried."""


class StepSettings(OrderSettings, Protocol):
    """What a step reads of :class:`nestor.tune.search.SearchSettings`."""

    @property
    def scale(self) -> float:
        """Predicted gain, in units of the score, that counts like one earlier try."""

    @property
    def hold(self) -> bool:
        """Hold all other questions to their answers."""

    @property
    def exact(self) -> int:
        """Questions of which every combination of answers is tried, at most."""

    @property
    def pairs(self) -> bool:
        """Try pairs of moves."""

    @property
    def learned(self) -> bool:
        """Order moves by what earlier searches say that they save, where the problem knows."""
