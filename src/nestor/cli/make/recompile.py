"""Make an object of a build again, in its place: from its bitcode, or by its command line."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from nestor.cli.make import embedded, products
from nestor.cli.make.embedded import Embedded
from nestor.cli.make.embedded_names import SECTIONS, removal
from nestor.cli.make.place import COMPILER_VARIABLES
from nestor.cli.make.records import Record
from nestor.cli.make.scripts import Options, WithSummary
from nestor.compiler.process import Limits, run, run_tool
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.files import replacing
from nestor.messages import compiler_error

_LIMITS: Final = Limits(seconds=3600, memory_mib=65_536)


class Way(Enum):
    """What became of an object."""

    BITCODE = "bitcode"
    """Compiled again without its front end."""
    SOURCE = "source"
    """Compiled again by its own command line."""
    STAYS = "stays"
    """Its decisions do not change, so it was not compiled again."""


class CompileError(NestorError):
    """A compile that succeeded before fails now; the object is as it was."""


@dataclass(frozen=True)
class Recompiler:
    """Compiles recorded objects again, at levels where a summary is read."""

    toolchain: Toolchain
    options: Options
    place: Path
    """The folder of ``nestor make``."""

    def can_use_bitcode(self, record: Record) -> bool:
        """Tell whether a compile from bitcode is expected to give the object from source."""
        inside = _embedded(record)
        return inside is not None and not embedded.has_new_names(record.outputs[0], inside.bitcode)

    def under_policy(self, record: Record, *, from_bitcode: bool = True) -> Way:
        """Replace the objects of a first build by those under the policy with the summary.

        :param from_bitcode: whether to try; see :meth:`can_use_bitcode`.
        :raises CompileError: if the compiler fails.
        """
        inside = _embedded(record)
        if from_bitcode and inside and self._from_bitcode(record, inside):
            return Way.BITCODE
        self._by_command(record, self._of(record).under_policy)
        return Way.SOURCE

    def as_first(self, record: Record, logs: Path) -> None:
        """Replace the objects of a compile by those of a first build.

        :param logs: the folder for the log of the decisions.
        :raises CompileError: if the compiler fails.
        """
        shutil.rmtree(logs, ignore_errors=True)
        one = len(record.outputs) == 1
        embed = ["-Xclang", "-fembed-bitcode=all"] if record.is_cxx and one else []
        options = self._of(record).of_first(str(logs), cxx=record.is_cxx)
        self._by_command(record, [*options, *embed])
        if embed:
            objcopy = self.toolchain.clang.with_name("llvm-objcopy")
            run([objcopy, *removal(str(logs)), record.outputs[0]], _LIMITS)

    def unchanged(self, record: Record) -> Way:
        """Leave an object whose decisions stay: it is that of a compile by later builds.

        :raises CompileError: if it has to be compiled after all, and the compiler fails.
        """
        (path,) = record.outputs
        data = path.read_bytes()
        if any(name.encode() in data for name in SECTIONS):
            return self.under_policy(record)  # an interrupted compile
        settled = products.with_settled_sections(data)
        if settled != data:
            with _in_place(path) as scratch:
                scratch.write_bytes(settled)
        return Way.STAYS

    def _of(self, record: Record) -> WithSummary:
        return self.options.reading[record.level]

    def _from_bitcode(self, record: Record, inside: Embedded) -> bool:
        """Compile the bitcode of an object; False if that could give another object than source."""
        (path,) = record.outputs
        words = [word for word in self._of(record).under_policy if word != "-Xclang"]
        line: list[str | Path] = [
            self.toolchain.clang,
            *inside.options,
            *words,
            "-x",
            "ir",
            inside.bitcode,
            "-o",
        ]
        with contextlib.suppress(_UnsuitedError), _in_place(path) as out:
            if not run([*line, out], _LIMITS).ok or embedded.has_new_names(out, inside.bitcode):
                raise _UnsuitedError
            return True
        return False

    def _by_command(self, record: Record, options: Sequence[str]) -> None:
        quiet = ["--start-no-unused-arguments", *options, "--end-no-unused-arguments"]
        command = [record.compiler, *quiet, *record.arguments]
        with _restored(record.outputs, self.place / "backup"):
            done = run_tool([*_in_environment(record), *command])
            if done.returncode != 0:
                said = compiler_error(done.stderr) or f"exit status {done.returncode}"
                raise CompileError(f"{record.outputs[0]}: {said}")
        for path in record.outputs:
            products.mark_new(path)


def _embedded(record: Record) -> Embedded | None:
    """Return what a first build left, if its bitcode can be compiled in place of its source."""
    if record.logs is None or len(record.outputs) != 1:
        return None
    inside = embedded.read(record.logs)
    sources = {Path(word).name for word in record.arguments}
    return inside if inside is not None and inside.source in sources else None


def _in_environment(record: Record) -> list[str]:
    """Return the words before a command by which it finds what the compile of ``record`` found."""
    unset = (word for name in COMPILER_VARIABLES for word in ("-u", name))
    values = (f"{name}={value}" for name, value in record.variables.items())
    return ["env", "-C", str(record.folder), *unset, f"PWD={record.folder}", *values]


class _UnsuitedError(Exception):
    """The object from bitcode is not the one to use."""


@contextlib.contextmanager
def _in_place(path: Path) -> Iterator[Path]:
    """Yield a scratch file that takes the place of the object ``path``, marked as new."""
    stamp = path.stat()
    with replacing(path) as scratch:
        yield scratch
        scratch.chmod(stamp.st_mode & 0o777)
        if products.ninja_folder(path) is not None:
            os.utime(scratch, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    products.mark_new(path)


@contextlib.contextmanager
def _restored(paths: Sequence[Path], folder: Path) -> Iterator[None]:
    """Put the objects back as they were unless the block succeeds."""
    folder.mkdir(parents=True, exist_ok=True)
    stamps = [path.stat() for path in paths]
    copies = [folder / f"{os.getpid()}-{os.urandom(8).hex()}" for _ in paths]
    for path, copy in zip(paths, copies, strict=True):
        shutil.copy2(path, copy)
    try:
        yield
    except BaseException:
        for path, copy in zip(paths, copies, strict=True):
            with replacing(path) as scratch:
                shutil.copy2(copy, scratch)
        raise
    else:
        for path, stamp in zip(paths, stamps, strict=True):
            if products.ninja_folder(path) is not None:
                os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    finally:
        for copy in copies:
            copy.unlink(missing_ok=True)
