"""Back end ``exegesis``: llvm-exegesis, where the machine has a cycle counter.

Our harness runs first. It is the gate for hostile blocks, which llvm-exegesis does not withstand,
and says which pages a block touches, which llvm-exegesis must map. Registers and pages get
the same values in both, and the code is unrolled as far. What differs: llvm-exegesis sets
registers once, not in each repetition, and does not flush denormals.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nestor.compiler.toolchain import Toolchain
from nestor.cost.llvm_tools.exegesis import ExegesisSettings, benchmark
from nestor.cost.llvm_tools.machine_code import disassemble
from nestor.cost.measure.harness import OK, HarnessSettings, readings, warm_up
from nestor.cost.measure.label import Measurement, summary
from nestor.cost.measure.screen import screen
from nestor.cost.start_state import (
    FIRST_REGISTER,
    PAGE_FILLING,
    REGISTER_STEP,
    STACK_POINTER,
)
from nestor.progress import Progress

_REGISTERS: Final = (
    *("RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI"),
    *(f"R{number}" for number in range(8, 16)),
)
_UNROLLED_BYTES: Final = 4000
_UNROLL: Final = (8, 200)

_VALUE: Final = re.compile(
    r"^\s*- \{ *key: inverse_throughput,.*?\bper_snippet_value: ([0-9.eE+-]+)", re.MULTILINE
)
_ERROR: Final = re.compile(r"^error: +(.*)$", re.MULTILINE)


def snippet(assembly: Sequence[str], pages: Sequence[int]) -> str:
    """Return the input of llvm-exegesis: assembly with the state that it is to run in.

    :param assembly: lines in AT&T syntax.
    :param pages: addresses of the pages that it touches.
    """
    lines = []
    for number, name in enumerate(_REGISTERS):
        value = STACK_POINTER if name == "RSP" else FIRST_REGISTER + number * REGISTER_STEP
        lines.append(f"# LLVM-EXEGESIS-DEFREG {name} {value:x}")
    lines += [f"# LLVM-EXEGESIS-DEFREG XMM{number} 0" for number in range(16)]
    for number, address in enumerate(pages):
        # One digit is four bits: sixteen make the value a quadword that is repeated.
        lines.append(f"# LLVM-EXEGESIS-MEM-DEF page{number} 4096 {PAGE_FILLING:016x}")
        lines.append(f"# LLVM-EXEGESIS-MEM-MAP page{number} {address}")
    return "".join(f"{line}\n" for line in (*lines, *assembly))


def cycles(result: str) -> float | None:
    """Return the cycles per iteration in a result of llvm-exegesis; None if it has an error."""
    error = _ERROR.search(result)
    value = _VALUE.search(result)
    if value is None or error is None or error[1].strip() not in ("", "''", '""'):
        return None
    try:
        number = float(value[1])
    except ValueError:
        return None
    return number if number > 0 else None


@dataclass(frozen=True)
class Exegesis:
    """One process of llvm-exegesis for each pass of each block."""

    toolchain: Toolchain
    harness: Path
    passes: int = 3
    settings: ExegesisSettings = field(default_factory=ExegesisSettings)

    @property
    def name(self) -> str:
        """``exegesis``."""
        return "exegesis"

    def measure(self, blocks: Sequence[bytes], progress: Progress) -> list[Measurement]:
        """Return one row for each block, in order.

        :raises HarnessError: if the harness cannot run.
        """
        screened = [screen(block) for block in blocks]
        sound = [block for block, (status, _) in zip(blocks, screened, strict=True) if not status]
        once = HarnessSettings(rounds=1, runs=1, core=self.settings.core)
        warm_up(self.harness, once)
        gate = dict(zip(sound, readings(self.harness, sound, once), strict=True))
        rows = []
        for index, (block, (status, count)) in enumerate(zip(blocks, screened, strict=True)):
            progress("Measuring a batch", index, len(blocks))
            status = status or ("" if gate[block].status == OK else gate[block].status)
            pages = () if status else gate[block].pages
            rows.append(
                Measurement(block, status, instructions=count)
                if status
                else self._one(block, count, pages)
            )
        return rows

    def _one(self, block: bytes, instructions: int, pages: Sequence[int]) -> Measurement:
        (lines,) = disassemble(self.toolchain, [block])
        text = snippet(lines, pages)
        low, high = _UNROLL
        unroll = min(max(_UNROLLED_BYTES // len(block), low), high)
        found = [
            cycles(benchmark(self.toolchain, text, instructions * unroll, self.settings))
            for _ in range(self.passes)
        ]
        return summary(block, instructions, [v for v in found if v is not None], len(pages))
