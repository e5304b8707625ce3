"""Build programs under stock, policies and ``nestor tune``, and note what components come to."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.optimal.graph import optimum
from benchmarks.optimal.measure import MODES, component_bytes
from benchmarks.optimal.record import Record, load, record_path
from benchmarks.pool import LINK, PROBLEM, policy_named
from nestor.build.incremental import ProgramBuild
from nestor.corpus.model import Program
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.problem import Pool
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.search.sites import ONLY
from nestor.tune.result import Tuned
from nestor.tune.search import SearchSettings
from nestor.tune.session import TuneSettings, summary_for_search, tune

POLICIES = ("default", "shipped", "distilled")


def judge_program(
    pool: Pool, program: Program, work: Path, compiles: Sequence[float], label: str
) -> Record:
    """Build ``program`` in every way that its record lacks.

    :param compiles: budgets of ``nestor tune``, ascending; each goes on from the one before.
    :param label: what the search is called in the record.
    """
    path = record_path(work, program.name)
    record = load(path)
    summary = summary_for_search(pool, LINK, program, MODES[0])
    for name in POLICIES:
        if _lacks(record, name):
            build = _build(pool, program, policy_named(name), summary, {})
            _note(record, name, build, path)
    if _lacks(record, "optimum"):
        _note(record, "optimum", _build(pool, program, DEFAULT, None, _optimal(record)), path)
    for budget in compiles:
        name = f"{label} {budget:g}"
        if _lacks(record, name):
            folder = work / "tuned" / label / program.name
            found = _tune(pool, program, summary, budget, folder)
            _note(record, name, found.best, path)
    return record


def _lacks(record: Record, name: str) -> bool:
    return any(name not in part.measured for part in record.parts)


def _note(record: Record, name: str, build: ProgramBuild, path: Path) -> None:
    for part in record.parts:
        part.measured[name] = component_bytes(build, part.graph)
    record.save(path)


def _build(
    pool: Pool,
    program: Program,
    policy: NamedPolicy,
    summary: str | None,
    overrides: dict[Key, bool],
) -> ProgramBuild:
    builder = LINK.incremental(pool, program, policy, MODES, summary)
    try:
        return builder.build(overrides)
    finally:
        builder.close()


def _optimal(record: Record) -> dict[Key, bool]:
    """Return the overrides of every component's optimum in the first mode, all at once."""
    found: dict[Key, bool] = {}
    for part in record.parts:
        values = {cluster: own[MODES[0]] for cluster, own in part.values.items()}
        best, _ = optimum(part.graph, values)
        found |= {Key("callee", callee): False for _, callee in part.graph.sites}
        found |= {Key(ONLY, part.keys[number]): True for number in best}
    return found


def _tune(
    pool: Pool, program: Program, summary: str | None, compiles: float, folder: Path
) -> Tuned:
    """Search as ``nestor tune`` does where no policy is named."""
    policies = PROBLEM.moves().policies
    return tune(
        pool,
        LINK,
        program,
        DEFAULT,
        TuneSettings(MODES[:1], sweep=False, policies=policies),
        SearchSettings(compiles=compiles),
        0,
        folder,
        summary=summary,
    )
