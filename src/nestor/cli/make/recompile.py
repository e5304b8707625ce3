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
from nestor.cli.make.records import Record
from nestor.cli.make.scripts import Options
from nestor.compiler.process import Limits, run, run_tool
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.files import replacing
from nestor.temporary import temporary_folder

_LIMITS: Final = Limits(seconds=3600, memory_mib=65_536)


class Way(Enum):
    """What became of an object."""

    BITCODE = "bitcode"
    """Compiled again without its front end."""
    SOURCE = "source"
    """Compiled again by its own command line."""
    STRIPPED = "stripped"
    """Its decisions stay, so only the bitcode went."""


class CompileError(NestorError):
    """A compile that succeeded before fails now; the object is as it was."""


@dataclass(frozen=True)
class Recompiler:
    """Compiles recorded objects again."""

    toolchain: Toolchain
    options: Options
    place: Path
    """The folder of ``nestor make``."""

    def under_policy(self, record: Record) -> Way:
        """Replace the objects of a stock compile by those under the policy.

        :raises CompileError: if the compiler fails.
        """
        if len(record.outputs) == 1 and self._from_bitcode(record.outputs[0]):
            return Way.BITCODE
        self._by_command(record, self.options.under_policy)
        return Way.SOURCE

    def by_stock(self, record: Record, logs: Path) -> None:
        """Replace the objects of a compile by those of the stock heuristic, bitcode inside.

        :param logs: the folder for the log of the decisions.
        :raises CompileError: if the compiler fails.
        """
        shutil.rmtree(logs, ignore_errors=True)
        self._by_command(record, self.options.of_stock(str(logs)))

    def unchanged(self, record: Record) -> Way:
        """Take the bitcode out of an object whose decisions stay; the rest is what it should be.

        :raises CompileError: if the object is damaged.
        """
        (path,) = record.outputs
        inside = embedded.read(path)
        if inside is None or not inside.exact:
            return self.under_policy(record)
        objcopy = self.toolchain.prefix / "bin" / "llvm-objcopy"
        if not objcopy.exists():
            return self.under_policy(record)
        sections = [f"--remove-section={name}" for name in (embedded.BITCODE, embedded.COMMAND)]
        with _in_place(path) as scratch:
            done = run([objcopy, *sections, path, scratch], _LIMITS)
            if not done.ok:
                raise CompileError(f"{path}: {done.reason}")
            products.settle_empty_sections(scratch)
        return Way.STRIPPED

    def _from_bitcode(self, path: Path) -> bool:
        """Compile the bitcode in ``path``; False if that could give another object than source."""
        inside = embedded.read(path)
        if inside is None or not inside.exact:
            return False
        with temporary_folder("make") as text, contextlib.suppress(_Unsuited), _in_place(path) as out:
            bitcode = Path(text) / "module.bc"
            bitcode.write_bytes(inside.bitcode)
            words = [word for word in self.options.under_policy if word != "-Xclang"]
            command = [self.toolchain.clang, *inside.options, *words, "-x", "ir", bitcode, "-o", out]
            if not run(command, _LIMITS).ok or embedded.has_new_names(out, inside.bitcode):
                raise _Unsuited
            return True
        return False

    def _by_command(self, record: Record, options: Sequence[str]) -> None:
        quiet = ["--start-no-unused-arguments", *options, "--end-no-unused-arguments"]
        command = [record.compiler, *quiet, *record.arguments]
        with _restored(record.outputs, self.place / "backup"):
            done = run_tool(["env", "-C", str(record.folder), *command])
            if done.returncode != 0:
                lines = [line for line in done.stderr.splitlines() if "error" in line]
                said = (lines or [f"exit status {done.returncode}"])[0]
                raise CompileError(f"{record.outputs[0]}: {said}")
        for path in record.outputs:
            products.mark_new(path)


class _Unsuited(Exception):
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
