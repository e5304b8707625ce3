"""One run of lld under LTO: a program finished inside the linker, under a policy.

What clang makes of the modules before (the *pre-link objects*) is stock and kept in the cache, so a
rollout is one run of the linker. It is pure like any other: the objects are named by their
content and the linker runs in their folder, so that no path gets into what it makes.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import cast

import xxhash

from nestor.build.build import Job
from nestor.compiler.invocation import LtoKind, link_flags, prelink_command
from nestor.compiler.objects import Measure, ObjectError, measure
from nestor.compiler.plugin import cache_folder
from nestor.compiler.process import Ending, run
from nestor.corpus.model import Module, Program
from nestor.corpus.relink import LinkMode, link_command
from nestor.files import sha256_of
from nestor.problem.problem import Pool
from nestor.problem.rollout import Workplace
from nestor.problem.trajectory import LogError, Trajectory
from nestor.progress import Progress, silent
from nestor.rollout.kept import is_whole, keep
from nestor.temporary import temporary_folder

MERGED = "ld-temp.o"
"""The source file's name of the module that full LTO makes of a program."""

Flags = Callable[[Job, Workplace, Path], list[str]]
"""From a job with a policy, and where its logs go, to the plugin's options for a compiler."""

ReadLog = Callable[[Path], Trajectory]
"""Reads the log of one back end; raises LogError if it is none."""

# A line of lld's map for one input section of a back end's object, and for an exception table.
_SECTION = re.compile(
    r"^\s*[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)\s+\d+\s+\S*program\.lto\.(\S+):\((\S+)\)$"
)
_TABLE = ".gcc_except_table."


@dataclass(frozen=True)
class LtoLink:
    """What became of one link."""

    measure: Measure | None
    """The linked program's sizes; None if there is no program."""
    functions: Mapping[str, int]
    """Bytes by symbol of code, unwind entry and exception table; local functions of one name
    (thin LTO only) are added up."""
    back_ends: Mapping[str, int]
    """Bytes of code, constants and exception tables by back end: one of full LTO (``MERGED``),
    one for each module of thin LTO, by its pre-link object's name."""
    trajectories: Mapping[str, Trajectory]
    """By back end, of those that asked anything."""
    cpu_seconds: float
    failure: str | None
    """Why there is no result, in one line; None if all went well."""
    digest: str | None = None
    """SHA-256 of the program."""


@dataclass(frozen=True)
class Prelinked:
    """The stock pre-link objects of some modules."""

    objects: Mapping[str, Path]
    """By module; all in one folder."""
    failures: Mapping[str, str]
    """Why a module has none, in one line."""


def prelink(
    pool: Pool, programs: Sequence[Program], kind: LtoKind, progress: Progress = silent
) -> Prelinked:
    """Return the pre-link object of every module of ``programs``, compiling what is not kept.

    :raises OSError: if an object cannot be kept.
    """
    names = dict.fromkeys(chain.from_iterable(program.modules for program in programs))
    modules = [pool.corpus.module(name) for name in names]
    kept = {module.name: prelink_folder() / f"{_key(pool, module, kind)}.o" for module in modules}
    missing = [module for module in modules if not is_whole(kept[module.name])]

    def one(module: Module) -> str | None:
        with temporary_folder("prelink") as folder:
            out = Path(folder) / "o"
            command = prelink_command(
                pool.plugin.toolchain, module.options, pool.corpus.bitcode(module), out, kind
            )
            outcome = run(command, pool.limits, cancelled=pool.place.cancelled)
            if outcome.ok:
                keep(out, kept[module.name])
            return None if outcome.ok else outcome.reason

    done = pool.map(one, missing, progress, "Compiling for LTO") if missing else []
    failures = {module.name: reason for module, reason in zip(missing, done, strict=True) if reason}
    objects = {name: path for name, path in kept.items() if name not in failures}
    return Prelinked(objects, failures)


def prelink_folder() -> Path:
    """Return where pre-link objects are kept."""
    return cache_folder().resolve() / "lto"


def _key(pool: Pool, module: Module, kind: LtoKind) -> str:
    parts = [pool.plugin.toolchain.build_id, module.digest, list(module.options), kind]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def back_ends(program: Program, kind: LtoKind, objects: Mapping[str, Path]) -> dict[str, str]:
    """Return the back end that optimises each module of ``program``."""
    if kind == "full":
        return dict.fromkeys(program.modules, MERGED)
    return {name: objects[name].name for name in program.modules}


def lto_link(
    pool: Pool,
    job: Job,
    kind: LtoKind,
    prelinked: Prelinked,
    flags: Flags,
    read_log: ReadLog,
) -> LtoLink:
    """Link ``job.program`` from its modules' pre-link objects and read the result.

    A failure is a result with its reason.
    """
    objects = prelinked.objects
    missing = [name for name in job.program.modules if name not in objects]
    if not job.program.modules:
        return _failed("not linked: it has no modules")
    if missing:
        reason = prelinked.failures.get(missing[0], "not compiled")
        return _failed(f"not linked: {missing[0]} for LTO: {reason}")
    try:
        with temporary_folder("lto") as folder:
            return _link(pool, job, kind, objects, flags, read_log, Path(folder))
    except OSError as error:  # a full disk, most likely
        return _failed(f"{Ending.NOT_STARTED.value}: {error}")


def _link(
    pool: Pool,
    job: Job,
    kind: LtoKind,
    objects: Mapping[str, Path],
    flags: Flags,
    read_log: ReadLog,
    folder: Path,
) -> LtoLink:
    binary, map_file, logs = folder / "program", folder / "map", folder / "logs"
    logs.mkdir()
    command = link_command(
        pool.plugin.toolchain,
        replace(pool.corpus, root=pool.corpus.root.resolve()),
        job.program,
        {name: Path(objects[name].name) for name in job.program.modules},
        binary,
        cast(LinkMode, job.mode),
    )
    # The pool decides how many compilers run at once, so none has threads of its own.
    command += ["-Wl,--threads=1", "-Wl,--thinlto-jobs=1", f"-Wl,-Map={map_file}"]
    if job.policy is not None:
        command += link_flags(pool.plugin, flags(job, pool.place, logs))
    here = objects[job.program.modules[0]].parent
    outcome = run(command, pool.limits, cwd=here, cancelled=pool.place.cancelled)
    if not outcome.ok:
        return _failed(f"link {outcome.reason}", outcome.cpu_seconds)
    try:
        sizes = measure(binary)
        names = {
            log_name(here / name): name
            for name in set(back_ends(job.program, kind, objects).values())
        }
        found = {names.get(path.name, path.name): read_log(path) for path in sorted(logs.iterdir())}
    except (ObjectError, LogError) as error:
        return _failed(f"{Ending.FAILED.value}: {error}", outcome.cpu_seconds)
    digest = sha256_of(binary)
    if job.keep:
        pool.objects.put(binary)
    sections = _sections(map_file) if job.names else []
    return LtoLink(
        sizes,
        _functions(sizes, sections) if job.names else {},
        _bytes_by_back_end(sections),
        found,
        outcome.cpu_seconds,
        None,
        digest,
    )


def log_name(module: Path) -> str:
    """Return the name of ``module``'s log in a folder of logs (``native/plugin/core/LogFile``).

    :param module: the module's identifier, with the folder in which the compiler runs.
    """
    plain = re.sub(r"[^0-9A-Za-z._-]", "_", module.name[-64:])
    return f"{plain}.{xxhash.xxh3_64_hexdigest(str(module).encode())}.log"


def _sections(map_file: Path) -> list[tuple[str, str, int]]:
    """Return the back end, name and bytes of every section that a link kept."""
    found = []
    with map_file.open(errors="replace") as lines:
        for line in lines:
            section = _SECTION.match(line.rstrip())
            if section:
                back_end = MERGED if section[2] == "o" else section[2]
                found.append((back_end, section[3], int(section[1], 16)))
    return found


def _functions(sizes: Measure, sections: Sequence[tuple[str, str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for function in sizes.functions:
        found[function.name] = found.get(function.name, 0) + function.size
    for _, name, size in sections:
        function_name = name.removeprefix(_TABLE)
        if name.startswith(_TABLE) and function_name in found:
            found[function_name] += size
    return found


def _bytes_by_back_end(sections: Sequence[tuple[str, str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for back_end, name, size in sections:
        if name.startswith((".text", ".rodata", ".gcc_except_table")):
            found[back_end] = found.get(back_end, 0) + size
    return found


def _failed(reason: str, cpu_seconds: float = 0.0) -> LtoLink:
    return LtoLink(None, {}, {}, {}, cpu_seconds, reason)
