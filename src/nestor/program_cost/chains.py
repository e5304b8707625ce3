"""Join blocks along edges that nearly every execution takes.

A block alone is priced as if everything before it had ended. Blocks that run one after the other
nearly always are one piece of straight code to the core, and are priced as one. They are joined
only where the edge carries nearly all executions of both its ends: then the same code is joined in
another build of the program too, whichever way its blocks are cut.
"""

from dataclasses import dataclass
from typing import Any, Final

from nestor.events.table import EventTable

SHARE: Final = 0.9
"""Of the executions of both ends that an edge must carry."""
LONGEST: Final = 600
"""Bytes of code of a chain."""
_LOOP: Final = 2.0

Place = tuple[str, int]


@dataclass(frozen=True)
class Chain:
    """Blocks, as rows of the table, in the order in which they run."""

    rows: tuple[int, ...]
    turns: float = 1.0
    """How often it runs each time it is entered: it mostly goes back to its beginning if that is
    more than two."""

    @property
    def repeats(self) -> bool:
        """Return whether it mostly goes back to its beginning."""
        return self.turns > _LOOP


def chains(table: EventTable) -> list[Chain]:
    """Return all blocks of a run, each in one chain."""
    executions = table.numbers("executions").tolist()
    sizes = [len(code) for code in table.words("code")]
    exits = table.words("exit")
    joins = pairs(table)
    counts = {(source, target): count for source, target, count in joins}
    arriving = [0] * len(table)
    for _, target, count in joins:
        arriving[target] += count
    following = {
        source: target
        for source, target, count in joins
        if source != target and count >= SHARE * max(executions[source], executions[target])
    }
    entering = set(following.values())
    found, used = [], [False] * len(table)
    for row in sorted(range(len(table)), key=lambda r: (r in entering, -executions[r], r)):
        if used[row]:
            continue
        chain, size = [row], sizes[row]
        used[row] = True
        while (after := following.get(chain[-1])) is not None:
            if used[after] or "repeats" in (exits[after], exits[chain[-1]]):
                break
            size += sizes[after]
            if size > LONGEST:
                break
            used[after] = True
            chain.append(after)
        # By edges alone: those and executions differ in what samples miss of them.
        every, back = arriving[chain[0]], counts.get((chain[-1], chain[0]), 0)
        if every == back:  # nothing is known of how it is entered
            every = executions[chain[0]]
        found.append(Chain(tuple(chain), every / max(every - back, 1)))
    return found


def row_of(table: EventTable) -> dict[Place, int]:
    """Return the row of each block, by its object and address."""
    places = zip(table.words("object"), table.words("address"), strict=True)
    return {place: row for row, place in enumerate(places)}


def pairs(table: EventTable) -> list[tuple[int, int, int]]:
    """Return edges between rows, with their counts."""
    rows = row_of(table)
    columns: dict[str, list[Any]] = table.edges.to_pydict()
    edges = zip(
        zip(columns["from_object"], columns["from_address"], strict=True),
        zip(columns["to_object"], columns["to_address"], strict=True),
        columns["count"],
        strict=True,
    )
    return [
        (rows[source], rows[target], count)
        for source, target, count in edges
        if source in rows and target in rows
    ]
