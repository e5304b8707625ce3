"""Ways to compile one unit that must give the same object, bit for bit.

Every number that Nestor prints rests on this: observing the compiler must not change it, and a
policy must decide the same wherever it is evaluated.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nestor.compiler.plugin import as_taken_by
from nestor.compiler.process import Limits, run
from nestor.errors import NestorError

Command = Sequence[str | Path]
"""A compiler's command line without its output: a recorded one, or ``clang -O2 -c x.c``."""


@dataclass(frozen=True)
class Circumstances:
    """What a compile of a way may use."""

    limits: Limits = field(default_factory=Limits)
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)


@dataclass(frozen=True)
class Way:
    """One way to compile."""

    name: str
    compile: Callable[[Command, Path, Circumstances], int | None]
    """Compile a command into an object file; return how many questions were asked, or None where
    nobody counts. Raises NestorError with the reason if there is no object."""
    counts: bool = False
    """Whether it counts its questions."""


def way_by_flags(
    name: str, flags: Sequence[str], questions: Callable[[], int] | None = None
) -> Way:
    """Return the way of a compile with ``flags``.

    :param flags: as ``clang -cc1`` takes them (:meth:`nestor.compiler.plugin.Plugin.words`).
    :param questions: returns how many questions the compile logged; None if it logs none.
    """

    def compile_once(command: Command, out: Path, use: Circumstances) -> int | None:
        # clang takes what follows the input as well as what precedes it.
        words = [*command, *as_taken_by(command, flags), "-o", out]
        outcome = run(words, use.limits, cancelled=use.cancelled)
        if not outcome.ok:
            raise NestorError(outcome.reason)
        return None if questions is None else questions()

    return Way(name, compile_once, counts=questions is not None)
