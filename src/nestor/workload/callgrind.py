"""Run a program under callgrind and read what it counted.

Of valgrind's tools this is the cheapest that counts instructions, reads and writes by function
exactly: on bzip2 0.8 s for 51 million instructions, where lackey takes 1.2 s and has no functions,
and cachegrind takes 0.5 s but counts no entries.
"""

import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from nestor.compiler.process import Limits
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, Program
from nestor.errors import NestorError
from nestor.temporary import temporary_folder
from nestor.workload.counts import Counts, FunctionCounts, Measurement
from nestor.workload.fixed_time import NAME, fixed_time_library
from nestor.workload.running import run_program

EVENTS: Final = ("Ir", "Dr", "Dw")
_LIMITS: Final = Limits(seconds=900.0, memory_mib=16384)
_NAMED = re.compile(r"\((\d+)\)(?: (.*))?")
_CHANGES: Final = frozenset("0123456789+-*")


class MeasureError(NestorError):
    """A program that cannot be measured; the text says why."""


def measure(
    corpus: Corpus,
    program: Program,
    binary: Path,
    words: Sequence[str],
    toolchain: Toolchain,
    limits: Limits = _LIMITS,
) -> Measurement:
    """Run ``binary`` with ``words`` under callgrind and return what it executed.

    The environment and the times are the same for every run, and so are the name and the place of
    the program as it sees them: all are in its memory, and what it executes may depend on them.

    :param binary: a build of ``program``.
    :param words: arguments as :func:`nestor.corpus.smoke.prepare` takes them.
    :param toolchain: builds :mod:`nestor.workload.fixed_time`.
    :raises MeasureError: if valgrind is absent, there are no arguments, or the run fails.
    """
    valgrind, env = shutil.which("valgrind"), shutil.which("env")
    if valgrind is None or env is None:
        raise MeasureError("valgrind is not installed; install it, as apt-get install valgrind.")
    with temporary_folder("callgrind") as text:
        out = Path(text) / "counts"
        # Also without the variable that marks our processes, whose value differs in each of ours:
        # if we are killed, the limit of CPU time ends the run.
        under = (
            env, "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp",
            f"LD_PRELOAD=../bin/{NAME}",
            valgrind, "--tool=callgrind", "--cache-sim=yes", "--demangle=no",
            "--separate-recs=1",  # else the inner calls of a function f are those of "f'2"
            f"--callgrind-out-file={out}",
            f"--log-file={out}.log",  # what the program itself says went wrong stands alone
        )  # fmt: skip
        library = fixed_time_library(toolchain)
        run = run_program(corpus, program, binary, words, limits, under=under, beside=(library,))
        if run is None:
            raise MeasureError(f"{program.name} has no run of this kind.")
        if not run.outcome.ok or not out.exists():
            raise MeasureError(f"the run {shlex.join(words)!r:.200} {run.outcome.reason}")
        reader = _Reader()
        with out.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                reader.read(line)
        return reader.measurement(program.name.rpartition("/")[2], run.left)


class _Reader:
    """Reads callgrind's format (https://valgrind.org/docs/manual/cl-format.html), line by line.

    Functions and objects have numbers; the first line with a number spells the name out.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._objects: dict[str, str] = {}
        self._place: dict[str, str] = {}
        """The object of each function."""
        self._costs: dict[str, list[int]] = {}
        """Of each function itself, by event."""
        self._calls: dict[str, int] = defaultdict(int)
        self._edges: dict[tuple[str, str], int] = defaultdict(int)
        """Calls by the numbers of the calling and the called function."""
        self._object = self._entered_object = self._function = self._entered = ""
        self._after_call = False

    def read(self, line: str) -> None:
        """Take one line."""
        if line[:1] in _CHANGES:
            self._cost(line)
        elif line.startswith("fn="):
            self._function = _number(line, self._names)
            self._place.setdefault(self._function, self._object)
            self._costs.setdefault(self._function, [0] * len(EVENTS))
        elif line.startswith("cfn="):
            self._entered = _number(line, self._names)
            self._place.setdefault(self._entered, self._entered_object or self._object)
            self._entered_object = ""
        elif line.startswith("calls="):
            calls = int(line[6:].split()[0])
            self._calls[self._entered] += calls
            self._edges[self._function, self._entered] += calls
            self._after_call = True
        elif line.startswith("ob="):
            self._object = self._objects[_number(line, self._objects)]
        elif line.startswith("cob="):
            self._entered_object = self._objects[_number(line, self._objects)]
        elif line.startswith("events:") and tuple(line.split()[1:4]) != EVENTS:
            raise MeasureError(f"This valgrind counts other events: {line.strip()}.")

    def _cost(self, line: str) -> None:
        if self._after_call:  # what the call cost with all that it called in turn
            self._after_call = False
            return
        cost = self._costs[self._function]
        for index, number in enumerate(line.split()[1 : 1 + len(EVENTS)]):
            cost[index] += int(number)

    def measurement(self, name: str, left: str) -> Measurement:
        """Return what was read.

        :param name: the file name of the program, to tell its functions from those of libraries.
        :param left: see :class:`Measurement`.
        """
        functions: dict[str, FunctionCounts] = {}
        entered: dict[str, FunctionCounts] = {}
        libraries: dict[str, Counts] = {}
        edges: dict[str, dict[str, int]] = {}
        of_program = {key for key, at in self._place.items() if PurePosixPath(at).name == name}
        by_program = {to for caller, to in self._edges if caller in of_program}
        for key, events in self._costs.items():
            counts, place = Counts(*events), PurePosixPath(self._place[key]).name
            if key not in of_program:
                libraries[place] = libraries.get(place, Counts()) + counts
            for found, keys in ((functions, of_program), (entered, by_program - of_program)):
                if key in keys:
                    symbol = self._names[key]
                    before = found.get(symbol, FunctionCounts(Counts(), 0))
                    calls = before.calls + self._calls.get(key, 0)
                    found[symbol] = FunctionCounts(before.counts + counts, calls)
        for (caller, to), calls in self._edges.items():
            if caller in of_program:
                called = edges.setdefault(self._names[caller], {})
                symbol = self._names[to]
                called[symbol] = called.get(symbol, 0) + calls
        everything = sum((f.counts for f in functions.values()), Counts())
        return Measurement(
            sum(libraries.values(), everything),
            dict(sorted(functions.items())),
            dict(sorted(libraries.items())),
            {caller: dict(sorted(called.items())) for caller, called in sorted(edges.items())},
            left,
            dict(sorted(entered.items())),
        )


def _number(line: str, names: dict[str, str]) -> str:
    """Return the number of the name on a line, and note the name if the line spells it out."""
    found = _NAMED.fullmatch(line.rstrip("\n").partition("=")[2])
    if found is None or (found[2] is None and found[1] not in names):
        raise MeasureError(f"Callgrind wrote {line.strip()!r}, which cannot be read.")
    if found[2] is not None:
        names[found[1]] = found[2]
    return found[1]
