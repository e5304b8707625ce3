"""Run LLVM's own benchmark of snippets, ``llvm-exegesis``, where the machine has counters."""

from dataclasses import dataclass
from pathlib import Path

from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.toolchain import Toolchain
from nestor.cost.llvm_tools.machine_code import LlvmToolError, tool_path
from nestor.temporary import temporary_folder

_LIMITS = Limits(seconds=30.0)


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
        str(tool_path(toolchain, "llvm-exegesis")),
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


def require_counters(toolchain: Toolchain) -> None:
    """Check that llvm-exegesis can count cycles on this machine.

    :raises LlvmToolError: if not.
    """
    with temporary_folder("exegesis") as folder:
        snippet, result = Path(folder) / "snippet.s", Path(folder) / "result.yaml"
        snippet.write_text("nop\n")
        words = command(toolchain, snippet, result, 100, ExegesisSettings(repeat=1))
        # Without a counter the other mode leaves its process behind, asleep.
        outcome = run([*words, "--execution-mode=inprocess"], _LIMITS)
    if not outcome.ok:
        raise LlvmToolError(failure_text(toolchain, outcome))


def failure_text(toolchain: Toolchain, outcome: Outcome) -> str:
    """Return in one sentence why llvm-exegesis failed, and the remedy."""
    program = tool_path(toolchain, "llvm-exegesis")
    if not program.exists():
        return f"There is no '{program}'; install llvm-{toolchain.major}, or use --backend rdtsc."
    if "Unable to open event" in outcome.stderr or "perf" in outcome.stderr:
        return (
            "llvm-exegesis cannot read a cycle counter on this machine (a virtual machine without"
            " one, or /proc/sys/kernel/perf_event_paranoid above 1); use --backend rdtsc."
        )
    return f"llvm-exegesis cannot measure here ({outcome.reason}); use --backend rdtsc."


def benchmark(
    toolchain: Toolchain, snippet: str, instructions: int, settings: ExegesisSettings
) -> str:
    """Return llvm-exegesis' result for a snippet as it writes it (YAML), empty if it failed."""
    with temporary_folder("exegesis") as folder:
        source, result = Path(folder) / "snippet.s", Path(folder) / "result.yaml"
        source.write_text(snippet)
        outcome = run(command(toolchain, source, result, instructions, settings), _LIMITS)
        return result.read_text(errors="replace") if outcome.ok and result.exists() else ""
