"""Static throughput analysis by LLVM: ``llvm-mca`` on basic blocks, many in one process.

The blocks' bytes go through ``llvm-mc --disassemble`` first, since llvm-mca reads assembly. Both
tools get hundreds of blocks at a time: a process of its own for each block would cost a hundred
times the analysis.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.progress import Progress, silent

F64 = npt.NDArray[np.float64]

CPU = "znver5"
"""What the data set ``zen5`` was measured on, as LLVM names it."""

Known = Sequence[tuple[int, tuple[str, ...]]]
"""Blocks that LLVM can disassemble: their index and their lines of assembly."""

_BATCH = 400
"""Blocks in one process: long enough to forget its start, short enough to fit any limit."""
_LIMITS = Limits(seconds=120.0)
_MARKER_BYTES = "0x0f 0x1f 0x80 0xef 0xbe 0xad 0xde"
_MARKER = "nopl\t-559038737(%rax)"
"""A no-operation that no compiler writes: it parts the blocks in the disassembler's output."""


class McaError(NestorError):
    """llvm-mca or llvm-mc cannot be used."""


@dataclass(frozen=True)
class Resources:
    """What LLVM's model says of one instruction alone."""

    latency: float
    """Cycles."""
    micro_ops: float
    loads: bool
    stores: bool
    usage: dict[str, float]
    """Cycles of each execution resource by name, spread evenly over its copies."""


def throughputs(
    toolchain: Toolchain, blocks: Sequence[bytes], cpu: str = CPU, progress: Progress = silent
) -> F64:
    """Return llvm-mca's cycles per iteration ``[n]``; NaN where it cannot analyse a block.

    :raises McaError: if the tools are missing or do not know ``cpu``.
    """
    _require(toolchain, cpu)
    result = np.full(len(blocks), np.nan)
    for known, folder in _batches(toolchain, blocks, "Analysing with llvm-mca", progress):
        for index, cycles in _analyse(toolchain, known, cpu, folder).items():
            result[index] = cycles
    return result


def resources(
    toolchain: Toolchain, instructions: Sequence[bytes], cpu: str = CPU, progress: Progress = silent
) -> list[Resources | None]:
    """Return what LLVM's model of ``cpu`` says of each instruction; None where it has no word.

    :raises McaError: if the tools are missing or do not know ``cpu``.
    """
    _require(toolchain, cpu)
    found: list[Resources | None] = [None] * len(instructions)
    stage = "Asking llvm-mca about instructions"
    for known, folder in _batches(toolchain, instructions, stage, progress):
        for index, resource in _describe(toolchain, known, cpu, folder).items():
            found[index] = resource
    return found


def disassemble(toolchain: Toolchain, blocks: Sequence[bytes]) -> list[tuple[str, ...]]:
    """Return the AT&T assembly of each block, a line an instruction; () for what is none.

    :raises McaError: if llvm-mc is missing.
    """
    _require(toolchain)
    with tempfile.TemporaryDirectory(prefix="nestor-mc-") as text:
        return [
            listing
            for start in range(0, len(blocks), _BATCH)
            for listing in _disassemble(toolchain, blocks[start : start + _BATCH], Path(text))
        ]


def assemble(toolchain: Toolchain, source: str, out: Path, *, intel: bool = False) -> None:
    """Assemble ``source`` (AT&T syntax unless ``intel``) into the ELF object ``out``.

    :raises McaError: if it is no x86-64 assembly; the text repeats what llvm-mc says.
    """
    _require(toolchain)
    given = out.with_suffix(".s")
    given.write_text((".intel_syntax noprefix\n" if intel else "") + source + "\n")
    tool = _tool(toolchain, "llvm-mc")
    done = run([tool, "-triple=x86_64", "-filetype=obj", "-o", out, given], _LIMITS)
    if not done.ok:
        raise McaError(f"This is no x86-64 assembly that llvm-mc reads ({_why(done)}).")


def _tool(toolchain: Toolchain, name: str) -> Path:
    return toolchain.prefix / "bin" / name


def _require(toolchain: Toolchain, cpu: str | None = None) -> None:
    missing = [n for n in ("llvm-mca", "llvm-mc") if not _tool(toolchain, n).exists()]
    if missing:
        raise McaError(
            f"{toolchain.prefix} lacks {' and '.join(missing)}: install the package"
            f" llvm-{toolchain.major}."
        )
    if cpu is None:
        return
    with tempfile.TemporaryDirectory(prefix="nestor-mca-") as text:
        source = Path(text) / "probe.s"
        source.write_text("nop\n")
        done = run([_tool(toolchain, "llvm-mca"), f"-mcpu={cpu}", source], _LIMITS)
    # An unknown processor is only warned of, and analysed as another one.
    if not done.ok or "not a recognized processor" in done.stderr:
        raise McaError(f"llvm-mca {toolchain.version} knows no processor '{cpu}' with a model.")


def _why(done: Outcome) -> str:
    return done.reason.rpartition("error: ")[2]


def _batches(
    toolchain: Toolchain, blocks: Sequence[bytes], stage: str, progress: Progress
) -> Iterator[tuple[Known, Path]]:
    """Yield what is known of each batch, with a folder for the files that its analysis needs."""
    with tempfile.TemporaryDirectory(prefix="nestor-mca-") as text:
        for start in range(0, len(blocks), _BATCH):
            part = range(start, min(start + _BATCH, len(blocks)))
            listings = _disassemble(toolchain, [blocks[i] for i in part], Path(text))
            known = [(i, lines) for i, lines in zip(part, listings, strict=True) if lines]
            yield known, Path(text)
            progress(stage, part.stop, len(blocks))


def _disassemble(
    toolchain: Toolchain, blocks: Sequence[bytes], folder: Path
) -> list[tuple[str, ...]]:
    """Return each block's lines, () where a byte is left over; order is kept by the markers."""
    given, out = folder / "bytes.txt", folder / "listing.s"
    given.write_text(
        "".join(
            f"[{_MARKER_BYTES}]\n[{' '.join(f'0x{byte:02x}' for byte in block)}]\n"
            for block in blocks
        )
    )
    done = run(
        [_tool(toolchain, "llvm-mc"), "--disassemble", "-triple=x86_64", given], _LIMITS, stdout=out
    )
    listing = out.read_text(errors="replace")
    if done.ok and "invalid instruction encoding" not in done.stderr:
        parts = listing.split(_MARKER + "\n")[1:]
        if len(parts) == len(blocks):
            return [_lines(part) for part in parts]
    if len(blocks) == 1:
        return [()]
    # Somewhere in this batch is a block that is no code: find it by halves.
    middle = len(blocks) // 2
    return [
        *_disassemble(toolchain, blocks[:middle], folder),
        *_disassemble(toolchain, blocks[middle:], folder),
    ]


def _lines(listing: str) -> tuple[str, ...]:
    lines = (line.strip() for line in listing.splitlines())
    return tuple(line for line in lines if line and not line.startswith("."))


def _analyse(toolchain: Toolchain, known: Known, cpu: str, folder: Path) -> dict[int, float]:
    """Return cycles per iteration by block number; a block that is refused is left out."""
    if not known:
        return {}
    out = folder / "summary.txt"
    views = ["--resource-pressure=0", "--instruction-info=0"]  # the summary is what we read
    done = _regions(toolchain, known, cpu, folder, views, out)
    if done.ok:
        return _summaries(out.read_text(errors="replace"))
    return _halves(lambda part: _analyse(toolchain, part, cpu, folder), known)


def _summaries(text: str) -> dict[int, float]:
    found: dict[int, float] = {}
    index, iterations = -1, 1.0
    for line in text.splitlines():
        head, _, value = line.partition(":")
        if "Code Region - b" in line:
            index = int(line.rpartition("- b")[2])
        elif head == "Iterations":
            iterations = float(value)
        elif head == "Total Cycles":
            found[index] = float(value) / iterations
    return found


def _describe(toolchain: Toolchain, known: Known, cpu: str, folder: Path) -> dict[int, Resources]:
    if not known:
        return {}
    out = folder / "views.json"
    done = _regions(toolchain, known, cpu, folder, ["--json"], out)
    if done.ok:
        report: dict[str, Any] = json.loads(out.read_text())
        names = report["TargetInfo"]["Resources"]
        return {int(r["Name"][1:]): _resources(r, names) for r in report["CodeRegions"]}
    return _halves(lambda part: _describe(toolchain, part, cpu, folder), known)


def _resources(region: dict[str, Any], names: Sequence[str]) -> Resources:
    info = region["InstructionInfoView"]["InstructionList"][0]
    usage: dict[str, float] = {}
    for entry in region["ResourcePressureView"]["ResourcePressureInfo"]:
        if entry["InstructionIndex"] == 0:
            name = names[entry["ResourceIndex"]]
            usage[name] = usage.get(name, 0.0) + float(entry["ResourceUsage"])
    return Resources(
        float(info["Latency"]),
        float(info["NumMicroOpcodes"]),
        bool(info["mayLoad"]),
        bool(info["mayStore"]),
        usage,
    )


def _regions(
    toolchain: Toolchain,
    known: Known,
    cpu: str,
    folder: Path,
    options: Sequence[str],
    out: Path,
) -> Outcome:
    """Run llvm-mca with a region named ``b<number>`` for every block."""
    source = folder / "regions.s"
    source.write_text(
        "".join(
            f"# LLVM-MCA-BEGIN b{index}\n" + "\n".join(lines) + "\n# LLVM-MCA-END\n"
            for index, lines in known
        )
    )
    tool = _tool(toolchain, "llvm-mca")
    return run([tool, "-mtriple=x86_64", f"-mcpu={cpu}", *options, source], _LIMITS, stdout=out)


_Found = TypeVar("_Found")


def _halves(
    analyse: Callable[[Known], dict[int, _Found]],
    known: Known,
) -> dict[int, _Found]:
    """Go on with the halves of a batch that was refused, down to the block that is to blame."""
    if len(known) == 1:
        return {}
    middle = len(known) // 2
    return analyse(known[:middle]) | analyse(known[middle:])
