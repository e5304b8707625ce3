"""The composition of schedules, as text, DOT and SVG, and how much of it is shared."""

import re
from collections.abc import Sequence as List
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from nestor.schedules.language.library import Library, Sequence
from nestor.schedules.language.text import blanked

_OPERATION: Final = re.compile(
    # Neither a type, nor an attribute of an argument, nor the sequence itself.
    r"(?<![\w!.])transform\.(?!named_sequence\b|consumed\b|readonly\b)\w"
)
_WIDTH: Final = 196
_HEIGHT: Final = 26
_GAP: Final = 64
_FILLS: Final = ("#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc")


@dataclass(frozen=True)
class Sharing:
    """How much of the pipelines is common to several of them."""

    pipelines: int
    sequences: int
    """That the pipelines reach, each once."""
    shared: int
    """Of these, how many more than one pipeline reaches."""
    operations: int
    """Operations of the transform dialect, each once."""
    written_out: int
    """What they would be if every pipeline stood by itself."""

    @property
    def saved(self) -> float:
        """The part of the operations of all pipelines that is not written again."""
        return 1.0 - self.operations / self.written_out if self.written_out else 0.0


def sharing(library: Library, names: List[str]) -> Sharing:
    """Return how much the pipelines of these names share."""
    users = users_of(library, names)
    sizes = {name: size(library.sequences[name]) for name in users}
    return Sharing(
        pipelines=len(names),
        sequences=len(users),
        shared=sum(len(pipelines) > 1 for pipelines in users.values()),
        operations=sum(sizes.values()),
        written_out=sum(sizes[name] * len(pipelines) for name, pipelines in users.items()),
    )


def users_of(library: Library, names: List[str]) -> dict[str, list[str]]:
    """Return, for each sequence that the pipelines reach, which of them reach it."""
    users: dict[str, list[str]] = {}
    for name in names:
        for sequence in library.closure(name):
            users.setdefault(sequence.name, []).append(name)
    return users


def size(sequence: Sequence) -> int:
    """Return how many operations of the transform dialect a sequence has."""
    return len(_OPERATION.findall(blanked(sequence.text)))


def as_text(library: Library, names: List[str]) -> str:
    """Return the composition as indented lines; what was shown before is not unfolded again."""
    lines: list[str] = []
    shown: set[str] = set()
    users = users_of(library, names)

    def visit(name: str, depth: int) -> None:
        sequence = library.sequences[name]
        again = " …" if name in shown and sequence.includes else ""
        marks = [f"in {len(users[name])} pipelines"] if len(users[name]) > 1 else []
        marks += [f"decides {d.name}" for d in sequence.decisions]
        lines.append(f"{'  ' * depth}{name}{again}" + (f"  ({', '.join(marks)})" if marks else ""))
        if name not in shown:
            shown.add(name)
            for callee in _callees(sequence):
                visit(callee, depth + 1)

    for name in names:
        visit(name, 0)
    total = sharing(library, names)
    lines.append("")
    lines.append(
        f"{total.sequences} sequences in {total.pipelines} pipelines, {total.shared} of them in"
        f" several; {total.operations} operations instead of {total.written_out}:"
        f" {100 * total.saved:.0f} % are shared"
    )
    return "\n".join(lines) + "\n"


def as_dot(library: Library, names: List[str]) -> str:
    """Return the composition in the language of Graphviz."""
    users = users_of(library, names)
    lines = ["digraph schedules {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for name in users:
        style = ', style=filled, fillcolor="#cfe2f3"' if name in names else ""
        lines.append(f'  "{name}" [label="{name}\\n{_note(library, name, users)}"{style}];')
    for name in users:
        lines += [f'  "{name}" -> "{callee}";' for callee in _callees(library.sequences[name])]
    return "\n".join([*lines, "}", ""])


def as_svg(library: Library, names: List[str]) -> str:
    """Return the composition as a picture: columns from pipelines on the left to last steps."""
    users = users_of(library, names)
    column = _columns(library, names)
    places: dict[str, tuple[int, int]] = {}
    for depth in sorted(set(column.values())):
        for row, name in enumerate(n for n in users if column[n] == depth):
            places[name] = (20 + depth * (_WIDTH + _GAP), 20 + row * (_HEIGHT + 22))
    width = max(x for x, _ in places.values()) + _WIDTH + 20
    height = max(y for _, y in places.values()) + _HEIGHT + 30
    body = []
    for name in users:
        x, y = places[name]
        for callee in _callees(library.sequences[name]):
            tx, ty = places[callee]
            start, end = x + _WIDTH, ty + _HEIGHT // 2
            middle = (start + tx) // 2
            body.append(
                f'<path d="M{start} {y + _HEIGHT // 2} C{middle} {y + _HEIGHT // 2} {middle} {end}'
                f' {tx} {end}" fill="none" stroke="#888"/>'
            )
    for name, (x, y) in places.items():
        fill = _FILLS[0] if name in names else _FILLS[1 if len(users[name]) > 1 else 2]
        body.append(
            f'<g><title>{escape(library.sequences[name].about)}</title><rect x="{x}" y="{y}"'
            f' width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="{fill}" stroke="#555"/>'
            f'<text x="{x + 8}" y="{y + 17}">{escape(name)}</text>'
            f'<text x="{x + 8}" y="{y + _HEIGHT + 11}" fill="#666" font-size="9">'
            f"{escape(_note(library, name, users))}</text></g>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' font-family="sans-serif" font-size="12">\n' + "\n".join(body) + "\n</svg>\n"
    )


def _note(library: Library, name: str, users: dict[str, list[str]]) -> str:
    sequence = library.sequences[name]
    words = [f"{size(sequence)} operations"]
    if len(users[name]) > 1:
        words.append(f"in {len(users[name])} pipelines")
    if sequence.decisions:
        words.append(f"{len(sequence.decisions)} decisions")
    return ", ".join(words)


def _callees(sequence: Sequence) -> list[str]:
    return list(dict.fromkeys(include.callee for include in sequence.includes))


def _columns(library: Library, names: List[str]) -> dict[str, int]:
    """Return for each sequence the longest way to it from a pipeline."""
    column: dict[str, int] = {}

    def visit(name: str, depth: int) -> None:
        if column.get(name, -1) < depth:
            column[name] = depth
            for callee in _callees(library.sequences[name]):
                visit(callee, depth + 1)

    for name in names:
        visit(name, 0)
    return column
