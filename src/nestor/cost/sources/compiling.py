"""Bitcode becomes objects at -O2, several at once, and the objects become blocks."""

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.process import Limits
from nestor.compiler.toolchain import Toolchain
from nestor.cost.elf.binary import ObjectFileError
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.objects import read_object
from nestor.cost.sources.settings import CompileSettings
from nestor.cost.sources.speed_object import compile_for_speed, speed_options
from nestor.errors import NestorError
from nestor.files import replacing
from nestor.temporary import temporary_folder

_AHEAD = 4
"""Compiles waiting per worker, so that bitcode that streams by is not all held at once."""


@dataclass(frozen=True)
class Unit:
    """One module to compile."""

    name: str
    """What the table names as the source of its blocks."""
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
            folder = Path(stack.enter_context(temporary_folder("blocks")))
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
                    _compile(unit, kept, toolchain, limits, cancelled)
                content = kept.read_bytes()
                if not keep:
                    kept.unlink()
            except _CompileError as error:
                return str(error)
            except OSError as error:
                return f"the object cannot be kept ({error.strerror})"
            return content

        threads = stack.enter_context(ThreadPoolExecutor(max(1, settings.jobs), "nestor-blocks"))
        waiting: deque[tuple[Unit, Future[bytes | str]]] = deque()

        def take() -> None:
            unit, future = waiting.popleft()
            content = future.result()
            if isinstance(content, str):
                into.failures[content] += 1
            else:
                try:
                    read_object(content, unit.name, into)
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
) -> None:
    """Compile ``unit`` to ``out``, which is written whole or not at all.

    :raises _CompileError: if it does not compile.
    :raises OSError: if nothing can be written.
    """
    with temporary_folder("bitcode") as folder, replacing(out) as scratch:
        if isinstance(unit.bitcode, bytes):
            bitcode = Path(folder) / "module.bc"
            bitcode.write_bytes(unit.bitcode)
        else:
            bitcode = unit.bitcode
        outcome = compile_for_speed(toolchain, unit.options, bitcode, scratch, limits, cancelled)
        if not outcome.ok:
            raise _CompileError(
                outcome.reason.replace(str(bitcode), "bitcode").replace(str(scratch), "object")
            )


class _CompileError(Exception):
    """A module that does not compile; the text is the compiler's reason."""
