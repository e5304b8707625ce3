"""Run a program of a corpus under our tool and return its events."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nestor.compiler.process import Limits
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus, Program
from nestor.events.errors import EventsError
from nestor.events.executed import table_of
from nestor.events.simulated.caches import Caches
from nestor.events.simulated.collect import LARGEST, under_tool
from nestor.events.simulated.records import parse
from nestor.events.table import About, EventTable
from nestor.files import read_regular, sha256_of
from nestor.temporary import temporary_folder
from nestor.workload.fixed_time import NAME, fixed_time_library
from nestor.workload.running import run_program

_LIMITS: Final = Limits(seconds=1800.0, memory_mib=16384)


def events_of(
    corpus: Corpus, program: Program, binary: Path, words: Sequence[str], toolchain: Toolchain
) -> EventTable:
    """Run ``binary`` with ``words``, as :func:`nestor.workload.callgrind.measure` runs it.

    :param binary: a build of ``program``.
    :param words: arguments as :func:`nestor.corpus.smoke.prepare` takes them.
    :raises EventsError: if the tool cannot be built, or the run fails.
    """
    caches = Caches()
    with temporary_folder("events") as text:
        out = Path(text) / "events"
        under = under_tool(out, caches, f"LD_PRELOAD=../bin/{NAME}")
        library = fixed_time_library(toolchain)
        run = run_program(corpus, program, binary, words, _LIMITS, under=under, beside=(library,))
        if run is None or not run.outcome.ok or not out.exists():
            reason = "is absent" if run is None else run.outcome.reason
            raise EventsError(f"The run {shlex.join(words)!r:.200} of {program.name} {reason}.")
        content = read_regular(out, "counts of a run", limit=LARGEST)
    about = About("simulated", 1, program.name, sha256_of(binary), settings=caches.described())
    return table_of(parse(content), about)
