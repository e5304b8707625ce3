"""Bitcode becomes objects at -O2, several at once, and the objects become blocks."""

import hashlib
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from nestor.compiler.process import Limits
from nestor.compiler.speed_object import compile_for_speed, speed_options
from nestor.compiler.toolchain import Toolchain
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.objects import ObjectFileError, read_object
from nestor.errors import NestorError

_AHEAD = 4
"""Compiles waiting per worker, so that bitcode that streams by is not all held at once."""


@dataclass(frozen=True)
class CompileSettings:
    """How modules are compiled."""

    jobs: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    """Compilers at once."""
    timeout: float = 120.0
    """Seconds until a compile is killed."""
    memory: int = 4096
    """MiB of address space that a compile may use."""
    objects: Path | None = None
    """Folder that keeps the objects, so that a run that was stopped goes on; none keeps nothing."""


@dataclass(frozen=True)
class Unit:
    """One module to compile."""

    name: str
    """What the table says of where its blocks are from."""
    digest: str
    """sha256 of the bitcode."""
    options: tuple[str, ...]
    """A cc1 line."""
    bitcode: Path | bytes


def compile_and_read(
    units: Iterable[Unit],
    toolchain: Toolchain,
    settings: CompileSettings,
    into: Collection,
    finished: Callable[[Unit], None],
) -> None:
    """Compile ``units`` and add their blocks to ``into``, in the order of the units.

    A unit that does not compile is counted as a failure.

    :raises NestorError: if the folder for objects cannot be used.
    """
    cancelled = threading.Event()
    limits = Limits(settings.timeout, settings.memory)
    with ExitStack() as stack:
        folder = settings.objects
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nestor-blocks-")))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NestorError(f"'{folder}' cannot keep objects ({error.strerror}).") from error

        def compiled(unit: Unit, number: int) -> bytes | str:
            """Return the object, or what went wrong."""
            keep = settings.objects is not None
            kept = folder / f"{_key(unit, toolchain) if keep else number}.o"
            try:
                if not kept.exists():
                    reason = _compile(unit, kept, toolchain, limits, cancelled)
                    if reason:
                        return reason
                content = kept.read_bytes()
                if not keep:
                    kept.unlink()
            except OSError as error:
                return f"the object cannot be kept ({error.strerror})"
            return content

        threads = stack.enter_context(ThreadPoolExecutor(max(1, settings.jobs), "nestor-blocks"))
        waiting: deque[tuple[Unit, Future[bytes | str]]] = deque()

        def take() -> None:
            unit, future = waiting.popleft()
            made = future.result()
            if isinstance(made, str):
                into.failures[made] += 1
            else:
                try:
                    read_object(made, unit.name, into)
                except ObjectFileError as error:
                    into.failures[str(error)] += 1
            finished(unit)

        try:
            for number, unit in enumerate(units):
                waiting.append((unit, threads.submit(compiled, unit, number)))
                if len(waiting) >= _AHEAD * max(1, settings.jobs):
                    take()
            while waiting:
                take()
        except BaseException:  # an interrupt must not wait for the compilers
            cancelled.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _key(unit: Unit, toolchain: Toolchain) -> str:
    words = (unit.digest, toolchain.build_id, *speed_options(unit.options))
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]


def _compile(
    unit: Unit, out: Path, toolchain: Toolchain, limits: Limits, cancelled: threading.Event
) -> str:
    """Compile ``unit`` to ``out`` atomically; return what went wrong, or nothing.

    :raises OSError: if nothing can be written.
    """
    private = f".{out.stem}.{os.getpid()}.{threading.get_ident()}"
    partial = out.with_name(f"{private}.o")
    given = out.with_name(f"{private}.bc")
    try:
        if isinstance(unit.bitcode, bytes):
            given.write_bytes(unit.bitcode)
        bitcode = given if isinstance(unit.bitcode, bytes) else unit.bitcode
        outcome = compile_for_speed(toolchain, unit.options, bitcode, partial, limits, cancelled)
        if not outcome.ok:
            return outcome.reason.replace(str(bitcode), "bitcode").replace(str(partial), "object")
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
        given.unlink(missing_ok=True)
    return ""
