"""Time builds of one program against each other: interleaved, pinned, with stock against itself.

Every round runs stock, a second copy of stock (the *null*) and the others once, in an order that
changes from round to round, so that whatever else the machine does reaches all of them. What the
null differs by is what this machine cannot tell apart.
"""

import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from nestor.compiler.process import Limits
from nestor.corpus.model import Corpus, Program
from nestor.errors import NestorError
from nestor.progress import Progress, silent
from nestor.workload.running import run_program

Clock = Literal["wall", "cpu"]
STOCK: Final = "stock"
NULL: Final = "stock again"
_RESAMPLES: Final = 2000
_LIMITS: Final = Limits(seconds=300.0, memory_mib=16384)


class TimingError(NestorError):
    """A program that cannot be timed; the text says why."""


@dataclass(frozen=True)
class Effect:
    """How much slower one build is than stock, in per cent; negative is faster."""

    of_minima: float
    of_medians: float
    low: float
    high: float
    """The 95 % bootstrap interval of the change of the medians, over rounds."""


@dataclass(frozen=True)
class Timing:
    """The times of one program's builds."""

    program: str
    clock: Clock
    seconds: Mapping[str, tuple[float, ...]]
    """Seconds of each round by build; all have the same number of rounds."""

    def effect(self, build: str) -> Effect:
        """Compare one build with stock."""
        stock = np.asarray(self.seconds[STOCK])
        other = np.asarray(self.seconds[build])
        generator = np.random.default_rng(0)
        drawn = generator.integers(len(stock), size=(_RESAMPLES, len(stock)))
        changes = _change(np.median(stock[drawn], axis=1), np.median(other[drawn], axis=1))
        low, high = np.percentile(changes, [2.5, 97.5])
        return Effect(
            float(_change(stock.min(), other.min())),
            float(_change(np.median(stock), np.median(other))),
            float(low),
            float(high),
        )

    def is_resolved(self, build: str) -> bool:
        """Tell whether a build differs from stock by more than stock does from itself.

        Its interval excludes zero, and the change exceeds all of the null's interval.
        """
        effect, null = self.effect(build), self.effect(NULL)
        spread = max(abs(null.low), abs(null.high))
        return effect.low * effect.high > 0 and abs(effect.of_medians) > spread


def time_ab(
    corpus: Corpus,
    program: Program,
    builds: Mapping[str, Path],
    words: Sequence[str],
    *,
    rounds: int = 15,
    core: int = 0,
    clock: Clock = "wall",
    seed: int = 0,
    progress: Progress = silent,
) -> Timing:
    """Time ``builds`` (``stock`` among them) of ``program`` with the arguments ``words``.

    :param rounds: runs of each build; one more before them warms the machine up and is not counted.
    :param core: the processor that all runs are pinned to.
    :param seed: draws the order within each round.
    :raises TimingError: if taskset is absent, ``stock`` is not among the builds, or a run fails.
    """
    taskset = shutil.which("taskset")
    if taskset is None:
        raise TimingError("taskset is not installed; install util-linux.")
    if STOCK not in builds:
        raise TimingError(f"{program.name}: there is no build '{STOCK}' to compare with.")
    sides = {**builds, NULL: builds[STOCK]}
    draw = random.Random(seed)  # noqa: S311  no secret
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds + 1):
        progress(f"time {program.name}", turn, rounds + 1)
        order = sorted(sides)
        draw.shuffle(order)
        for name in order:
            run = run_program(
                corpus, program, sides[name], words, _LIMITS, under=(taskset, "-c", str(core))
            )
            if run is None or not run.outcome.ok:
                reason = run.outcome.reason if run is not None else "no run of this kind"
                raise TimingError(f"{program.name} ({name}): {reason}")
            outcome = run.outcome
            if turn:
                seconds[name].append(
                    outcome.wall_seconds if clock == "wall" else outcome.cpu_seconds
                )
    progress(f"time {program.name}", rounds + 1, rounds + 1)
    return Timing(program.name, clock, {name: tuple(times) for name, times in seconds.items()})


def _change(
    before: npt.NDArray[np.float64] | np.floating, after: npt.NDArray[np.float64] | np.floating
) -> npt.NDArray[np.float64] | np.floating:
    return 100.0 * (after - before) / before
