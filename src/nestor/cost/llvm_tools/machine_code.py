"""Between machine code and assembly text, by ``llvm-mc``; many blocks in one process.

A process of its own for each block would cost a hundred times the work, so blocks go through the
disassembler hundreds at a time, parted by an instruction that no compiler writes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.temporary import temporary_folder

BATCH: Final = 400
"""Blocks in one process: long enough to forget its start, short enough to fit any limit."""
LIMITS: Final = Limits(seconds=120.0)
"""Of one process."""

_MARKER_BYTES: Final = "0x0f 0x1f 0x80 0xef 0xbe 0xad 0xde"
_MARKER: Final = "nopl\t-559038737(%rax)"
"""The no-operation that parts the blocks in the disassembler's output."""


class LlvmToolError(NestorError):
    """llvm-mc, llvm-mca or llvm-exegesis is missing or refuses its input."""


def require_tools(toolchain: Toolchain, *names: str) -> None:
    """Check that LLVM's tools ``names`` are installed.

    :raises LlvmToolError: if one is missing.
    """
    missing = [name for name in names if not tool_path(toolchain, name).exists()]
    if missing:
        raise LlvmToolError(
            f"{toolchain.prefix} lacks {' and '.join(missing)}: install the package"
            f" llvm-{toolchain.major}."
        )


def tool_path(toolchain: Toolchain, name: str) -> Path:
    """Return the path that the tool ``name`` of a toolchain has if it is installed."""
    return toolchain.prefix / "bin" / name


def disassemble(toolchain: Toolchain, blocks: Sequence[bytes]) -> list[tuple[str, ...]]:
    """Return the AT&T assembly of each block, a line an instruction; () for undecodable bytes.

    :raises LlvmToolError: if llvm-mc is missing.
    """
    return [listing for part in disassemble_batches(toolchain, blocks) for listing in part]


def disassemble_batches(
    toolchain: Toolchain, blocks: Sequence[bytes]
) -> Iterator[list[tuple[str, ...]]]:
    """Yield what :func:`disassemble` returns, :data:`BATCH` blocks at a time.

    :raises LlvmToolError: if llvm-mc is missing.
    """
    require_tools(toolchain, "llvm-mc")
    with temporary_folder("mc") as folder:
        for start in range(0, len(blocks), BATCH):
            yield _listings(toolchain, blocks[start : start + BATCH], Path(folder))


def assemble(toolchain: Toolchain, source: str, out: Path, *, intel: bool = False) -> None:
    """Assemble ``source`` (AT&T syntax unless ``intel``) into the ELF object ``out``.

    :raises LlvmToolError: if it is not x86-64 assembly; the text repeats what llvm-mc says.
    """
    require_tools(toolchain, "llvm-mc")
    text = out.with_suffix(".s")
    text.write_text((".intel_syntax noprefix\n" if intel else "") + source + "\n", encoding="utf-8")
    tool = tool_path(toolchain, "llvm-mc")
    done = run([tool, "-triple=x86_64", "-filetype=obj", "-o", out, text], LIMITS)
    if not done.ok:
        raise LlvmToolError(f"llvm-mc cannot read this as x86-64 assembly ({_message(done)}).")


def _message(done: Outcome) -> str:
    return done.reason.rpartition("error: ")[2]


def _listings(toolchain: Toolchain, blocks: Sequence[bytes], folder: Path) -> list[tuple[str, ...]]:
    """Return each block's lines, () where a byte is left over; the markers keep them apart."""
    source, out = folder / "bytes.txt", folder / "listing.s"
    source.write_text(
        "".join(
            f"[{_MARKER_BYTES}]\n[{' '.join(f'0x{byte:02x}' for byte in block)}]\n"
            for block in blocks
        )
    )
    tool = tool_path(toolchain, "llvm-mc")
    done = run([tool, "--disassemble", "-triple=x86_64", source], LIMITS, stdout=out)
    listing = out.read_text(encoding="utf-8", errors="replace")
    if done.ok and "invalid instruction encoding" not in done.stderr:
        parts = listing.split(_MARKER + "\n")[1:]
        if len(parts) == len(blocks):
            return [_lines(part) for part in parts]
    if len(blocks) == 1:
        return [()]
    # Somewhere in this batch is a block that cannot be decoded: find it by halves.
    middle = len(blocks) // 2
    return [
        *_listings(toolchain, blocks[:middle], folder),
        *_listings(toolchain, blocks[middle:], folder),
    ]


def _lines(listing: str) -> tuple[str, ...]:
    lines = (line.strip() for line in listing.splitlines())
    return tuple(line for line in lines if line and not line.startswith("."))
