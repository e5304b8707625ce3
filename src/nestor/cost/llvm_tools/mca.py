"""Static throughput analysis by ``llvm-mca``: many blocks in one process."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from nestor.compiler.process import Outcome, run
from nestor.compiler.toolchain import Toolchain
from nestor.cost.llvm_tools.machine_code import (
    LIMITS,
    LlvmToolError,
    disassemble_batches,
    require_tools,
    tool_path,
)
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder

F64 = npt.NDArray[np.float64]

CPU: Final = "znver5"
"""What the data set ``zen5`` was measured on, as LLVM names it."""

Listings = Sequence[tuple[int, tuple[str, ...]]]
"""Blocks that LLVM can disassemble: their index and their lines of assembly."""


@dataclass(frozen=True)
class Resources:
    """The entry of LLVM's scheduling model for one instruction."""

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

    :raises LlvmToolError: if the tools are missing or have no model of ``cpu``.
    """
    _require_cpu(toolchain, cpu)
    result = np.full(len(blocks), np.nan)
    for listings, folder in _batches(toolchain, blocks, "Analysing with llvm-mca", progress):
        for index, cycles in _analyse(toolchain, listings, cpu, folder).items():
            result[index] = cycles
    return result


def resources(
    toolchain: Toolchain, instructions: Sequence[bytes], cpu: str = CPU, progress: Progress = silent
) -> list[Resources | None]:
    """Return the entry of LLVM's model of ``cpu`` for each instruction; None where it has none.

    :raises LlvmToolError: if the tools are missing or have no model of ``cpu``.
    """
    _require_cpu(toolchain, cpu)
    found: list[Resources | None] = [None] * len(instructions)
    stage = "Looking up instructions in llvm-mca"
    for listings, folder in _batches(toolchain, instructions, stage, progress):
        for index, resource in _describe(toolchain, listings, cpu, folder).items():
            found[index] = resource
    return found


def _require_cpu(toolchain: Toolchain, cpu: str) -> None:
    require_tools(toolchain, "llvm-mca", "llvm-mc")
    with temporary_folder("mca") as folder:
        source = Path(folder) / "probe.s"
        source.write_text("nop\n")
        done = run([tool_path(toolchain, "llvm-mca"), f"-mcpu={cpu}", source], LIMITS)
    # An unknown processor is only warned of, and analysed as another one.
    if not done.ok or "not a recognized processor" in done.stderr:
        raise LlvmToolError(f"llvm-mca {toolchain.version} has no model of the processor '{cpu}'.")


def _batches(
    toolchain: Toolchain, blocks: Sequence[bytes], stage: str, progress: Progress
) -> Iterator[tuple[Listings, Path]]:
    """Yield the listings of each batch, with a folder for the files that its analysis needs."""
    with temporary_folder("mca") as folder:
        start = 0
        for part in disassemble_batches(toolchain, blocks):
            yield [(start + i, lines) for i, lines in enumerate(part) if lines], Path(folder)
            start += len(part)
            progress(stage, start, len(blocks))


def _analyse(toolchain: Toolchain, listings: Listings, cpu: str, folder: Path) -> dict[int, float]:
    """Return cycles per iteration by block number; a block that is refused is left out."""
    if not listings:
        return {}
    out = folder / "summary.txt"
    views = ["--resource-pressure=0", "--instruction-info=0"]  # the summary is what we read
    done = _run_regions(toolchain, listings, cpu, folder, views, out)
    if done.ok:
        return _summaries(out.read_text(encoding="utf-8", errors="replace"))
    return _by_halves(lambda part: _analyse(toolchain, part, cpu, folder), listings)


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


def _describe(
    toolchain: Toolchain, listings: Listings, cpu: str, folder: Path
) -> dict[int, Resources]:
    if not listings:
        return {}
    out = folder / "views.json"
    done = _run_regions(toolchain, listings, cpu, folder, ["--json"], out)
    if done.ok:
        report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        names = report["TargetInfo"]["Resources"]
        return {int(r["Name"][1:]): _resources(r, names) for r in report["CodeRegions"]}
    return _by_halves(lambda part: _describe(toolchain, part, cpu, folder), listings)


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


def _run_regions(
    toolchain: Toolchain,
    listings: Listings,
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
            for index, lines in listings
        )
    )
    tool = tool_path(toolchain, "llvm-mca")
    return run([tool, "-mtriple=x86_64", f"-mcpu={cpu}", *options, source], LIMITS, stdout=out)


_Found = TypeVar("_Found")


def _by_halves(
    analyse: Callable[[Listings], dict[int, _Found]], listings: Listings
) -> dict[int, _Found]:
    """Analyse the halves of a batch that was refused, down to the block that causes the refusal."""
    if len(listings) == 1:
        return {}
    middle = len(listings) // 2
    return analyse(listings[:middle]) | analyse(listings[middle:])
