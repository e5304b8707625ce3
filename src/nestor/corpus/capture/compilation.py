"""What a compiler wrapper does after the real compiler has succeeded.

A command is interpreted by clang's own plan of it (``-###``), never by parsing its options here.
Each compilation is then repeated up to the bitcode before optimisation, at the level of the
corpus; a link is recorded with its inputs. Imported once per source file of a build: keep it quick.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nestor.corpus.capture import driver
from nestor.corpus.capture.journal import Journal
from nestor.corpus.capture.precompiled import (
    HEADER_LANGUAGES,
    PrecompiledError,
    absolute,
    headers_of,
    without_precompiled,
)
from nestor.corpus.capture.response_files import expanded, is_stream
from nestor.corpus.capture.source_tree import debug_paths, source_tree
from nestor.corpus.capture.used_profile import with_kept_profile
from nestor.corpus.layout import JOURNAL
from nestor.corpus.level import DEFAULT_LEVEL, Level, last_level, level_of, parse_level
from nestor.corpus.lto_option import kind_of_lto
from nestor.messages import compiler_error

# Files that a compilation writes beside the object; the repeated one must not touch them.
_SIDE_OUTPUTS = frozenset(
    {
        "-dependency-file", "-MT", "-MQ", "-split-dwarf-output", "-split-dwarf-file",
        "-opt-record-file", "-serialize-diagnostic-file", "-header-include-file",
        "-diagnostic-log-file", "-o",
    }
)  # fmt: skip
_SIDE_FLAGS = ("-ftime-trace", "-stats-file", "-save-temps", "-sys-header-deps", "-MP",
               "-coverage-", "-dwarf-debug-flags", "-fmodule-output",
               "-fcolor-diagnostics")  # fmt: skip
_LANGUAGES = ("c", "c++", "cpp-output", "c++-cpp-output", "pcm")


class Target(NamedTuple):
    """Where captures go, and how they are made."""

    journal: Journal
    project: str
    """The project's name."""
    source: Path
    """The folder that names of modules start from."""
    level: Level
    """The optimisation level of the bitcode, whatever the build's own."""
    shared: bool = False
    """Record shared libraries as programs, too; programs then link those of the source tree."""
    lines: bool = False
    """Keep the numbers of source lines in the bitcode."""


class Compilation(NamedTuple):
    """One cc1 job of a plan: its options, language, input and the object that it makes."""

    arguments: list[str]
    language: str
    input: str
    object: str


def target(environment: Mapping[str, str]) -> Target | None:
    """Return where captures go, or None if this is to be a plain compiler (no NESTOR_CORPUS).

    :raises ValueError: if NESTOR_LEVEL is no level, or NESTOR_CORPUS is relative.
    """
    corpus = environment.get("NESTOR_CORPUS")
    if not corpus:
        return None
    if not Path(corpus).is_absolute():
        # The compilers of one build run in many folders, and each would find another corpus.
        raise ValueError(f"NESTOR_CORPUS is the relative path {corpus}; write an absolute one")
    named = environment.get("NESTOR_SOURCE")
    source = Path(named) if named else source_tree(Path.cwd())
    source = source.resolve()
    project = environment.get("NESTOR_PROJECT") or source.name or "project"
    level = parse_level(environment.get("NESTOR_LEVEL") or DEFAULT_LEVEL)
    shared = bool(environment.get("NESTOR_SHARED"))
    lines = bool(environment.get("NESTOR_LINES"))
    return Target(Journal(Path(corpus) / JOURNAL), clean(project), source, level, shared, lines)


def capture(
    clang: str, language: str, arguments: Sequence[str], where: Target, *, built: bool = True
) -> None:
    """Record the command ``clang arguments`` of this folder, which has succeeded already.

    ``language`` is ``"c"`` or ``"c++"``, the driver's. Without ``built`` the command was not run
    just now: there may be no object file, or one of an earlier build. Failures become events of the
    journal; nothing is raised for a command that cannot be captured.
    """
    temporaries: dict[str, str] = {}
    short = arguments  # Response files hold what may be too long for a command line.
    arguments = expanded(arguments)
    if any(is_stream(word) for word in arguments):
        _fail(where, " ".join(arguments[-3:]), "a response file is a pipe and cannot be read again")
        return
    try:
        plan = driver.plan(clang, _with_capture_options(short, where))
    except ValueError as error:
        _fail(where, " ".join(arguments[-3:]), f"clang refuses the command ({error})")
        return
    inside_link = "-c" not in arguments
    own = {"level": last_level(arguments), "lto": kind_of_lto(arguments)}
    for command in plan:
        compilation = _compilation(command)
        if compilation is not None:
            key = _compile(
                command[0], compilation, where, own, built=built, inside_link=inside_link
            )
            if key is not None:
                temporaries[compilation.object] = key
        elif _makes_precompiled_header(command):
            _note_headers(command, where.journal)
        elif _makes_program(command, shared=where.shared):
            _link(command, language, arguments, where, temporaries)


def _with_capture_options(arguments: Sequence[str], where: Target) -> list[str]:
    """Append our options, which win over the build's; before ``--``, which ends options."""
    debug = (
        ["-gline-tables-only", *debug_paths(where.source, Path.cwd())] if where.lines else ["-g0"]
    )
    ours = [where.level, *debug, "-ffunction-sections", "-fdata-sections", "-fno-lto", "-nostdlib",
            f"-ffile-prefix-map={where.source}=."]  # fmt: skip
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return [*arguments[:end], *ours, *arguments[end:]]


def _compilation(command: Sequence[str]) -> Compilation | None:
    if len(command) < 5 or command[1] != "-cc1" or "-emit-obj" not in command:
        return None
    if command[-3] != "-x" or "-o" not in command:
        return None
    return Compilation(
        list(command[1:-3]), command[-2], command[-1], command[command.index("-o") + 1]
    )


def _makes_precompiled_header(command: Sequence[str]) -> bool:
    return "-emit-pch" in command and "-o" in command and command[-2] in HEADER_LANGUAGES


def _note_headers(command: Sequence[str], journal: Journal) -> None:
    """Record which headers a precompiled header is made of, for the compilations that use it."""
    out = absolute(command[command.index("-o") + 1])
    try:
        headers = headers_of(command[1:-3], command[-1], journal)
    except PrecompiledError:
        return  # Said where the header is used.
    journal.add_precompiled(out, headers)


def _makes_program(command: Sequence[str], *, shared: bool) -> bool:
    """Tell whether a command links an executable, or with ``shared`` also a shared library."""
    linker = Path(command[0]).name.startswith(("ld", "lld", "mold", "gold"))
    joins = {"-r", "--relocatable", *(() if shared else ("-shared", "-Bshareable"))}
    return linker and "-o" in command[:-1] and joins.isdisjoint(command)


def _compile(
    clang: str,
    job: Compilation,
    where: Target,
    own: Mapping[str, str],
    *,
    built: bool,
    inside_link: bool,
) -> str | None:
    """Make the bitcode of one compilation and record it; return the object's key.

    :param own: what the event is to say of the build's own command.
    """
    if job.language not in _LANGUAGES or job.input == "-":
        return None
    journal = where.journal
    key = ""
    exists = Path(job.object).is_file()
    if built and not inside_link and not exists:
        return None  # For example /dev/null.
    temporary = inside_link or not exists
    if not temporary:
        key = hashlib.sha256(Path(job.object).read_bytes()).hexdigest()
        event = journal.compile_event(key)
        if event is not None and _as_wanted(event["arguments"], where):
            return key
    try:
        arguments = without_precompiled(job.arguments, journal)
    except PrecompiledError as error:
        _fail(where, _place(job.input, where.source), str(error))
        return None
    job = job._replace(arguments=arguments)
    with journal.scratch() as scratch:
        status, messages = driver.run_quietly(
            clang, _bitcode_line(job, where.source, scratch), _fixed_date()
        )
        if status != 0:
            reason = compiler_error(messages) or "no message"
            _fail(where, _place(job.input, where.source), reason)
            return None
        digest = journal.add_bitcode(scratch)
    if temporary:
        key = hashlib.sha256(f"temporary:{digest}".encode()).hexdigest()
    named = str(Path(job.input).with_suffix(".o")) if inside_link else job.object
    journal.add_compile(
        key,
        {
            "project": where.project,
            "language": "c" if job.language in ("c", "cpp-output") else "c++",
            "source": _place(job.input, where.source),
            "object": _inside(named, where.source),
            "place": _place(named, where.source),
            "bitcode": digest,
            "arguments": with_kept_profile(job.arguments, journal),
            **own,
            "time": _now(job.object),
        },
    )
    return key


def _as_wanted(arguments: Sequence[str], where: Target) -> bool:
    """Tell whether a module that is there was made at this level, with line numbers if wanted."""
    lines = any(word.startswith("-debug-info-kind=") for word in arguments)
    return level_of(arguments) == where.level and lines == where.lines


def _bitcode_line(job: Compilation, source: Path, out: Path) -> list[str]:
    """Return the cc1 line that writes bitcode before optimisation and nothing else."""
    words: list[str] = []
    skip = False
    for word in job.arguments:
        if skip:
            skip = False
        elif word in _SIDE_OUTPUTS:
            skip = True
        elif word == "-emit-obj":
            # Use-list orders: without them the optimiser may walk uses in another order.
            words += ["-emit-llvm-bc", "-emit-llvm-uselists", "-disable-llvm-passes", "-w"]
        elif not word.startswith(_SIDE_FLAGS) and word != "-Werror":
            words.append(word)
    # A relative input keeps the build folder out of the module's name, hence out of its digest.
    path = Path(job.input)
    if path.is_absolute() and path.is_relative_to(source):
        path = Path(os.path.relpath(path))
    return [*words, "-o", str(out), "-x", job.language, str(path)]


def _link(
    line: Sequence[str],
    language: str,
    arguments: Sequence[str],
    where: Target,
    temporaries: Mapping[str, str],
) -> None:
    from nestor.corpus.capture.link_line import (  # Most commands link nothing.
        LinkLine,
        LinkLineError,
    )

    target = line[line.index("-o") + 1]
    if not Path(target).is_file():
        return  # A test of the linker, such as "-o /dev/null".
    name = _inside(target, where.source)
    try:
        parsed = LinkLine(line, where.journal, temporaries, where.source, shared=where.shared)
    except (LinkLineError, OSError) as error:
        _fail(where, name, str(error))
        return
    # The driver's own options, which -nostdlib has kept from the linker line.
    driver_options = [
        word
        for word in ("-pthread", "-static-libgcc", "-static-libstdc++", "-m32", "-static-pie")
        if word in arguments
    ]
    if "-shared" in line or "-Bshareable" in line:
        driver_options.append("-shared")
    elif "-static" in line:
        driver_options.append("-static")
    elif "-pie" not in line:
        driver_options.append("-no-pie")
    where.journal.add_link(
        {
            "project": where.project,
            "language": language,
            "program": name,
            "tokens": [*(("option", word) for word in driver_options), *parsed.tokens],
            "dropped": parsed.dropped,
        }
    )


def _fail(where: Target, what: str, reason: str) -> None:
    event = {"project": where.project, "what": what, "reason": reason}
    if where.journal.add_failure(event):
        message = f"nestor: {what} was built but not captured: {reason}\n"
        os.write(2, message.encode(errors="surrogateescape"))


def _inside(path: str, source: Path) -> str:
    """Return ``path`` relative to the source tree, cleaned; only its name if it lies outside."""
    whole = Path(absolute(path))
    try:
        relative = whole.relative_to(source)
    except ValueError:
        relative = Path(whole.name)
    return "/".join(clean(part) for part in relative.parts)


def _place(path: str, source: Path) -> str:
    """Return what tells ``path`` from all others: relative in the source tree, absolute outside."""
    whole = absolute(path)
    return _inside(path, source) if Path(whole).is_relative_to(source) else whole


def clean(part: str) -> str:
    """Return one part of a path with nothing in it but plain characters."""
    text = "".join(c if c.isascii() and (c.isalnum() or c in "._+=-") else "_" for c in part)
    return text if text.strip(".") else "_"


def _fixed_date() -> dict[str, str]:
    """Return the environment with a date for ``__DATE__``, so that bitcode is reproducible."""
    return {"SOURCE_DATE_EPOCH": "0", **os.environ}


def _now(path: str) -> int:
    """Return when the object was made (nanoseconds), 0 if it is already gone."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
