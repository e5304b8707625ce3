"""Collect profiles: build programs with counters, run them, merge what they counted.

The runs execute the programs of the corpus, so they happen only when a user asks for profiles.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.codegen.commands import instrument_command
from nestor.corpus.model import Corpus, CorpusError, Missing, Program
from nestor.corpus.relink import link_command
from nestor.corpus.smoke import prepare
from nestor.progress import Progress, silent

_LIMITS = Limits(seconds=600.0)

Instrument = Callable[[Toolchain, Sequence[str], Path, Path], Outcome]
"""Makes an object that counts: toolchain, cc1 line, bitcode, object."""


def instrument_in_pipeline(
    toolchain: Toolchain, options: Sequence[str], bitcode: Path, out: Path
) -> Outcome:
    """Compile with counters where ``-fprofile-use`` looks for them: within the middle end."""
    return run(instrument_command(toolchain, options, bitcode, out), _LIMITS)


@dataclass(frozen=True)
class Profiles:
    """The profiles of a corpus, one for each project whose programs ran."""

    by_module: Mapping[str, Path]
    """Indexed profiles by the name of the module that they are for."""
    missing: tuple[Missing, ...]
    """Programs that could not be built with counters or did not run, with the reason."""


def collect_profiles(
    corpus: Corpus,
    toolchain: Toolchain,
    folder: Path,
    jobs: int = 2,
    progress: Progress = silent,
    instrument: Instrument = instrument_in_pipeline,
) -> Profiles:
    """Run the profile runs of each program that has some, and return what they counted.

    All programs of a project count into one profile. A module of several projects takes the
    profile of its own project, or of the first one that has a program with it.

    :param folder: gets objects, programs and profiles.
    :param instrument: puts counters into a module, at the place where its profile is used.
    :raises CorpusError: if LLVM's tool or library for profiles is not installed.
    """
    programs = [p for p in corpus.programs if p.workload is not None and p.workload.profile]
    _require_tools(toolchain)
    objects, reasons = _instrumented(
        corpus, programs, toolchain, folder, jobs, progress, instrument
    )
    missing: list[Missing] = []
    counts: dict[str, list[Path]] = defaultdict(list)
    ran: list[Program] = []
    for done, program in enumerate(programs):
        progress("run for profiles", done, len(programs))
        try:
            own = folder / "runs" / program.name
            found = _counted(corpus, program, toolchain, objects, reasons, own)
        except CorpusError as error:
            missing.append(Missing(program.project, f"{program.name}: no profile: {error}"))
            continue
        counts[program.project] += found
        ran.append(program)
    progress("run for profiles", len(programs), len(programs))
    merged = {
        project: _merged(toolchain, files, folder / f"{project}.profdata")
        for project, files in counts.items()
    }
    return Profiles(dict(_chosen(corpus, ran, merged)), tuple(missing))


def _require_tools(toolchain: Toolchain) -> None:
    major = toolchain.major
    absent = [] if _merger(toolchain).exists() else [f"llvm-{major}"]
    if not any(toolchain.prefix.glob("lib/clang/*/lib/*/libclang_rt.profile*.a")):
        absent.append(f"libclang-rt-{major}-dev")
    if absent:
        raise CorpusError(
            f"{toolchain.prefix} cannot make profiles: install {' and '.join(absent)}."
        )


def _merger(toolchain: Toolchain) -> Path:
    return toolchain.prefix / "bin" / "llvm-profdata"


def _instrumented(
    corpus: Corpus,
    programs: list[Program],
    toolchain: Toolchain,
    folder: Path,
    jobs: int,
    progress: Progress,
    instrument: Instrument,
) -> tuple[dict[str, Path], dict[str, str]]:
    """Compile the modules of ``programs`` with counters; return objects, and why some are not."""
    names = sorted({name for program in programs for name in program.modules})
    objects = {name: folder / "objects" / name for name in names}

    def compile_one(name: str) -> str | None:
        module, out = corpus.module(name), objects[name]
        out.parent.mkdir(parents=True, exist_ok=True)
        outcome = instrument(toolchain, module.options, corpus.bitcode(module), out)
        return None if outcome.ok else outcome.reason

    reasons: dict[str, str] = {}
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        for done, (name, reason) in enumerate(
            zip(names, pool.map(compile_one, names), strict=True)
        ):
            progress("compile with counters", done, len(names))
            if reason is not None:
                reasons[name] = reason
    progress("compile with counters", len(names), len(names))
    return objects, reasons


def _counted(
    corpus: Corpus,
    program: Program,
    toolchain: Toolchain,
    objects: Mapping[str, Path],
    reasons: Mapping[str, str],
    folder: Path,
) -> list[Path]:
    """Link and run ``program``; return the raw profiles that it left.

    :param reasons: why modules have no object.
    :param folder: gets the program and what it leaves.
    :raises CorpusError: with the reason, if there are none.
    """
    lost = next((f"{name} {reasons[name]}" for name in program.modules if name in reasons), None)
    if lost is not None:
        raise CorpusError(lost)
    binary = folder / "bin" / program.name.rpartition("/")[2]
    binary.parent.mkdir(parents=True)
    command = link_command(toolchain, corpus, program, objects, binary)
    linked = run([*command, "-fprofile-generate"], _LIMITS)
    if not linked.ok:
        raise CorpusError(f"not linked: {linked.reason}")
    runs = () if program.workload is None else program.workload.profile
    own = Path("..") / "bin" / binary.name
    found: list[Path] = []
    for words in runs:
        place = folder / "run"
        prepared = prepare(corpus, program, place, words)
        if prepared is None:
            raise CorpusError("there is no profile run")
        outcome = run([own, *prepared.arguments], _LIMITS, cwd=place, stdin=prepared.stdin)
        if not outcome.ok:
            raise CorpusError(f"run {outcome.reason}")
        left = sorted(place.rglob("*.profraw"))
        if not left:
            raise CorpusError("the run left no counts")
        for raw in left:
            found.append(Path(shutil.move(raw, folder / f"{len(found)}.profraw")))
        shutil.rmtree(place)
    return found


def _merged(toolchain: Toolchain, raw: list[Path], out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    outcome = run([_merger(toolchain), "merge", *raw, "-o", out], _LIMITS)
    if not outcome.ok:
        raise CorpusError(f"The profiles for {out.stem} cannot be merged: {outcome.reason}.")
    return out


def _chosen(
    corpus: Corpus, ran: list[Program], merged: Mapping[str, Path]
) -> Iterator[tuple[str, Path]]:
    """Yield each module of the programs that ran, with its profile."""
    users: dict[str, list[str]] = defaultdict(list)
    for program in ran:
        for name in program.modules:
            users[name].append(program.project)
    for name, projects in users.items():
        own = corpus.module(name).project
        yield name, merged[own if own in projects else projects[0]]
