"""Measured cycles of whole runs: CPU time by the calibrated clock, the minimum of many runs.

A run is dropped if the core's clock differs before and after it. All programs run in turn, so that
what disturbs the machine disturbs all of them, and the first of them runs once more as the *null*:
what two measurements of the same differ by.

The sum of a run's user and system time is exact; many kernels divide it by what ran at each of a
few hundred ticks a second. So a run's own share of the kernel is noise, of which a minimum would
choose the luckiest, and that of all runs together is taken off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.program_cost.machine import MachineError, measured_lines

_SAME_CLOCK: Final = 0.004
"""Relative difference of the clock before and after a run."""
_BATCH: Final = 3
"""Runs of one program before the next one's turn."""


@dataclass(frozen=True)
class Command:
    """A program to run."""

    program: Path
    arguments: tuple[str, ...] = ()
    stdin: Path | None = None
    folder: Path | None = None
    """Where it runs; None: the present folder."""


@dataclass(frozen=True)
class Cycles:
    """Cycles of a program's runs."""

    minimum: float
    """User cycles of the shortest run: all its cycles, less the kernel's share of all runs."""
    median: float
    runs: int
    """Runs with a steady clock, of which the minimum is; 0: none was, and it is of all."""
    dropped: int
    system_share: float
    """Of CPU time that the kernel had: above a few per cent, the minimum is not the program's."""
    status: int
    """How the last run ended."""


def measure(
    commands: Sequence[Command], rounds: int, core: int | None = None, seconds: float = 600.0
) -> list[Cycles]:
    """Return the cycles of each command, and last those of the first one again: the null.

    :param rounds: of three runs each.
    :raises MachineError: if one cannot be run.
    """
    everything = [*commands, commands[0]]
    samples: list[list[tuple[float, float, float, float, int]]] = [[] for _ in everything]
    hertz = 0.0
    for number in range(rounds):
        order = range(len(everything)) if number % 2 == 0 else reversed(range(len(everything)))
        for index in order:
            command = everything[index]
            words = ["runs", str(_BATCH), str(command.program.absolute()), *command.arguments]
            lines = measured_lines(
                words, core=core, seconds=seconds, stdin=command.stdin, folder=command.folder
            )
            hertz = hertz or float(lines[0][1])
            for _, user, system, before, after, status in (x for x in lines if x[:1] == ["run"]):
                samples[index].append(
                    (float(user), float(system), float(before), float(after), int(status))
                )
    return [_cycles(own, hertz, command) for own, command in zip(samples, everything, strict=True)]


def _cycles(
    samples: list[tuple[float, float, float, float, int]], hertz: float, command: Command
) -> Cycles:
    if any(status < 0 or status in (126, 127) for *_, status in samples):
        raise MachineError(f"'{command.program}' crashes or cannot be run; run it by itself.")
    steady = [one for one in samples if abs(one[2] / one[3] - 1) < _SAME_CLOCK]
    used = steady or samples
    cycles = sorted(
        (user + system) * hertz * (before + after) / 2 for user, system, before, after, _ in used
    )
    user, system = sum(one[0] for one in samples), sum(one[1] for one in samples)
    share = system / max(user + system, 1e-9)
    return Cycles(
        cycles[0] * (1 - share),
        cycles[len(cycles) // 2] * (1 - share),
        len(steady),
        len(samples) - len(steady),
        share,
        samples[-1][-1],
    )
