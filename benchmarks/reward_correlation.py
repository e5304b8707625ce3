"""How well static rewards predict what a program executes when its register allocation changes.

    python -m benchmarks.reward_correlation ROWS.jsonl … [--rewards static cycles] [--json FILE]

ROWS has a JSON object a line, one for each build of a program that was run: ``program``,
``variant`` (``stock`` is the build that the others are compared with), ``profile`` (whether it was
built with one), ``j`` (measured instructions + data reads + data writes), and a number for each
reward, such as ``static`` and ``cycles``.

Everything is compared as a change against the stock build of the same program, with the same
profile. Printed, with and without a profile and for each reward: Spearman's rank correlation of the
changes over all builds, the median and the worst over programs, and the share of builds whose sign
is right among those that change J by at least ``--least`` per cent; a reward that does not change
there is wrong. Intervals are 95 % bootstraps over programs.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine, record
from nestor.compiler.toolchain import find
from nestor.cost.judge.metrics import spearman
from nestor.errors import NestorError

F64 = NDArray[np.float64]

STOCK: Final = "stock"
LEAST_PCT: Final = 0.2
"""Change of J in per cent from which a sign counts."""
_FEWEST: Final = 3
"""Builds of a program from which its own correlation counts."""


@dataclass(frozen=True)
class Changes:
    """Changes of one program's builds against its stock build, in per cent; ``[builds]`` each."""

    program: str
    measured: F64
    """Of J."""
    predicted: F64
    """Of the reward."""


@dataclass(frozen=True)
class Figure:
    """A number with its 95 % interval; NaN where there is too little to tell."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """How a reward agrees with the measurement."""

    programs: int
    builds: int
    left_out: int
    """Builds without a finite reward."""
    spearman: Figure
    """Over all builds."""
    spearman_median: float
    """Over the programs."""
    spearman_worst: float
    worst_program: str
    signs: int
    """Builds that change J by enough for their sign to count."""
    right: Figure
    """Share of them with the right sign, in per cent."""


def read_rows(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the rows of files with a JSON object a line.

    :raises NestorError: if a line is something else, or two rows are of the same build.
    """
    rows, seen = [], set()
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                key = (row["program"], row["variant"], bool(row["profile"]))
                float(row["j"])
            except (ValueError, KeyError, TypeError) as error:
                raise NestorError(f"{path}, line {number} is no row ({error!r}).") from None
            if key in seen:
                raise NestorError(f"{path}, line {number} repeats the build {key}.")
            seen.add(key)
            rows.append(row)
    return rows


def changes(
    rows: Sequence[Mapping[str, Any]], reward: str, *, profile: bool
) -> tuple[list[Changes], int]:
    """Return the changes of each program, and how many builds have no finite reward.

    :raises NestorError: if a program has no stock build.
    """
    by_program: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        if bool(row["profile"]) == profile:
            by_program[row["program"]][row["variant"]] = row
    found, left_out = [], 0
    for program, builds in sorted(by_program.items()):
        stock = builds.pop(STOCK, None)
        if stock is None:
            raise NestorError(f"The program '{program}' has no row with the variant '{STOCK}'.")
        pairs = [(_change(stock, row, "j"), _change(stock, row, reward)) for row in builds.values()]
        finite = [pair for pair in pairs if all(map(math.isfinite, pair))]
        left_out += len(pairs) - len(finite)
        if finite:
            measured, predicted = np.array(finite).T
            found.append(Changes(program, measured, predicted))
    return found, left_out


def _change(stock: Mapping[str, Any], row: Mapping[str, Any], name: str) -> float:
    """Return a change in per cent; NaN where one side has no such number, or stock has 0."""
    before, after = (float(r[name]) if r.get(name) is not None else math.nan for r in (stock, row))
    return 100.0 * (after - before) / before if before else math.nan


def agreement(
    programs: Sequence[Changes],
    left_out: int = 0,
    *,
    least: float = LEAST_PCT,
    seed: int = 0,
    resamples: int = 2000,
) -> Agreement:
    """Judge a reward by the changes of each program.

    :param least: change of J in per cent from which a sign counts.
    """
    own = {
        one.program: value
        for one in programs
        if len(one.measured) >= _FEWEST
        and (value := spearman(one.predicted, one.measured)) is not None
    }
    worst = min(own, key=lambda name: own[name], default="")

    def right_signs(chosen: Sequence[Changes]) -> float:
        measured, predicted = _joined(chosen)
        counted = np.abs(measured) >= least
        same = np.sign(measured[counted]) == np.sign(predicted[counted])
        return 100.0 * float(same.mean()) if len(same) else math.nan

    return Agreement(
        len(programs),
        sum(len(one.measured) for one in programs),
        left_out,
        _figure(_spearman, programs, seed, resamples),
        float(np.median(list(own.values()))) if own else math.nan,
        own.get(worst, math.nan),
        worst,
        int(sum((np.abs(one.measured) >= least).sum() for one in programs)),
        _figure(right_signs, programs, seed, resamples),
    )


def _spearman(programs: Sequence[Changes]) -> float:
    measured, predicted = _joined(programs)
    found = spearman(predicted, measured)
    return math.nan if found is None else found


def _joined(programs: Sequence[Changes]) -> tuple[F64, F64]:
    return (
        np.concatenate([np.empty(0), *(one.measured for one in programs)]),
        np.concatenate([np.empty(0), *(one.predicted for one in programs)]),
    )


def _figure(
    statistic: Callable[[Sequence[Changes]], float],
    programs: Sequence[Changes],
    seed: int,
    resamples: int,
) -> Figure:
    """Return a statistic with its interval: whole programs are drawn with replacement."""
    value = statistic(programs)
    generator = np.random.default_rng(seed)
    drawn = [
        statistic([programs[i] for i in generator.integers(len(programs), size=len(programs))])
        for _ in range(resamples if programs else 0)
    ]
    finite = [number for number in drawn if math.isfinite(number)]
    if not finite:
        return Figure(value, math.nan, math.nan)
    low, high = np.percentile(finite, [2.5, 97.5])
    return Figure(value, float(low), float(high))


def main() -> None:
    """Read, judge and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--rewards", nargs="+", default=["static", "cycles"])
    parser.add_argument("--least", type=float, default=LEAST_PCT, help="per cent of J")
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = read_rows(arguments.rows)
    cells = []
    for profile in sorted({bool(row["profile"]) for row in rows}, reverse=True):
        for reward in arguments.rewards:
            programs, left_out = changes(rows, reward, profile=profile)
            found = agreement(
                programs, left_out,
                least=arguments.least, seed=arguments.seed, resamples=arguments.resamples,
            )  # fmt: skip
            _print(reward, profile, found, arguments.least)
            cells.append(_cells(reward, profile, found))
    if arguments.json:
        columns = [
            ("reward", "{}"), ("profile", "{}"), ("programs", "{}"), ("builds", "{}"),
            ("left out", "{}"), ("Spearman [95 %]", "{:.3f} [{:.3f}, {:.3f}]"),
            ("median of programs", "{:.3f}"), ("worst program", "{:.3f}"), ("signs", "{}"),
            ("right signs [95 %]", "{:.1f} % [{:.1f}, {:.1f}]"),
        ]  # fmt: skip
        record.write(
            arguments.json,
            "How well static rewards of register allocation predict what programs execute.",
            {"agreement": record.table(columns, cells)},
            machine.describe(find()),
        )


def _cells(reward: str, profile: bool, found: Agreement) -> list[Any]:
    rho, right = found.spearman, found.right
    return [
        reward, "yes" if profile else "no", found.programs, found.builds, found.left_out,
        [rho.value, rho.low, rho.high], found.spearman_median, found.spearman_worst,
        found.signs, [right.value, right.low, right.high],
    ]  # fmt: skip


def _print(reward: str, profile: bool, found: Agreement, least: float) -> None:
    rho, right = found.spearman, found.right
    print(
        f"{reward}, {'with' if profile else 'without'} a profile:"
        f" {found.builds} builds of {found.programs} programs, {found.left_out} left out"
    )
    print(f"  Spearman {rho.value:.3f} [{rho.low:.3f}, {rho.high:.3f}];", end=" ")
    print(
        f"by program: median {found.spearman_median:.3f}, worst {found.spearman_worst:.3f}"
        f" ({found.worst_program or 'none'})"
    )
    print(
        f"  right sign {right.value:.1f} % [{right.low:.1f}, {right.high:.1f}] of {found.signs}"
        f" builds that change J by {least:g} % or more"
    )


if __name__ == "__main__":
    main()
