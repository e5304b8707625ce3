"""Set training runs side by side: curves against cost, final sizes, intervals.

A run is a folder of ``nestor train``: ``run.json`` says what it was, ``curves.jsonl`` how it went,
``result.json`` what it cost and ``evaluation.json``, if there is one, what its policy makes of
programs (the output of ``nestor evaluate --json``). Runs that differ in the seed alone are one
*learner*; the interval of its mean is over seeds and projects.
"""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.files import read_regular, read_regular_text

EVALUATION = "evaluation.json"

_LARGEST = 1 << 30
"""Bytes of a file of curves, at most."""

_OLD_SCORE = "linked"
"""The column that is compared in evaluations that do not name it."""

_PREFERRED = ("relative_change_pct", "mean_change_pct", "change_pct")
"""Curves of a training objective, by the learners' names for it."""


class RunError(NestorError):
    """A folder that holds no run."""


@dataclass(frozen=True)
class Point:
    """How a run stood after an update."""

    compiles: int
    cpu_minutes: float
    """By the price list of the run's budget."""
    change_pct: float
    """Of the score of what was compiled for the update, against stock."""


@dataclass(frozen=True)
class Final:
    """One program under a run's policy."""

    program: str
    project: str
    stock: float
    """Its score."""
    policy: float


@dataclass(frozen=True)
class TrainingRun:
    """What the files of one run say."""

    folder: Path
    identity: Mapping[str, Any]
    curve: tuple[Point, ...]
    cost: Mapping[str, Any]
    finals: tuple[Final, ...]
    """Programs that both sides built, in the first mode; none if it was not evaluated."""
    failures: int
    """Of its evaluation."""

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.identity.get("seed", 0))


def read_run(folder: Path) -> TrainingRun:
    """Read the run in ``folder``; one that is still going is read as far as it is.

    :raises RunError: if there is none, or a file of it is broken.
    """
    if not (folder / "run.json").exists():
        raise RunError(f"{folder} holds no run: it has no run.json.")
    identity, result = _json(folder / "run.json"), _json(folder / "result.json")
    with _naming(folder / "curves.jsonl") as path:
        curve = tuple(_curve(path))
    evaluated = _json(folder / EVALUATION)
    with _naming(folder / EVALUATION):
        evaluations = evaluated.get("evaluations", [])
        programs = evaluations[0]["programs"] if evaluations else []
        score = evaluations[0].get("score", _OLD_SCORE) if evaluations else ""
        finals = tuple(
            Final(str(p["name"]), str(p["project"]), p["stock"][score], p["policy"][score])
            for p in programs
            if p["stock"] and p["policy"]
        )
        failures = len(evaluations[0]["failures"]) if evaluations else 0
    return TrainingRun(folder, identity, curve, result.get("cost", {}), finals, failures)


def _json(path: Path) -> dict[str, Any]:
    """Return what a file of a run holds, nothing if it is not there."""
    with _naming(path):
        return dict(json.loads(read_regular(path, "a part of a run"))) if path.exists() else {}


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[Path]:
    """Raise what goes wrong in the block as a :class:`RunError` that names ``path``."""
    try:
        yield path
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        what = f"{type(error).__name__}: {error}"
        raise RunError(f"{path} of a run cannot be read ({what}); remove it.") from None


def curve_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a run's file of curves, an update each; none if there is no file yet.

    A last line that is not whole is left out: it is that of a run that is going on.

    :raises NestorError: if the file is too large, or no file.
    """
    rows: list[dict[str, Any]] = []
    text = read_regular_text(path, "curves", limit=_LARGEST) if path.exists() else ""
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            break
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _curve(path: Path) -> Iterator[Point]:
    for row in curve_rows(path):
        named = [name for name in _PREFERRED if name in row]
        if named and "spent/compiles" in row:
            cost = int(row["spent/compiles"]), float(row["spent/cpu_minutes"])
            yield Point(*cost, float(row[named[0]]))


@dataclass(frozen=True)
class Learner:
    """The runs that differ in their seeds alone."""

    name: str
    """The algorithm, and what sets these settings apart from the others compared."""
    seeds: tuple[int, ...]
    compiles: float
    """Mean over the runs."""
    cpu_minutes: float | None
    """Of compilers and linkers by the price list; None if the run had none."""
    measured_minutes: float
    """Of CPU in all that the last process of each run took, preparation included."""
    overhead_pct: float
    """The part of that which was not compilers."""
    programs: int
    change_pct: float | None
    """Geometric mean over the programs all seeds built, of the mean over seeds."""
    interval: tuple[float, float] | None
    """95 %, over seeds and projects."""
    worst: tuple[str, float] | None
    """The program that grew most under any seed."""
    failures: int
    curve: tuple[Point, ...]
    """Mean over the seeds at equal cost."""


def compare(runs: Sequence[TrainingRun], points: int = 10) -> tuple[Learner, ...]:
    """Return the learners, the smallest programs first and those not evaluated last.

    :param points: of each curve.
    """
    groups: dict[str, list[TrainingRun]] = defaultdict(list)
    for run in runs:
        groups[_key(run)].append(run)
    names = _names([group[0] for group in groups.values()])
    learners = [
        _learner(name, own, points) for name, own in zip(names, groups.values(), strict=True)
    ]
    return tuple(sorted(learners, key=lambda row: (row.change_pct is None, row.change_pct or 0.0)))


def to_json(learners: Sequence[Learner]) -> list[dict[str, Any]]:
    """Return the comparison as plain data."""
    return [asdict(learner) for learner in learners]


def to_csv(learners: Sequence[Learner]) -> str:
    """Return the curves as comma-separated values, a row per point."""
    lines = ["learner,compiles,cpu_minutes,change_pct"]
    for learner in learners:
        name = '"' + learner.name.replace('"', '""') + '"'
        for p in learner.curve:
            lines.append(f"{name},{p.compiles},{p.cpu_minutes:.4f},{p.change_pct:.4f}")
    return "\n".join(lines) + "\n"


def _key(run: TrainingRun) -> str:
    """Return what the runs of one learner have in common."""
    own = {name: value for name, value in run.identity.items() if name not in ("seed", "init")}
    return json.dumps(own, sort_keys=True)


def _names(firsts: Sequence[TrainingRun]) -> list[str]:
    """Name each learner by its algorithm and by the settings in which it differs."""
    flat = [_flat(run.identity) for run in firsts]
    names = []
    for index, run in enumerate(firsts):
        same = [f for f, r in zip(flat, firsts, strict=True) if _algorithm(r) == _algorithm(run)]
        keys = [
            key
            for key in sorted({key for other in same for key in other})
            if len({json.dumps(other.get(key)) for other in same}) > 1
        ]
        said = ", ".join(f"{key}={flat[index].get(key)}" for key in keys)
        names.append(f"{_algorithm(run)} ({said})" if said else _algorithm(run))
    return names


def _algorithm(run: TrainingRun) -> str:
    return str(run.identity.get("learner", run.folder.name))


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in value.items():
        if key in ("seed", "init", "features", "learner"):
            continue
        if isinstance(inner, Mapping):
            found |= _flat(inner, "" if key == "settings" else f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = inner
    return found


def _learner(name: str, runs: Sequence[TrainingRun], points: int) -> Learner:
    ends = [run.curve[-1] for run in runs if run.curve]
    counted = [float(run.cost.get("rollouts", 0)) for run in runs]
    own, compilers = (
        sum(float(run.cost.get(part, 0.0)) for run in runs)
        for part in ("own_seconds", "compiler_seconds")
    )
    evaluated = [run for run in runs if run.finals]
    ratios, projects, programs = _ratios(evaluated)
    worst = None
    if ratios.size:
        place = np.unravel_index(int(ratios.argmax()), ratios.shape)
        worst = programs[place[1]], float(100 * (ratios[place] - 1))
    return Learner(
        name=name,
        seeds=tuple(sorted(run.seed for run in runs)),
        compiles=float(np.mean([p.compiles for p in ends])) if ends else float(np.mean(counted)),
        cpu_minutes=float(np.mean([p.cpu_minutes for p in ends])) if ends else None,
        measured_minutes=(own + compilers) / 60 / len(runs),
        overhead_pct=100 * own / (own + compilers) if own + compilers else 0.0,
        programs=len(programs),
        change_pct=_geometric(ratios) if ratios.size else None,
        interval=interval(ratios, projects) if _varies(ratios, projects) else None,
        worst=worst,
        failures=sum(run.failures for run in evaluated),
        curve=_mean_curve([run.curve for run in runs if run.curve], points),
    )


def _ratios(runs: Sequence[TrainingRun]) -> tuple[npt.NDArray[np.float64], list[str], list[str]]:
    """Return policy/stock ``[seeds, programs]`` of programs that all seeds built.

    Those of which stock's score is 0 have no ratio, and are left out.
    """
    by_run = [{f.program: f for f in run.finals if f.stock} for run in runs]
    common = sorted(set.intersection(*(set(found) for found in by_run))) if by_run else []
    ratios = np.array([[f[p].policy / f[p].stock for p in common] for f in by_run])
    projects = [by_run[0][program].project for program in common] if by_run else []
    return ratios, projects, common


def _geometric(ratios: npt.NDArray[np.float64]) -> float:
    """Return the mean over seeds of the geometric mean over programs, as a change in per cent."""
    return float(100 * (np.exp(np.log(ratios).mean(axis=1)).mean() - 1))


def _varies(ratios: npt.NDArray[np.float64], projects: Sequence[str]) -> bool:
    """Tell whether there are several seeds or projects, without which there is no interval."""
    return ratios.size > 0 and (len(ratios) > 1 or len(set(projects)) > 1)


def interval(
    ratios: npt.NDArray[np.float64],
    projects: Sequence[str],
    seed: int = 0,
    resamples: int = 2000,
) -> tuple[float, float]:
    """Return a 95 % interval of the geometric mean's change, in per cent.

    Seeds are drawn with replacement, and projects with all of their programs: the percentile
    bootstrap of two crossed factors (Owen, 2007, which errs to the wide side).

    :param ratios: policy/stock, ``[seeds, programs]``.
    :param projects: of each program.
    """
    generator = np.random.default_rng(seed)
    names = sorted(set(projects))
    members = [[i for i, p in enumerate(projects) if p == name] for name in names]
    logs = np.log(ratios)
    sums = np.stack([logs[:, rows].sum(axis=1) for rows in members], axis=1)
    counts = np.array([len(rows) for rows in members])
    drawn = np.empty(resamples)
    for i in range(resamples):
        seeds = generator.integers(len(ratios), size=len(ratios))
        chosen = generator.integers(len(names), size=len(names))
        mean = sums[seeds][:, chosen].sum(axis=1) / counts[chosen].sum()
        drawn[i] = np.exp(mean).mean() - 1
    low, high = np.percentile(100 * drawn, [2.5, 97.5])
    return float(low), float(high)


def _mean_curve(curves: Sequence[Sequence[Point]], points: int) -> tuple[Point, ...]:
    """Return the mean of curves at equal CPU time; a point is the mean since the one before."""
    if not curves:
        return ()
    end = min(curve[-1].cpu_minutes for curve in curves)
    by_compiles = end <= 0  # no prices
    if by_compiles:
        end = float(min(curve[-1].compiles for curve in curves))
    result = []
    for number in range(points):
        low, high = end * number / points, end * (number + 1) / points
        found = [
            [
                p
                for p in curve
                if low < (p.compiles if by_compiles else p.cpu_minutes) <= high + 1e-9
            ]
            for curve in curves
        ]
        if all(found):
            result.append(
                Point(
                    round(float(np.mean([own[-1].compiles for own in found]))),
                    float(np.mean([own[-1].cpu_minutes for own in found])),
                    float(np.mean([np.mean([p.change_pct for p in own]) for own in found])),
                )
            )
    return tuple(result)
