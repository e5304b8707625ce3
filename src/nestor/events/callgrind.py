"""Events of a run from a file of callgrind: the fallback, with crude predictors and caches.

Callgrind's branch predictors are wrong 1 to 22 times as often as those of a processor, and its
caches have no prefetcher. What it counts exactly are executions, reads and writes, and edges. The
file must be written with ``--dump-instr=yes``, and for all columns with ``--collect-jumps=yes
--skip-plt=no --cache-sim=yes --branch-sim=yes``. The format: https://valgrind.org/docs/manual/cl-format.html
"""

import re
from pathlib import Path
from typing import Final

from nestor.events.errors import EventsError
from nestor.events.executed import table_of
from nestor.events.gathered import Gathered, Place, images_from, overlapping, with_code
from nestor.events.table import About, EventTable
from nestor.files import read_regular_text, sha256_of

_LARGEST: Final = 1 << 31
_MOST_OVERLAPS: Final = 0.002
"""Of the instructions; hand-written code jumps into the middle of one here and there."""
_POSITION: Final = frozenset("0123456789+-*")
_NAMED: Final = re.compile(r"\((\d+)\)(?: (.*))?")
_EVENTS: Final = {
    "Dr": "reads",
    "Dw": "writes",
    "I1mr": "code_misses",
    "D1mr": "l1_misses",
    "D1mw": "l1_misses",
    "ILmr": "llc_misses",
    "DLmr": "llc_misses",
    "DLmw": "llc_misses",
    "Bcm": "mispredicts",
    "Bim": "indirect_mispredicts",
}
_FLAGS: Final = (
    "--dump-instr=yes --collect-jumps=yes --skip-plt=no --cache-sim=yes --branch-sim=yes"
)


def read(path: Path, program: Path) -> EventTable:
    """Return the events in a file of callgrind.

    :param program: what was run; its code, and that of the libraries that it used, is read.
    :raises EventsError: if the file is damaged, of another program or without instructions.
    """
    text = read_regular_text(path, "a file of callgrind", limit=_LARGEST)
    try:
        reader = _Reader(text)
    except _NoInstructionsError:
        raise EventsError(f"'{path}' has no instructions; run callgrind with {_FLAGS}.") from None
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise EventsError(
            f"'{path}' cannot be read as a file of callgrind ({error}); run callgrind again."
        ) from None
    if not any(Path(name).name == program.name for name, _ in reader.gathered.executions):
        raise EventsError(f"'{path}' says nothing of '{program}'; name the program that was run.")
    found = with_code(reader.gathered, images_from(program))
    if overlapping(found.executed) > _MOST_OVERLAPS * len(found.executed.address):
        raise EventsError(
            f"'{path}' is of another build of '{program}': what it counts are no instructions of"
            " this one. Name the build that was run."
        )
    about = About(
        "callgrind",
        1,
        program.name,
        sha256_of(program),
        crude=True,
        settings={"without_code": str(found.missing)},
    )
    table = table_of(found.executed, about)
    if not len(table):
        raise EventsError(f"'{path}' names no code of '{program}'; it is of another build.")
    return table


class _NoInstructionsError(Exception):
    """The file counts lines or functions."""


class _Reader:
    """Reads a file line by line; its text may be anything."""

    def __init__(self, text: str) -> None:
        self.gathered = Gathered()
        self._objects: dict[str, str] = {}
        self._object = self._entered = ""
        self._columns: list[str] = []
        self._positions = 0
        """Words of a line of costs that say where it is: the address, and the source line."""
        self._address = 0
        self._skip = False
        """The line belongs to a call or a jump, whose cost is not that of an instruction."""
        self._call: tuple[Place, int] | None = None
        if not text.startswith(("# callgrind format", "version:")):
            raise ValueError("it does not begin like one")
        if "\ntotals:" not in text:
            raise ValueError("it is cut short")
        for line in text.splitlines():
            self._read(line)

    def _read(self, line: str) -> None:
        head = line[:1]
        if head in _POSITION and head:
            self._cost(line.split())
        elif line.startswith("ob="):
            self._object = self._name(line)
            self._entered = ""
        elif line.startswith("cob="):
            self._entered = self._name(line)
        elif line.startswith("calls="):
            words = line[6:].split()
            target = (self._entered or self._object, self._position(words[1]))
            self._call, self._skip = (target, int(words[0])), True
            self._entered = ""
        elif line.startswith(("jcnd=", "jump=")):
            self._jump(line)
        elif line.startswith("events:"):
            self._columns = line.split()[1:]
            if self._columns[:1] != ["Ir"]:
                raise ValueError("it does not count instructions")
            for name in self._columns:
                if name in _EVENTS:
                    self.gathered.count(_EVENTS[name], ("", 0), 0)
        elif line.startswith("positions:"):
            positions = line.split()[1:]
            self._positions = len(positions) if positions[:1] == ["instr"] else 0

    def _name(self, line: str) -> str:
        found = _NAMED.fullmatch(line.partition("=")[2])
        if found is None:
            return line.partition("=")[2]
        if found[2] is not None:
            self._objects[found[1]] = found[2]
        return self._objects[found[1]]

    def _position(self, word: str) -> int:
        """Return an address, which may be said relative to that of the line before."""
        if word == "*":
            return self._address
        if word[0] in "+-":
            return self._address + int(word)
        return int(word, 16 if word.startswith("0x") else 10)

    def _cost(self, words: list[str]) -> None:
        if not self._positions:
            raise _NoInstructionsError
        self._address = self._position(words[0])
        place = (self._object, self._address)
        if self._skip:
            self._skip = False
            if self._call is not None:
                target, count = self._call
                self.gathered.edges[place, target] += count
            self._call = None
            return
        for name, word in zip(self._columns, words[self._positions :], strict=False):
            amount = int(word)
            if amount < 0:
                raise ValueError("a count is negative")
            if name == "Ir":
                self.gathered.executions[place] += amount
            elif name in _EVENTS:
                self.gathered.count(_EVENTS[name], place, amount)

    def _jump(self, line: str) -> None:
        count = int(line[5:].split()[0].partition("/")[0])
        target = (self._object, self._position(line.split()[1]))
        if line.startswith("jcnd="):
            # The line behind it says whose jump it is: that of the line before, always.
            self.gathered.count("taken", (self._object, self._address), count)
        else:
            self.gathered.edges[(self._object, self._address), target] += count
        self._skip = True
