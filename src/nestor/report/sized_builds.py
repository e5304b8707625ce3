"""Where the sizes and decisions of a build come from: a folder, a file, or a corpus."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from nestor.build.build import BuildError
from nestor.build.link import link_rollouts
from nestor.compiler.objects import Measure, measure
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool, Problem
from nestor.problem.rollout import Request
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent
from nestor.report.sizes import Decided, SizedBuild

_MAGIC: Final = b"\x7fELF"
_OBJECT, _LINKED = 1, (2, 3)
"""Types of ELF files."""
_PROBES: Final = ("CMakeFiles", ".git", "meson-private", "autom4te.cache")
"""Folders of a build in which linked files are tests of the compiler."""


def built_files(place: Path, *, objects: bool = False) -> SizedBuild:
    """Measure the linked programs and shared libraries in a folder, or one file.

    :param objects: measure object files instead, as is done where nothing is linked.
    :raises NestorError: if there is nothing to measure.
    """
    if place.is_file():
        return SizedBuild({place.name: measure(place)})
    if not place.is_dir():
        raise NestorError(f"There is no build {place}.")
    found = {path: kind for path in _files(place) if (kind := _elf_type(path)) is not None}
    linked = [p for p, kind in found.items() if kind in _LINKED and _is_product(p, place)]
    chosen = [] if objects else linked
    chosen = chosen or [path for path, kind in found.items() if kind == _OBJECT]
    if not chosen:
        raise NestorError(f"{place} holds no ELF program or object; build first.")
    files: dict[str, Measure] = {str(p.relative_to(place)): measure(p) for p in sorted(chosen)}
    return SizedBuild(files)


def compiled_corpus(
    pool: Pool, programs: Sequence[Program], policy: NamedPolicy, progress: Progress = silent
) -> SizedBuild:
    """Compile and link programs of a corpus under a policy, with its decisions.

    :raises BuildError: if a module does not compile or a program does not link.
    """
    modules = dict.fromkeys(name for program in programs for name in program.modules)
    requests = [
        Request(pool.corpus.module(name), policy, log=True, names=True, keep=True)
        for name in modules
    ]
    done = {r.request.unit.name: r for r in pool.run(requests, progress)}
    decisions: dict[tuple[str, str], Decided] = {}
    for name, rollout in done.items():
        if rollout.trajectory is None:
            raise BuildError(f"{name}: {rollout.failure}.")
        decisions |= _decided(pool.problem, name, rollout.trajectory)
    files = {}
    for program in programs:
        linked, _ = link_rollouts(
            pool, program, {name: done[name] for name in program.modules}, "gc"
        )
        if linked.measure is None:
            raise BuildError(f"{program.name}: {linked.failure}.")
        files[program.name] = linked.measure
    return SizedBuild(files, decisions)


def logged_decisions(problem: Problem, folder: Path) -> dict[tuple[str, str], Decided]:
    """Return the decisions in the logs of a build (``-nestor-log=FOLDER/``).

    :raises NestorError: if the folder holds no logs.
    """
    logs = sorted(path for path in folder.glob("*") if path.is_file()) if folder.is_dir() else []
    if not logs:
        raise NestorError(
            f"There is no log in {folder}; compile with -mllvm -nestor-log={folder}/."
        )
    found: dict[tuple[str, str], Decided] = {}
    for path in logs:
        log = problem.read_log(path)
        found |= _decided(problem, f"{log.facts.get('module', 0):016x}", log)
    return found


def _decided(problem: Problem, module: str, log: Trajectory) -> dict[tuple[str, str], Decided]:
    found = {}
    for row in range(len(log)):
        about = problem.describe(log, row)
        if "site" in about:
            answer = problem.word(about["answer"])
            found[module, str(about["site"])] = Decided(about["caller"], about["callee"], answer)
    return found


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


def _is_product(path: Path, folder: Path) -> bool:
    return not any(part in _PROBES for part in path.relative_to(folder).parts)


def _elf_type(path: Path) -> int | None:
    """Return the type of an ELF file for a little-endian machine, None of any other file."""
    try:
        with path.open("rb") as file:
            head = file.read(18)
    except OSError:
        return None
    if len(head) < 18 or not head.startswith(_MAGIC):
        return None
    return int.from_bytes(head[16:18], "little")
