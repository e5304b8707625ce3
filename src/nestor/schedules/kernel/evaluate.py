"""One evaluation: lower a payload under a choice, compile, verify, time."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from nestor.compiler.process import Ending, Limits
from nestor.schedules.kernel.building import build_library
from nestor.schedules.kernel.lowering import lower
from nestor.schedules.kernel.measure import RUN_LIMITS, RunError, Settings, measure
from nestor.schedules.language.diagnosis import LoweringError
from nestor.schedules.language.library import Library
from nestor.schedules.language.linking import link
from nestor.schedules.payload.reading import Payload
from nestor.schedules.payload.reference import as_generics
from nestor.schedules.target import Target
from nestor.schedules.tools import LIMITS, Tools
from nestor.temporary import temporary_folder

Status = Literal["ok", "not lowered", "wrong result", "crashed", "limit"]


TUNING: Final = Settings(rounds=7, numpy=False)
"""How each choice is timed while many are compared."""


SOON: Final = Limits(seconds=5.0, memory_mib=2048)
"""What it may take to see whether a guess can be lowered: nearly all take a fifth of a second."""


@dataclass(frozen=True)
class Evaluation:
    """What became of one choice."""

    choice: Mapping[str, int]
    status: Status
    reason: str
    """Empty if it is ok."""
    least: float | None = None
    """Seconds of the shortest call, if it is ok."""
    middle: float | None = None
    """Seconds of the median call."""


@dataclass(frozen=True)
class Task:
    """What is evaluated, apart from the choice."""

    payload: Payload
    library: Library
    schedule: str
    target: Target
    tools: Tools
    settings: Settings = TUNING
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Answers that a search must not change."""
    lowering_limits: Limits = LIMITS
    run_limits: Limits = RUN_LIMITS

    @functools.cached_property
    def generics(self) -> str:
        """The payload as numpy reads it."""
        return as_generics(self.payload, self.tools)


def build_choice(task: Task, choice: Mapping[str, int], out: Path) -> None:
    """Write the shared object of a choice.

    :raises LoweringError: if there is none.
    """
    linked = link(task.library, task.schedule, choice)
    lowered = lower(task.payload, linked, task.tools, task.lowering_limits)
    build_library(lowered, task.target, task.tools, out, task.lowering_limits)


def lowers(task: Task, choice: Mapping[str, int]) -> bool:
    """Return whether a payload can soon be lowered under a choice; no kernel is made of it."""
    try:
        linked = link(task.library, task.schedule, choice)
        lower(task.payload, linked, task.tools, SOON)
    except LoweringError:
        return False
    return True


def compare(task: Task, evaluations: Sequence[Evaluation], seed: int) -> list[Evaluation]:
    """Return evaluations with the times of a run in which all take turns, twice as many as usual.

    Those of which that run has no time are left as they are.
    """
    with temporary_folder("kernels") as name:
        files = {str(i): Path(name) / f"{i}.so" for i in range(len(evaluations))}
        for evaluation, file in zip(evaluations, files.values(), strict=True):
            build_choice(task, evaluation.choice, file)
        settings = replace(task.settings, seed=seed, rounds=2 * task.settings.rounds)
        measured = measure(
            files, task.payload, task.tools, settings, task.run_limits, task.generics
        )
    timings = [measured.timings.get(name) for name in files]
    return [
        e if t is None else replace(e, least=t.least, middle=t.middle)
        for e, t in zip(evaluations, timings, strict=True)
    ]


def evaluate(task: Task, choice: Mapping[str, int], seed: int) -> Evaluation:
    """Return what becomes of a choice; failures are results.

    :param seed: of the inputs, another one for each evaluation.
    """
    try:
        with temporary_folder("kernel") as name:
            library = Path(name) / "kernel.so"
            build_choice(task, choice, library)
            settings = replace(task.settings, seed=seed)
            measured = measure(
                {"kernel": library}, task.payload, task.tools, settings, task.run_limits,
                task.generics,
            )  # fmt: skip
    except LoweringError as error:
        limit = error.ending in (Ending.TIMEOUT, Ending.MEMORY)
        return Evaluation(choice, "limit" if limit else "not lowered", str(error.diagnoses[0]))
    except RunError as error:
        return Evaluation(choice, "crashed" if "crash" in str(error) else "limit", str(error))
    verdict = measured.verdicts["kernel"]
    if not verdict["correct"]:
        return Evaluation(choice, "wrong result", verdict["reason"])
    timing = measured.timings["kernel"]
    return Evaluation(choice, "ok", "", timing.least, timing.middle)
