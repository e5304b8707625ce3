"""What the numbers of settings can be, wherever a user gives them: options, and Python's functions.

Nothing here has a meaning below 0, and nothing is infinite or no number. What a setting is called
says more: a limit of time or memory is above 0, and there are things of which one is the least.
"""

import math
from dataclasses import fields, is_dataclass
from typing import Any, Final

from nestor.errors import NestorError

_FROM_1: Final = frozenset(
    [
        "attempts", "batch_size", "candidates", "capacity", "epochs", "jobs", "memory",
        "milliseconds", "minibatch", "modules", "page_limit", "passes", "points", "population",
        "runs", "samples", "threads", "units",
    ]
)  # fmt: skip
_ABOVE_0: Final = frozenset(
    ["cpu_minutes", "gigabytes", "iterations", "learning_rate", "minutes", "seconds", "timeout"]
)
_MOST: Final = {
    "cpu_minutes": 1e7, "gigabytes": 1e6, "memory": 1 << 30, "minutes": 1e7, "seconds": 1e7,
    "smoothing": 1, "timeout": 1e7,
}  # fmt: skip
"""Above these the system cannot count, or there is no more."""


class NumberError(NestorError, ValueError):
    """A number that cannot be what it is; the text has its name and what it can be."""


def refuse_number(name: str, value: object) -> None:
    """Refuse a number that no setting, or no setting of this name, can be.

    :param name: as the user writes it: ``jobs``, ``--fit.learning-rate``.
    :param value: a number or several; anything else passes.
    :raises NumberError: with the name and what it can be.
    """
    if isinstance(value, tuple):
        for one in value:
            refuse_number(name, one)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    key = name.rpartition(".")[2].lstrip("-").replace("-", "_")
    least, most = int(key in _FROM_1), _MOST.get(key, math.inf)
    if not math.isfinite(value):
        raise NumberError(f"{name} is a finite number, not {value}.")
    if key in _ABOVE_0 and value <= 0:
        raise NumberError(f"{name} is above 0, not {value}.")
    if value < least:
        raise NumberError(f"{name} is {least} or more, not {value}.")
    if value > most:
        raise NumberError(f"{name} is {most:,.0f} or less, not {value}.")


def refuse_numbers(settings: Any) -> None:
    """Refuse a dataclass in which a number cannot be what it is, those of its parts too.

    :raises NumberError: as :func:`refuse_number` does.
    """
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            refuse_numbers(value)
        else:
            refuse_number(field.name, value)
