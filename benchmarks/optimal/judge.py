"""Build programs under stock, policies and ``nestor tune``, and note what components come to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.optimal.graph import optimum
from benchmarks.optimal.measure import MODES, component_bytes
from benchmarks.optimal.record import Record, load, record_path
from benchmarks.optimal.remainder import Remainder, remainder
from benchmarks.pool import LINK, build_program
from nestor.build.incremental import ProgramBuild
from nestor.cli.setup import usual_policy
from nestor.corpus.model import Program
from nestor.policy.names import DEFAULT, named_policy
from nestor.problem.problem import Pool
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import ONLY
from nestor.progress import Progress, silent
from nestor.tune.moves import moves_of
from nestor.tune.result import Tuned
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, summary_for_search, tune

POLICIES: Final = {
    "-Oz": {"packaged policy": "shipped", "packaged policy with a summary": "distilled"},
    "-Os": {"packaged policy": "shipped-os", "packaged policy with a summary": "shipped-os"},
}
"""By level, and by the names under which they are shown."""


def judge_program(
    pool: Pool, program: Program, work: Path, compiles: Sequence[float], mode: str
) -> Record:
    """Build ``program`` in every way that its record lacks.

    :param compiles: budgets of ``nestor tune``, ascending; each goes on from the one before.
    :param mode: the link mode for which is searched.
    """
    path = record_path(work, program.name)
    record = load(path)
    if not record.parts:
        return record
    summary = summary_for_search(pool, LINK, program, MODES[0])
    problem = pool.problem
    if _lacks(record, "default"):
        _note(record, "default", build_program(pool, program, DEFAULT, MODES, None, {}), path)
    for name, policy in POLICIES[pool.corpus.level].items():
        if _lacks(record, name):
            own = summary if name.endswith("summary") else None
            named = named_policy(policy, problem.builtins)
            _note(record, name, build_program(pool, program, named, MODES, own, {}), path)
    if _lacks(record, "optimum"):
        build = build_program(pool, program, DEFAULT, MODES, None, _optimal(record))
        _note(record, "optimum", build, path)
    for budget in compiles:
        name = f"tune for {mode}, {budget:g}"
        if _lacks(record, name):
            folder = work / "tuned" / mode / program.name
            own = summary_for_search(pool, LINK, program, mode)
            found = tune_program(pool, program, own, budget, mode, folder)
            _note(record, name, found.best, path)
    return record


def _lacks(record: Record, name: str) -> bool:
    return any(name not in part.measured for part in record.parts)


def _note(record: Record, name: str, build: ProgramBuild, path: Path) -> None:
    for part in record.parts:
        part.measured[name] = component_bytes(build, part.graph)
    record.save(path)


def _optimal(record: Record) -> dict[Key, bool]:
    """Return the overrides of every component's optimum in the first mode, all at once."""
    found: dict[Key, bool] = {}
    for part in record.parts:
        values = {cluster: own[MODES[0]] for cluster, own in part.values.items()}
        best, _ = optimum(part.graph, values)
        found |= {Key("callee", callee): False for _, callee in part.graph.sites}
        found |= {Key(ONLY, part.keys[number]): True for number in best}
    return found


def tune_program(
    pool: Pool, program: Program, summary: str | None, compiles: float, mode: str, folder: Path
) -> Tuned:
    """Search as ``nestor tune`` does where no policy is named."""
    problem = pool.problem
    start = named_policy(usual_policy(problem), problem.builtins)
    settings = TuneSettings((mode,), policies=moves_of(problem).policies)
    budget = SearchSettings(compiles=compiles)
    return tune(pool, LINK, program, start, settings, budget, 0, folder, summary=summary)


def search_and_remainder(
    pool: Pool, program: Program, work: Path, compiles: float, progress: Progress = silent
) -> tuple[Tuned, Remainder]:
    """Search for ``program`` until nothing is left to try, and measure what flips still save.

    :param compiles: of the search, at most.
    """
    mode = MODES[0]
    summary = summary_for_search(pool, LINK, program, mode)
    found = tune_program(pool, program, summary, compiles, mode, work / "tuned" / program.name)
    builder = LINK.incremental(pool, program, found.policy, [mode], found.summary)
    try:
        return found, remainder(builder, found.best.overrides, progress)
    finally:
        builder.close()
