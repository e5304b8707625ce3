"""Read the plugin's logs of questions: training logs with a summary at their end.

See docs/reference/formats.md.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy.typing as npt

from nestor.compiler import training_log
from nestor.problem.trajectory import LogError, Trajectory

_SUMMARY: Final = "nestor:summary "


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
        summaries = [text for text in log.contexts if text.startswith(_SUMMARY)]
        if not summaries:
            raise ValueError("the summary at its end is missing")
        summary = json.loads(summaries[-1][len(_SUMMARY) :])
        if summary["decisions"] != len(log.records):
            raise ValueError("decisions are missing")
        return replace(
            trajectory(log.records),
            names={int(key, 16): str(text) for key, text in summary.get("names", {}).items()},
            facts={"module": int(summary["module"], 16)},
        )
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise LogError(
            f"'{name}' is no complete log of questions ({error}); compile again."
        ) from None
