"""Collect and measure the runs that the model of whole programs is judged by.

    python -m benchmarks.program_model build CORPUS --work FOLDER [--program …]
    python -m benchmarks.program_model collect CORPUS --work FOLDER [--program …]
    python -m benchmarks.program_model measure CORPUS --work FOLDER --session 1 [--program …]

CORPUS is the tier speed, the runs are those of data/program_runs.toml. ``build`` builds each
program by the stock compiler and prepares its run, ``collect`` counts the events of the run with
the caches of ``--caches``, in KiB: first level for data and for code, second and last level.
``measure`` measures the cycles of the same runs, all programs in turn, with a null; give it in two
sessions, and on a quiet machine. What is there already is not made again. ``python -m
benchmarks.program_judge`` reads FOLDER. With --builds the same is done with several builds of some
programs, in a folder of its own, for ``python -m benchmarks.program_order``. The programs run here:
foreign code.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from benchmarks.program_builds import BASE, BUILDS, PROGRAMS, build
from benchmarks.program_runs import ProgramRun, load, prepared
from benchmarks.regalloc_sweep import say
from nestor.compiler.toolchain import find
from nestor.corpus import store
from nestor.corpus.model import Corpus, Program
from nestor.errors import NestorError
from nestor.events import table as tables
from nestor.events.simulated.caches import Caches
from nestor.events.simulated.collect import Collected, RunSettings, collect
from nestor.files import write_atomically
from nestor.program_cost import truth

ROUNDS: Final = 4
EVENTS: Final = "events.parquet"
CACHES: Final = Caches(l1_code_kib=64)
"""Of the Xeon that measured first: 48 + 64 KiB, 2 MiB, and a share of its last level."""
_FOLDER: Final = "run"
Pair = tuple[Program, ProgramRun]


def build_all(corpus: Corpus, pairs: Sequence[Pair], work: Path) -> None:
    """Build the programs and put what they read beside them."""
    toolchain = find()
    for pair in pairs:
        program, run = pair
        own = _program(work, run)
        if own.exists():
            continue
        own.parent.mkdir(parents=True, exist_ok=True)
        failure = build(toolchain, corpus, program, run.build or BASE, own)
        if failure is not None:
            say(f"{run.name}: {failure}")
            continue
        _command(corpus, pair, work)


def collect_all(corpus: Corpus, pairs: Sequence[Pair], work: Path, caches: Caches) -> None:
    """Count the events of the runs of programs that were built."""
    for pair in pairs:
        run, events = pair[1], work / pair[1].name / EVENTS
        if events.exists() or not _program(work, run).exists():
            continue
        try:
            done = counted(_command(corpus, pair, work), caches)
        except NestorError as error:
            say(f"{run.program}: {error}")
            continue
        if done.exit_status != 0:
            say(f"{run.program}: it ends with {done.exit_status}")
        tables.write(done.table, events)
        say(f"{run.program}: {done.table.instructions:,} instructions")


def counted(command: truth.Command, caches: Caches) -> Collected:
    """Count the events of a run.

    :raises NestorError: if it cannot be run.
    """
    settings = RunSettings(command.stdin, command.folder, caches=caches)
    return collect(command.program, command.arguments, settings)


def measure_all(corpus: Corpus, pairs: Sequence[Pair], work: Path, session: int) -> None:
    """Measure the cycles of all programs that were built, in turn."""
    found = [pair for pair in pairs if _program(work, pair[1]).exists()]
    *own, null = truth.measure([_command(corpus, pair, work) for pair in found], ROUNDS)
    for (_, run), cycles in zip(found, own, strict=True):
        text = json.dumps(asdict(cycles), indent=2)
        write_atomically(work / run.name / f"cycles{session}.json", text)
    drift = null.minimum / own[0].minimum - 1
    write_atomically(work / f"null{session}.json", json.dumps({"null": drift}))
    say(f"null: {100 * drift:+.2f} %")


def _program(work: Path, run: ProgramRun) -> Path:
    return work / run.name / "program"


def _command(corpus: Corpus, pair: Pair, work: Path) -> truth.Command:
    program, run = pair
    folder = (work / run.name / _FOLDER).absolute()
    smoke = prepared(corpus, program, run, folder)
    return truth.Command(_program(work, run).absolute(), smoke.arguments, smoke.stdin, folder)


def chosen(corpus: Corpus, names: Sequence[str], builds: bool) -> list[Pair]:
    """Return the programs of the corpus that have a run, all or those of ``names``.

    :param builds: return all builds of those programs that are compared with each other.
    """
    of_name: Mapping[str, Program] = {program.name: program for program in corpus.programs}
    pairs = [
        (of_name[run.program], run)
        for run in load()
        if run.program in of_name and (not names or run.program in names)
    ]
    if not builds:
        return pairs
    return [
        (program, replace(run, build=name))
        for program, run in pairs
        if run.program in PROGRAMS
        for name in BUILDS
    ]


def main() -> None:
    """Read the command line and run one stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("stage", choices=("build", "collect", "measure"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--program", nargs="*", default=())
    parser.add_argument("--builds", action="store_true", help="all builds of some programs")
    parser.add_argument("--session", type=int, default=1)
    parser.add_argument("--caches", type=int, nargs=4, metavar="KIB")
    words = parser.parse_args()
    corpus = store.load(words.corpus)
    pairs = chosen(corpus, words.program, words.builds)
    if words.stage == "build":
        build_all(corpus, pairs, words.work)
    elif words.stage == "collect":
        caches = Caches(*words.caches) if words.caches else CACHES
        collect_all(corpus, pairs, words.work, caches)
    else:
        measure_all(corpus, pairs, words.work, words.session)


if __name__ == "__main__":
    main()
