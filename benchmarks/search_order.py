"""Make the trees that order the moves of a search, and say what their order is worth.

    python -m benchmarks.search_order record CORPUS WORK [PROJECT…] [--problem NAME] [--compiles 25]
    python -m benchmarks.search_order fit WORK [--problem NAME] [--out FILE] [--json FILE]

``record`` searches the largest program of each training project as ``nestor tune`` does without the
trees, and keeps for each move that was tried alone what was known of it and what it changed
(WORK/PROJECT.npz; what is there is not searched again). ``fit`` fits the trees to all of them, and
for the table to all projects but one, whose moves it puts in order.
"""

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import record as results
from benchmarks.machine import describe
from nestor.build.build import builds_of
from nestor.build.incremental import ProgramBuild
from nestor.cli.setup import ready_plugin, usual_policy
from nestor.compiler import toolchain
from nestor.corpus import store
from nestor.corpus.model import Corpus
from nestor.files import write_atomically
from nestor.learn.programs import largest_programs
from nestor.policy.bundle import save
from nestor.policy.spec import F64
from nestor.policy.trees import TreesPolicy
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.progress import silent
from nestor.rollout.local_pool import LocalPool
from nestor.tune.improvement import ExpectedImprovement
from nestor.tune.moves import Evidence, MoveSource, moves_of
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, summary_for_search, tune
from nestor.tune.state import Tried
from nestor.tune.steps.findings import Trial

PARTS: Final = (0.1, 0.25, 0.5)
"""Parts of a program's moves, the first in some order, whose savings are shown."""


@dataclass
class Recorder:
    """Keeps the features of moves that were tried alone, and what they changed."""

    moves: MoveSource
    part: float | None
    """What of the program's score is a unit; None: it is in units."""
    features: list[F64] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    units: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    _tried: dict[int, Tried] = field(default_factory=dict)

    def observe(self, build: ProgramBuild, evidence: Evidence, trials: Sequence[Trial]) -> None:
        """Add the ``trials`` of a build."""
        candidates = [trial.candidate for trial in trials]
        reach = self.moves.reach(build.trajectories)
        self.features.append(
            self.moves.features(build.trajectories, candidates, reach, evidence, self._tried)
        )
        (mode,) = build.columns
        self.changes += [trial.change[mode] for trial in trials]
        self.units += [1.0 if self.part is None else self.part * build.total] * len(trials)
        self.distances += [candidate.distance for candidate in candidates]
        for trial in trials:
            found = Tried(trial.candidate.context, 1, trial.change[mode])
            self._tried[trial.move.identity] = found


@dataclass(frozen=True)
class Moves:
    """The recorded moves of one program."""

    features: F64
    changes: F64
    distances: F64
    units: F64
    """What of the score was a unit."""


def record(
    problem: Problem, corpus: Corpus, work: Path, projects: Sequence[str], compiles: float
) -> None:
    """Search one program of each project, and keep its moves in ``work``."""
    train = {name for name, split in corpus.splits.items() if split == "train"}
    wanted = train & set(projects) if projects else train
    policy = problem.policy(usual_policy(problem))
    build = next(iter(builds_of(problem).values()))
    mode = build.modes[0]
    settings = TuneSettings((mode,), policies=moves_of(problem).policies)
    budget = SearchSettings(compiles=compiles, learned=False)
    with LocalPool(problem, corpus, ready_plugin(problem, None, silent)) as pool:
        for program in largest_programs(corpus.programs):
            path = work / f"{program.project}.npz"
            if program.project not in wanted or path.exists():
                continue
            summary = summary_for_search(pool, build, program, mode)
            recorder = Recorder(moves_of(problem, summary), problem.report.unit_part)
            folder = work / "tuned" / program.project
            tune(
                pool, build, program, policy, settings, budget, 0, folder,
                summary=summary, observe=recorder.observe,
            )  # fmt: skip
            content = io.BytesIO()
            np.savez_compressed(
                content,
                features=np.concatenate(recorder.features),
                changes=np.array(recorder.changes),
                distances=np.array(recorder.distances),
                units=np.array(recorder.units),
            )
            write_atomically(path, content.getvalue())
            print(f"{program.name}: {len(recorder.changes)} moves", flush=True)


def fitted(improvement: ExpectedImprovement, programs: Mapping[str, Moves]) -> TreesPolicy:
    """Return trees from the moves of ``programs``, of which large ones do not decide alone."""
    provenance = {"projects": sorted(programs), "moves": _count(programs)}
    own = list(programs.values())
    weight = np.concatenate([np.full(len(p.changes), len(p.changes) ** -0.5) for p in own])
    features = np.concatenate([p.features for p in own])
    saved = np.concatenate([improvement.saved(p.changes, p.units) for p in own])
    return improvement.fit(features, saved, weight / weight.mean(), provenance)


def savings_of_first(order: F64, saved: F64) -> list[float]:
    """Return the part of all savings, in per cent, of the first moves by ``order``, least first."""
    ordered = saved[np.argsort(order, kind="stable")]
    total = saved.sum() or 1.0
    return [100 * ordered[: int(part * len(saved))].sum() / total for part in PARTS]


def rows(improvement: ExpectedImprovement, programs: Mapping[str, Moves]) -> list[list[object]]:
    """Return what orders are worth on each project, the trees fitted to the others."""
    found: list[list[object]] = []
    numbers: list[list[float]] = []
    for name, own in programs.items():
        others = {other: moves for other, moves in programs.items() if other != name}
        trees = fitted(improvement, others)
        saved = improvement.saved(own.changes, own.units)
        learned = savings_of_first(-improvement.of(own.features, trees), saved)
        by_distance = savings_of_first(own.distances, saved)
        paying = 100 * float(np.mean(own.changes < 0))
        numbers.append([paying, *by_distance, *learned])
        found.append([name, len(own.changes), *numbers[-1]])
    means = np.mean(numbers, axis=0).tolist()
    return [*found, ["**mean**", _count(programs), *means]]


def _count(programs: Mapping[str, Moves]) -> int:
    return sum(len(program.changes) for program in programs.values())


def table(improvement: ExpectedImprovement, programs: Mapping[str, Moves]) -> results.Table:
    """Return the result table."""
    shown = [f"{100 * part:.0f} %" for part in PARTS]
    columns = [("project", "{}"), ("moves", "{:,}"), ("that save", "{:.1f} %")]
    columns += [(f"by distance, {part}", "{:.0f} %") for part in shown]
    columns += [(f"learned, {part}", "{:.0f} %") for part in shown]
    return results.table(columns, rows(improvement, programs))


def main() -> int:
    """Record, or fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="search training programs")
    recording.add_argument("corpus", type=Path)
    recording.add_argument("work", type=Path)
    recording.add_argument("project", nargs="*", help="default: all training projects")
    recording.add_argument("--compiles", type=float, default=25.0)
    recording.add_argument("--problem", default="inlining-size")
    fitting = commands.add_parser("fit", help="fit the trees")
    fitting.add_argument("work", type=Path)
    fitting.add_argument("--problem", default="inlining-size")
    fitting.add_argument("--out", type=Path, metavar="FILE", help="write the trees")
    fitting.add_argument("--json", type=Path, metavar="FILE", help="write the result file too")
    options = parser.parse_args()
    problem = find_problem(options.problem)
    if options.command == "record":
        record(problem, store.load(options.corpus), options.work, options.project, options.compiles)
        return 0
    programs = {}
    for path in sorted(options.work.glob("*.npz")):
        with np.load(path, allow_pickle=False) as kept:
            programs[path.stem] = Moves(**kept)
    improvement = moves_of(problem).improvement
    if improvement is None:
        sys.exit(f"Of the moves of {problem.name} nothing can be learned.")
    tables = {"orders": table(improvement, programs)}
    results.show(tables)
    if options.out:
        save(fitted(improvement, programs), options.out)
    if options.json:
        part = problem.report.unit_part
        most = f"{improvement.most:g} {problem.report.unit}"
        if part is not None:
            most = f"{100 * part * improvement.most:g} % of the score"
        about = (
            "Of what all recorded moves of a program save, the part that the first moves in an"
            " order have: by distance, as searches went without the trees, and by trees that have"
            f" not seen the project. A move's saving counts up to {most}."
        )
        results.write(options.json, about, tables, describe(toolchain.find()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
