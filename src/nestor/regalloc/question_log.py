"""Read the plugin's logs of questions (docs/reference/formats.md)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from nestor.compiler import training_log
from nestor.problem.trajectory import LogError, Trajectory


def parse(
    data: bytes, name: str, trajectory: Callable[[npt.NDArray[Any]], Trajectory]
) -> Trajectory:
    """Parse the bytes of a log.

    :param name: of the file, for errors.
    :param trajectory: makes a trajectory of the records, structured ``[questions]``; it gets names
        and facts here.
    :raises LogError: if it is not a log, is malformed, or was cut short.
    """
    try:
        log = training_log.parse(data)
        summary = training_log.summary_of(log)
        facts = {"module": summary.module}
        return replace(trajectory(log.records), names=summary.names, facts=facts)
    except training_log.MALFORMED as error:
        raise LogError(
            f"'{name}' is no complete log of questions ({error}); compile again."
        ) from None
