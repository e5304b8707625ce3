"""Tables of :mod:`benchmarks.sample_judgement`: distribution of the change, losers, failures."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.record import CHANGES, Table, mean_changes, table
from nestor.evaluate.statistics import mean_interval

LARGEST_SHARE_PCT: Final = 1.0
"""Programs that share more of their code with training are left out."""

_EVEN_PCT: Final = 0.05
"""A smaller change, either way, is none."""
_SIZES: Final = ((1, 1), (2, 9), (10, 49), (50, 10**9))
_QUANTILES: Final = (10, 50, 90)

Line = dict[str, Any]


def tables(lines: Sequence[Line], half: str, least_bytes: int) -> dict[str, Table]:
    """Return the tables of the packages of one half, or of both, each in rows of its own."""
    chosen = [line for line in lines if half in ("both", line["half"])]
    programs = [
        {**program, "package": line["package"], "half": line["half"]}
        for line in chosen
        for program in line["programs"]
        if program["stock"].get("gc", {}).get("linked", 0) >= least_bytes
        and (program["shared_pct"] or 0.0) <= LARGEST_SHARE_PCT
    ]
    return {
        "packages": _packages(chosen, programs),
        "change": _changes(programs, _by_language),
        "change_by_modules": _changes(programs, _by_modules),
    }


def _packages(lines: Sequence[Line], programs: Sequence[Line]) -> Table:
    """Return how many packages were built, and why the others were not."""
    rows: list[list[Any]] = []
    for language, half in sorted({(line["language"], line["half"]) for line in lines}):
        own = [line for line in lines if (line["language"], line["half"]) == (language, half)]
        built = [line for line in own if line["programs"]]
        lost = Counter(
            failure["reason"]
            for line in own
            if not line["programs"]
            for failure in line["failures"]
        )
        names = {line["package"] for line in own}
        judged = [program for program in programs if program["package"] in names]
        reasons = ", ".join(f"{reason} {count}" for reason, count in lost.most_common())
        rows.append(
            [
                f"{language}, {half}",
                len(own),
                len(built),
                len({program["package"] for program in judged}),
                len(judged),
                reasons,
            ]
        )
    titles = ("packages", "drawn", "built", "judged", "programs", "not built")
    return table([(title, "{}") for title in titles], rows)


def _by_language(program: Line) -> str:
    return f"{program['language']}, {program['half']}"


def _by_modules(program: Line) -> str:
    least, most = next(s for s in _SIZES if s[0] <= program["modules"] <= s[1])
    count = str(least) if least == most else f"{least}–{most}" if most < 10**9 else f"{least}+"
    return f"{program['language']}, {program['half']}, {count} modules"


def _changes(programs: Sequence[Line], group_of: Callable[[Line], str]) -> Table:
    """Return a row for each group, policy and mode."""
    rows: list[list[Any]] = []
    for group in sorted({group_of(program) for program in programs}):
        own = [program for program in programs if group_of(program) == group]
        policies = list(dict.fromkeys(policy for program in own for policy in program["change"]))
        for policy in policies:
            first = next(program for program in own if policy in program["change"])
            for mode in first["change"][policy]:
                rows.append([group, policy, mode, *_row(own, policy, mode)])
    columns = [
        ("programs", "{}"), ("policy", "{}"), ("mode", "{}"), ("number", "{}"),
        ("geometric mean", CHANGES), ("95 % by package", "{:+.2f} … {:+.2f} %"),
        ("10 %", "{:+.2f} %"), ("median", "{:+.2f} %"), ("90 %", "{:+.2f} %"),
        ("gain", "{:.0f} %"), ("lose", "{:.0f} %"),
        ("worst in bytes / in code, of any program", CHANGES), ("worst in bytes", "{}"),
    ]  # fmt: skip
    return table(columns, rows)


def _row(programs: Sequence[Line], policy: str, mode: str) -> list[Any]:
    done = [p for p in programs if p["change"].get(policy, {}).get(mode) is not None]
    if not done:
        return [0, *[None] * 9]
    pairs = np.array([p["change"][policy][mode] for p in done])
    linked = pairs[:, 0]
    worst = int(np.argmax(linked))
    quantiles = [round(float(np.percentile(linked, q)), 4) for q in _QUANTILES]
    return [
        len(done),
        [round(x, 4) for x in mean_changes(pairs)],
        _interval(linked, [p["package"] for p in done]),
        *quantiles,
        round(100 * float(np.mean(linked < -_EVEN_PCT)), 1),
        round(100 * float(np.mean(linked > _EVEN_PCT)), 1),
        [round(float(linked[worst]), 4), round(float(pairs[:, 1].max()), 4)],
        done[worst]["name"],
    ]


def _interval(changes: np.ndarray, packages: Sequence[str]) -> list[float]:
    """Return the 95 % interval of the geometric mean, packages drawn with replacement."""
    ends = mean_interval(packages, np.log1p(changes / 100).tolist())
    return [round(float(x), 4) for x in 100 * np.expm1(ends)]
