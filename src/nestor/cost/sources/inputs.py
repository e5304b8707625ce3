"""Read code from what users name: hexadecimal, assembly text, object files, programs, libraries."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler.toolchain import Toolchain, find
from nestor.cost.blocks.table import LONGEST_BLOCK
from nestor.cost.llvm_tools.machine_code import assemble
from nestor.cost.sources import functions
from nestor.cost.sources.functions import Function
from nestor.cost.sources.objects import is_code
from nestor.errors import NestorError
from nestor.files import read_regular
from nestor.temporary import temporary_folder

ASSEMBLY_SUFFIXES: Final = (".s", ".S", ".asm")
_PARQUET: Final = b"PAR1"
"""What tables begin with."""
LARGEST_TEXT: Final = 1 << 28
"""Bytes of a text of blocks."""


class InputError(NestorError):
    """Something that cannot be read as code; the text says what could."""


@dataclass(frozen=True)
class Code:
    """Blocks one by one, or functions."""

    blocks: tuple[bytes, ...] = ()
    functions: tuple[Function, ...] = ()


def read(words: Sequence[str], *, intel: bool = False) -> Code:
    """Return the code that ``words`` name: files, or blocks in hexadecimal.

    Objects, programs, static libraries and assembly (``.s``) give functions; other files are texts
    with a block of hexadecimal in each line.

    :param intel: assembly is in Intel's syntax.
    :raises NestorError: if one of them cannot be read as code.
    """
    blocks: list[bytes] = []
    found: list[Function] = []
    for word in words:
        path = Path(word)
        if not exists(path):
            blocks.append(block_of(word))
        elif is_code(path):
            found += functions.read(path)
        elif path.suffix in ASSEMBLY_SUFFIXES:
            found += from_assembly(text_of(path), str(path), intel=intel)
        else:
            blocks += from_lines(text_of(path), str(path))
    if not (blocks or found):
        raise InputError(f"There is no code in {', '.join(words):.200}; name a file that has some.")
    return Code(tuple(blocks), tuple(found))


def from_lines(text: str, name: str) -> tuple[bytes, ...]:
    """Return the blocks of a text: hexadecimal in each line that is not empty or a comment (#).

    :param name: of the text, for messages.
    :raises InputError: if a line is something else.
    """
    blocks = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition("#")[0].strip()
        try:
            blocks += [block_of(code)] if code else []
        except InputError:
            raise InputError(
                f"{name}, line {number:,}: {code[:40]!r} is no machine code in hexadecimal of at"
                f" most {LONGEST_BLOCK:,} bytes."
            ) from None
    return tuple(blocks)


def from_assembly(text: str, name: str, *, intel: bool = False) -> tuple[Function, ...]:
    """Return the functions of x86-64 assembly, or its whole text as one if it names none.

    :raises NestorError: if llvm-mc is missing or refuses it.
    """
    with assembled(text, find(), intel=intel) as out:
        found = tuple(Function(f.name, name, f.blocks) for f in functions.read(out))
    if not found:
        raise InputError(
            f"There is no block in {name}: name x86-64 instructions besides jumps, calls and"
            " returns, which end a block."
        )
    return found


@contextmanager
def assembled(text: str, toolchain: Toolchain, *, intel: bool = False) -> Iterator[Path]:
    """Yield the object of x86-64 assembly, which is there as long as the block runs.

    :raises NestorError: if llvm-mc is missing or refuses it.
    """
    with temporary_folder("assembly") as folder:
        out = Path(folder) / "code.o"
        assemble(toolchain, text, out, intel=intel)
        yield out


def block_of(text: str) -> bytes:
    """Return the block in hexadecimal ``text``; blanks and a leading 0x are allowed.

    :raises InputError: if it is something else.
    """
    plain = text.strip().removeprefix("0x")
    try:
        block = bytes.fromhex(plain)
    except ValueError:
        block = b""
    if not 0 < len(block) <= LONGEST_BLOCK:
        raise InputError(
            f"{text[:40]!r} is neither a file nor machine code in hexadecimal of at most"
            f" {LONGEST_BLOCK:,} bytes."
        )
    return block


def exists(path: Path) -> bool:
    """Tell whether there is a file or folder of that name, whatever the name is."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a name, or with a zero byte
        return False


def text_of(path: Path) -> str:
    """Return the text of a file.

    :raises NestorError: if it is no regular file, larger than any text of blocks, or no text.
    """
    data = read_regular(path, "blocks", limit=LARGEST_TEXT)
    if data.startswith(_PARQUET):
        raise InputError(
            f"'{path}' is a table; name one of blocks to 'nestor costmodel evaluate --blocks', one"
            " of events to 'nestor costmodel program'."
        )
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"'{path}' is neither text nor an object that can be read; name blocks in hexadecimal,"
            " assembly, or an object or program for x86-64."
        ) from None
