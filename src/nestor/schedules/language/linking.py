"""Link a schedule: one module with the entry and all that it includes, decided or not."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nestor.errors import meant
from nestor.schedules.language.decisions import Choice, Decision, agreeing, resolved
from nestor.schedules.language.library import Library, Sequence
from nestor.schedules.language.text import Place, ScheduleError

ENTRY: Final = "__transform_main"
"""The sequence at which mlir-opt begins when no other is named."""

_INCLUDE_LINE: Final = re.compile(r"transform\.include\s+@([\w.$-]+)")


@dataclass(frozen=True)
class Linked:
    """A schedule as one module."""

    text: str
    starts: tuple[tuple[int, Place], ...]
    """For each sequence: its first line in the text, and where it comes from."""

    def readable(self) -> str:
        """Return the text for people, without the blank lines that keep places in order."""
        return re.sub(r"\n(?:[ \t]*\n)+", "\n\n", self.text)

    def place_of(self, line: int) -> Place | None:
        """Return the place in the library from which a line of the text comes."""
        index = bisect_right(self.starts, line, key=lambda start: start[0]) - 1
        if index < 0:
            return None
        first, place = self.starts[index]
        return Place(place.file, place.line + line - first)


def decisions_of(library: Library, name: str) -> list[Decision]:
    """Return the decisions of a schedule and of all that it includes, each once.

    :raises ScheduleError: if the schedule cannot be linked.
    """
    return agreeing([d for sequence in library.closure(name) for d in sequence.decisions])


def check_names(names: Iterable[str], schedule: str, decisions: Iterable[Decision]) -> None:
    """Refuse answers to what a schedule does not ask.

    :raises ScheduleError: for the first name that is not among the decisions.
    """
    there = [d.name for d in decisions]
    for name in names:
        if name not in there:
            raise ScheduleError(
                f"'{schedule}' has no decision '{name}'{meant(name, there)}; it has"
                f" {', '.join(there) or 'none'}."
            )


def link(
    library: Library,
    name: str,
    choice: Choice,
    *,
    print_after: Iterable[str] = (),
    entry: bool = True,
) -> Linked:
    """Return the schedule ``name`` with all decisions replaced by ``choice``.

    :param print_after: sequences after whose includes the payload is to be printed.
    :param entry: add the sequence at which mlir-opt begins, as only a whole schedule can have it.
    :raises ScheduleError: if it cannot be linked, or a decision has no answer.
    """
    closure = library.closure(name)
    agreeing([d for sequence in closure for d in sequence.decisions])
    printed = set(print_after)
    if missing := printed - {s.name for s in closure}:
        steps = ", ".join(s.name for s in closure)
        word = sorted(missing)[0]
        near = meant(word, [s.name for s in closure])
        raise ScheduleError(f"'{word}' is no step of '{name}'{near}; its steps are {steps}.")
    lines = [f"// The schedule '{name}' with all decisions taken; steps come before their use."]
    lines += [f"{alias} = {value}" for alias, value in library.aliases.items()]
    lines += ["module attributes {transform.with_named_sequence} {"]
    starts: list[tuple[int, Place]] = []
    for sequence in closure:
        body = resolved(sequence.text, choice, sequence.place)
        if printed:
            body = _printing(body, printed)
        lines += [f"  // {sequence.about}"] if sequence.about else []
        starts.append((len(lines) + 1, sequence.place))
        lines += ("  " + body).splitlines()
        lines.append("")
    if entry:
        lines += _entry(library.find(name), printed)
    lines += ["}", ""]
    return Linked("\n".join(lines), tuple(starts))


def _entry(sequence: Sequence, printed: set[str]) -> list[str]:
    """Return the sequence that mlir-opt calls, which calls the pipeline."""
    arguments, results = sequence.signature
    if len(arguments) != 1 or results:
        raise ScheduleError(
            f"{sequence.place}: '{sequence.name}' is a step, no whole schedule, which takes the"
            " module alone and has no results; name a sequence that includes it."
        )
    (kind,) = arguments
    after = [f'    transform.print {{name = "after {sequence.name}"}}'] * (sequence.name in printed)
    return [
        f"  transform.named_sequence @{ENTRY}(%module: {kind} {{transform.consumed}}) {{",
        f"    transform.include @{sequence.name} failures(propagate) (%module) : ({kind}) -> ()",
        *after,
        "    transform.yield",
        "  }",
    ]


def _printing(text: str, steps: set[str]) -> str:
    """Print the payload behind each include of one of the steps, on the include's last line."""
    pieces, end = [], 0
    for match in _INCLUDE_LINE.finditer(text):
        if match[1] in steps:
            # An include ends with the line that has its function type.
            arrow = text.index("->", match.end())
            stop = text.find("\n", arrow)
            stop = len(text) if stop < 0 else stop
            pieces += [text[end:stop], f' transform.print {{name = "after {match[1]}"}}']
            end = stop
    return "".join([*pieces, text[end:]])
