"""Find what is wrong with a library of schedules before a payload meets it."""

import re
from collections.abc import Iterator
from typing import Final

from nestor.errors import meant
from nestor.schedules.language.decisions import agreeing
from nestor.schedules.language.diagnosis import Diagnosis
from nestor.schedules.language.library import Library, Sequence
from nestor.schedules.language.text import Place, ScheduleError, blanked, line_of

_ANY_PARAM_KNOB: Final = re.compile(
    r"(%[\w.$-]+)\s*=\s*transform\.(?:tune\.knob|param\.constant)[^\n]*?->\s*!transform\.any_param"
)
_SIZES: Final = re.compile(
    r"transform\.structured\.(?:tile_using_for|tile_using_forall|fuse|pad|vectorize)\b[^\n]*\n?[^\n]*"
)
_MATCH: Final = re.compile(r"(%[\w.$-]+)\s*=\s*transform\.structured\.match\b")
_ONE_TARGET: Final = re.compile(
    r"transform\.(apply_patterns to|apply_cse to|structured\.hoist_redundant_vector_transfers)"
    r"\s+(%[\w.$-]+)"
)
_PASS: Final = re.compile(
    r'transform\.apply_registered_pass\s+"(?P<name>[\w-]+)"'
    r"(?:\s*with\s+options\s*=\s*\{(?P<options>[^}]*)\})?"
)


def check_text(library: Library) -> list[Diagnosis]:
    """Return what can be seen without mlir-opt: includes, signatures, circles, decisions, traps."""
    found: list[Diagnosis] = []
    for sequence in library.sequences.values():
        found += _includes(sequence, library)
        found += _traps(sequence)
    for declaration in library.declarations:
        definition = library.sequences.get(declaration.name)
        if definition is None:
            reason = f"'{declaration.name}' is declared but defined nowhere"
            found.append(Diagnosis("error", reason, declaration.place))
        elif definition.signature != declaration.signature:
            found.append(
                _mismatch("declared", declaration.signature, definition, declaration.place)
            )
    for sequence in library.sequences.values():
        try:
            agreeing([d for s in library.closure(sequence.name) for d in s.decisions])
        except ScheduleError as error:
            if (diagnosis := _as_diagnosis(error)) not in found:
                found.append(diagnosis)
    return found


def passes_of(library: Library) -> Iterator[tuple[str, str, Place]]:
    """Yield the passes that a library applies: name, options as for mlir-opt, place."""
    for sequence in library.sequences.values():
        for match in _PASS.finditer(sequence.text):
            options = " ".join(
                "=".join(word.strip().strip('"') for word in pair.split("=", 1))
                for pair in (match["options"] or "").split(",")
                if "=" in pair
            )
            yield match["name"], options, _place(sequence, match.start())


def undecided(library: Library) -> list[Diagnosis]:
    """Return a note for each decision that its schedule leaves open."""
    return [
        Diagnosis("note", f"'{d.name}' is open: {len(d.options)} options", d.place)
        for sequence in library.sequences.values()
        for d in sequence.decisions
        if d.selected is None
    ]


def _includes(sequence: Sequence, library: Library) -> Iterator[Diagnosis]:
    for include in sequence.includes:
        callee = library.sequences.get(include.callee)
        if callee is None:
            near = meant(include.callee, library.sequences)
            reason = f"there is no sequence '{include.callee}' to include{near}"
            yield Diagnosis("error", reason, include.place)
        elif include.signature != callee.signature:
            yield _mismatch("included", include.signature, callee, include.place)


def _mismatch(
    how: str, here: tuple[tuple[str, ...], tuple[str, ...]], there: Sequence, place: Place
) -> Diagnosis:
    reason = (
        f"'{there.name}' is {how} as {_written(here)}, but is {_written(there.signature)} at"
        f" {there.place}"
    )
    return Diagnosis("error", reason, place)


def _written(signature: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    arguments, results = (", ".join(types) for types in signature)
    return f"({arguments}) -> ({results})"


def _traps(sequence: Sequence) -> Iterator[Diagnosis]:
    """Yield what is valid MLIR but brings mlir-opt down, or fails on some payloads."""
    code = blanked(sequence.text)
    for match in _ANY_PARAM_KNOB.finditer(code):
        name = match[1]
        for use in _SIZES.finditer(code):
            if re.search(rf"{re.escape(name)}(?![\w.$-])", use[0]):
                reason = f"mlir-opt crashes when {name} is a size: give it the type param<i64>"
                yield Diagnosis("error", reason, _place(sequence, match.start()))
                break
    matched = {match[1] for match in _MATCH.finditer(code)}
    for use in _ONE_TARGET.finditer(code):
        if use[2] in matched:
            reason = (
                f"fails where {use[2]} matches several operations: take them in transform.foreach"
            )
            yield Diagnosis("warning", reason, _place(sequence, use.start()))


def _place(sequence: Sequence, index: int) -> Place:
    return Place(sequence.place.file, sequence.place.line + line_of(sequence.text, index) - 1)


def _as_diagnosis(error: ScheduleError) -> Diagnosis:
    """Return an error, whose text begins with its place, as a diagnosis."""
    from pathlib import Path

    match = re.match(r"(.+?):(\d+): (.*?)\.?$", str(error), re.DOTALL)
    if match is None:
        return Diagnosis("error", str(error).rstrip("."))
    return Diagnosis("error", match[3], Place(Path(match[1]), int(match[2])))
