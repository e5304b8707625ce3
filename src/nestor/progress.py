"""How long work tells how far it has come, without knowing who listens.

Only the command line prints, so every function that may take more than two seconds takes a
:data:`Progress` and calls it; ``nestor.cli`` draws the bars, tests and libraries pass ``silent``.
"""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)``: ``done`` of ``total`` steps of ``stage`` are finished."""


def silent(_stage: str, _done: int, _total: int) -> None:
    """Report nothing."""
