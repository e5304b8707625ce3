"""Check a library against the installed MLIR."""

from pathlib import Path
from typing import Final

from nestor.compiler.process import Limits
from nestor.files import write_atomically
from nestor.schedules.language.check import check_text, passes_of
from nestor.schedules.language.diagnosis import Diagnosis, explain
from nestor.schedules.language.library import Library
from nestor.schedules.language.linking import decisions_of, link
from nestor.schedules.language.text import ScheduleError
from nestor.schedules.tools import Tools, run_limited
from nestor.temporary import temporary_folder

_LIMITS: Final = Limits(seconds=30.0)


def check(library: Library, tools: Tools) -> list[Diagnosis]:
    """Return all that is wrong with a library, errors first.

    mlir-opt parses and verifies each sequence with all that it includes, under the first option of
    each decision, and every pass is looked up with its options.
    """
    found = check_text(library)
    wrong = {d.place for d in found if d.severity == "error"}
    for name in _outermost(library):
        try:
            choice = {d.name: d.options[0] for d in decisions_of(library, name)}
            linked = link(library, name, choice, entry=False)
        except ScheduleError:
            continue  # check_text has said why
        with temporary_folder("check") as folder:
            file = Path(folder) / "schedule.mlir"
            write_atomically(file, linked.text)
            outcome = run_limited([tools.mlir_opt, file, "-o", "/dev/null"], _LIMITS)
            if not outcome.ok:
                for diagnosis in explain(outcome, linked, file):
                    if diagnosis.place not in wrong and diagnosis not in found:
                        found.append(diagnosis)
    found += _passes(library, tools)
    order = ("error", "warning", "note")
    return sorted(found, key=lambda d: order.index(d.severity))


def _outermost(library: Library) -> list[str]:
    """Return the sequences that no other includes: together they reach all."""
    included = {i.callee for s in library.sequences.values() for i in s.includes}
    return [name for name in library.sequences if name not in included] or list(library.sequences)


def _passes(library: Library, tools: Tools) -> list[Diagnosis]:
    uses = list(passes_of(library))
    texts = list(dict.fromkeys(_pipeline(name, options) for name, options, _ in uses))
    if not texts or _accepted(texts, tools) is None:
        return []
    found = []
    for name, options, place in uses:
        if (reason := _accepted([_pipeline(name, options)], tools)) is not None:
            found.append(Diagnosis("error", f"the pass '{name}': {reason}", place))
    return found


def _pipeline(name: str, options: str) -> str:
    return f"{name}{{{options}}}" if options else name


def _accepted(pipelines: list[str], tools: Tools) -> str | None:
    """Return None if mlir-opt knows the passes and their options, else what it says."""
    with temporary_folder("passes") as folder:
        empty = Path(folder) / "empty.mlir"
        write_atomically(empty, "module {}\n")
        words = f"--pass-pipeline=any({','.join(pipelines)})"
        outcome = run_limited(
            [tools.mlir_opt, empty, words, "--dump-pass-pipeline", "-o", "/dev/null"], _LIMITS
        )
    if outcome.ok or "does not refer to a registered pass" not in outcome.stderr:
        complaint = next(
            (line for line in outcome.stderr.splitlines() if "no such option" in line), None
        )
        return complaint.strip() if complaint else None
    return "mlir-opt has no pass of this name"
