"""Starting clang as a compiler driver, for the capture wrapper, and what its commands ask for.

Kept apart and free of imports that take time: a wrapper starts once per source file of a build.
"""

import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from nestor.corpus.capture.response_files import expanded
from nestor.corpus.no_object import NO_CODE
from nestor.messages import compiler_error

_NO_CODE = frozenset(NO_CODE)
_PROBES = (
    "conftest", "CMakeCCompilerId", "CMakeCXXCompilerId", "CheckFunctionExists", "sanitycheck",
)  # fmt: skip
_PROBE_FOLDERS = ("CMakeFiles/CMakeTmp", "CMakeFiles/CMakeScratch", "TryCompile", "meson-private")


def run(
    program: str,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    stderr: int | None = None,
) -> int:
    """Run ``program`` to its end and return its exit status (128 + N after signal N).

    Standard error goes to the file descriptor ``stderr`` if one is given, and standard output
    nowhere then: a build reads what ``clang -print-prog-name=ld`` says, and must read it once.
    """
    actions: list[tuple[object, ...]] = []
    if stderr is not None:
        actions = [
            (os.POSIX_SPAWN_DUP2, stderr, 2),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
    child = os.posix_spawn(
        program,
        [program, *arguments],
        os.environ if environment is None else environment,
        file_actions=actions,
        setsigdef=[signal.SIGPIPE],  # which Python ignores
    )
    while True:
        try:
            _, status = os.waitpid(child, 0)
        except KeyboardInterrupt:
            continue  # The compiler got the signal too; its exit status says what it made of it.
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def run_quietly(
    program: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run ``program``; return its exit status and what it wrote on standard error."""
    # A file in memory: a pipe could fill up, and the module tempfile takes 10 ms to import.
    with os.fdopen(os.memfd_create("messages"), "w+b") as messages:
        status = run(program, arguments, environment, stderr=messages.fileno())
        messages.seek(0)
        return status, messages.read().decode(errors="surrogateescape")


def plan(program: str, arguments: Sequence[str]) -> list[list[str]]:
    """Return the commands that the driver would run (``-###``).

    :raises ValueError: if it refuses; the text is the driver's own.
    """
    status, text = run_quietly(program, ["-###", *arguments])
    if status != 0:
        raise ValueError(compiler_error(text))
    return [shlex.split(line) for line in text.splitlines() if line.startswith(' "')]


def may_make_code(arguments: Sequence[str]) -> bool:
    """Tell whether a command may make objects or programs that belong to the user's project."""
    return bool(arguments) and _NO_CODE.isdisjoint(expanded(arguments)) and not is_probe(arguments)


def is_probe(arguments: Sequence[str]) -> bool:
    """Tell whether a command is a configure test: it asks what the compiler can do."""
    return any(folder in str(Path.cwd()) for folder in _PROBE_FOLDERS) or any(
        Path(word).name.startswith(_PROBES) or any(folder in word for folder in _PROBE_FOLDERS)
        for word in expanded(arguments)
    )
