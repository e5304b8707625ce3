"""Apply a schedule to a payload."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler.process import Ending, Limits
from nestor.files import write_atomically
from nestor.schedules.language.diagnosis import LoweringError, explain
from nestor.schedules.language.linking import ENTRY, Linked
from nestor.schedules.language.text import Place
from nestor.schedules.language.tracing import last_place, traced
from nestor.schedules.payload.reading import Payload
from nestor.schedules.tools import LIMITS, Tools, run_limited
from nestor.temporary import temporary_folder

_PRINTED: Final = re.compile(
    r"^\[\[\[ IR printer: (?:after )?(.*?)(?: top-level)? \]\]\]$", re.MULTILINE
)


@dataclass(frozen=True)
class Lowered:
    """A payload after a schedule."""

    text: str
    """The module that came out."""
    stages: tuple[tuple[str, str], ...]
    """What was printed on the way: the step and the module after it."""
    seconds: float


def lower(payload: Payload, linked: Linked, tools: Tools, limits: Limits = LIMITS) -> Lowered:
    """Return the payload after the schedule.

    :raises LoweringError: if it cannot be lowered; says where in the schedule or the payload.
    """
    with temporary_folder("lowering") as name:
        folder = Path(name)
        schedule, source = folder / "schedule.mlir", folder / "payload.mlir"
        write_atomically(schedule, linked.text)
        write_atomically(source, payload.text)
        out, printed = folder / "out.mlir", folder / "printed"
        outcome = run_limited(
            [tools.mlir_opt, source, *_interpreter(schedule), "-o", out], limits, stdout=printed
        )
        if outcome.ok:
            return Lowered(
                out.read_text(), tuple(_stages(printed.read_text())), outcome.wall_seconds
            )
        at = None
        if outcome.ending in (Ending.CRASHED, Ending.TIMEOUT, Ending.MEMORY):
            at = _where(folder, source, linked, tools, limits)
        raise LoweringError(explain(outcome, linked, schedule, at), outcome.ending)


def _where(
    folder: Path, source: Path, linked: Linked, tools: Tools, limits: Limits
) -> Place | None:
    """Run again with a schedule that says where it is; return the last place it said."""
    schedule, said = folder / "traced.mlir", folder / "said"
    write_atomically(schedule, traced(linked))
    # The messages go to a file of their own: the tail counts, and Outcome keeps the head.
    words = [tools.mlir_opt, source, *_interpreter(schedule), "-o", folder / "none"]
    script = 'said=$1; shift; exec "$@" 2>"$said"'
    run_limited(["sh", "-c", script, "sh", said, *words], limits)
    return last_place(said.read_text(errors="replace"), linked)


def _interpreter(schedule: Path) -> list[str | Path]:
    return [
        f"--transform-preload-library=transform-library-paths={schedule}",
        f"--transform-interpreter=entry-point={ENTRY}",
    ]


def _stages(text: str) -> Iterable[tuple[str, str]]:
    marks = list(_PRINTED.finditer(text))
    stops = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, stop in zip(marks, stops, strict=False):
        yield mark[1], text[mark.end() : stop].strip() + "\n"
