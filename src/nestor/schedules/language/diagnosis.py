"""What is wrong with a schedule or a payload, and where."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nestor.compiler.process import Ending, Outcome
from nestor.schedules.language.linking import Linked
from nestor.schedules.language.text import Place, ScheduleError

Severity = Literal["error", "warning", "note"]

_MESSAGE: Final = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): (?P<kind>error|note): (?P<text>.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Diagnosis:
    """One thing that is wrong."""

    severity: Severity
    reason: str
    """One line."""
    place: Place | None = None
    """In the user's own file or in the library."""

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.severity}: {self.reason}"


class LoweringError(ScheduleError):
    """A payload cannot be lowered by a schedule; ``diagnoses`` say where and why."""

    def __init__(self, diagnoses: list[Diagnosis], ending: Ending) -> None:
        """Say why.

        :param diagnoses: at least one, the most important first.
        :param ending: how the tool ended.
        """
        super().__init__("\n".join(map(str, diagnoses)))
        self.diagnoses = diagnoses
        self.ending = ending


def explain(
    outcome: Outcome, linked: Linked | None, file: Path, at: Place | None = None
) -> list[Diagnosis]:
    """Return why a run of mlir-opt failed.

    :param linked: the schedule that it applied, if any.
    :param file: the file in which mlir-opt read that schedule.
    :param at: the place of the operation that was being applied, if it was found out.
    """
    found = []
    for match in _MESSAGE.finditer(outcome.stderr):
        place: Place | None = Place(Path(match["file"]), int(match["line"]))
        if Path(match["file"]) == file and linked is not None:
            place = linked.place_of(int(match["line"]))
        found.append((match["kind"], Diagnosis("error", match["text"][:300], place)))
    errors = [diagnosis for kind, diagnosis in found if kind == "error"]
    notes = [Diagnosis("note", d.reason, d.place) for kind, d in found if kind == "note"]
    if outcome.ending in (Ending.OK, Ending.FAILED):
        return [*errors, *notes] or [Diagnosis("error", outcome.reason, at)]
    what = {
        Ending.CRASHED: "mlir-opt crashes at this operation",
        Ending.TIMEOUT: f"mlir-opt does not end within {outcome.wall_seconds:.0f} s here",
        Ending.MEMORY: "mlir-opt needs more memory than its limit here",
    }.get(outcome.ending, outcome.reason)
    return [Diagnosis("error", what + _assertion(outcome.stderr), at), *errors]


def _assertion(stderr: str) -> str:
    match = re.search(r"Assertion [`'](.{1,200}?)' failed|LLVM ERROR: (.{1,200})", stderr)
    return f" ({match[1] or match[2]})" if match else ""
