"""Run LLVM's own benchmark of snippets, ``llvm-exegesis``, where the machine has counters."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError

_LIMITS = Limits(seconds=30.0)


class ExegesisError(NestorError):
    """llvm-exegesis cannot measure here; the text says what to use instead."""


@dataclass(frozen=True)
class ExegesisSettings:
    """How llvm-exegesis measures."""

    repeat: int = 30
    """Readings of the counter, of which the smallest is taken."""
    core: int | None = None
    """The CPU to run on."""


def command(
    toolchain: Toolchain,
    snippet: Path,
    result: Path,
    instructions: int,
    settings: ExegesisSettings,
) -> list[str]:
    """Return the command that measures the assembly file ``snippet``.

    :param instructions: to unroll the snippet to; half of them are subtracted again.
    """
    words = [
        str(toolchain.prefix / "bin" / "llvm-exegesis"),
        "--mode=inverse_throughput",
        "--execution-mode=subprocess",  # the one that maps pages where the snippet wants them
        "--repetition-mode=middle-half-duplicate",  # the difference of two unrolled pieces
        "--result-aggregation-mode=min",
        f"--benchmark-repeat-count={settings.repeat}",
        f"--min-instructions={instructions}",
        f"--snippets-file={snippet}",
        f"--benchmarks-file={result}",
    ]
    if settings.core is not None:
        words.append(f"--benchmark-process-cpu={settings.core}")
    return words


def require(toolchain: Toolchain) -> None:
    """Check that llvm-exegesis can count cycles here.

    :raises ExegesisError: if not.
    """
    with tempfile.TemporaryDirectory(prefix="nestor-exegesis-") as folder:
        given, result = Path(folder) / "snippet.s", Path(folder) / "result.yaml"
        given.write_text("nop\n")
        words = command(toolchain, given, result, 100, ExegesisSettings(repeat=1))
        # Without a counter the other mode leaves its process behind, asleep.
        outcome = run([*words, "--execution-mode=inprocess"], _LIMITS)
    if not outcome.ok:
        raise ExegesisError(problem(toolchain, outcome))


def problem(toolchain: Toolchain, outcome: Outcome) -> str:
    """Return in one sentence why llvm-exegesis failed, and the remedy."""
    program = toolchain.prefix / "bin" / "llvm-exegesis"
    if not program.exists():
        return f"There is no '{program}'; install llvm-{toolchain.major}, or use --backend rdtsc."
    said = outcome.stderr
    if "Unable to open event" in said or "perf" in said:
        return (
            "llvm-exegesis cannot read a cycle counter on this machine (a virtual machine without"
            " one, or /proc/sys/kernel/perf_event_paranoid above 1); use --backend rdtsc."
        )
    return f"llvm-exegesis cannot measure here ({outcome.reason}); use --backend rdtsc."


def benchmark(
    toolchain: Toolchain, snippet: str, instructions: int, settings: ExegesisSettings
) -> str:
    """Return llvm-exegesis' result for a snippet as it writes it (YAML), empty if it failed."""
    with tempfile.TemporaryDirectory(prefix="nestor-exegesis-") as folder:
        given, result = Path(folder) / "snippet.s", Path(folder) / "result.yaml"
        given.write_text(snippet)
        outcome = run(command(toolchain, given, result, instructions, settings), _LIMITS)
        return result.read_text(errors="replace") if outcome.ok and result.exists() else ""


def disassemble(toolchain: Toolchain, block: bytes) -> str:
    """Return a block as assembly that LLVM reads again; empty if it cannot."""
    with tempfile.TemporaryDirectory(prefix="nestor-exegesis-") as folder:
        given, text = Path(folder) / "block.hex", Path(folder) / "block.s"
        given.write_text(" ".join(f"0x{byte:02x}" for byte in block))
        program = toolchain.prefix / "bin" / "llvm-mc"
        words = [str(program), "--disassemble", "--triple=x86_64", f"-o={text}", str(given)]
        if not run(words, _LIMITS).ok:
            return ""
        lines = text.read_text().splitlines()
    return "".join(f"{line}\n" for line in lines if not line.strip().startswith("."))
