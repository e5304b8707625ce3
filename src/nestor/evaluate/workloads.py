"""What programs execute under policies: their workloads measured, against stock.

Every program is built stock and under each policy, run on its workload under callgrind, and must
leave what the stock build leaves. Failures are results: counted, named and never dropped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nestor.build.build import Binary, Job, find_build
from nestor.change import change_pct
from nestor.corpus.model import Corpus, CorpusError, Program
from nestor.errors import NestorError
from nestor.evaluate.provenance import digests
from nestor.evaluate.result import Failure
from nestor.evaluate.statistics import mean_interval
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.workload.counts import RUN_COLUMNS, J
from nestor.workload.kept import Repeated, measure_kept


@dataclass(frozen=True)
class WorkloadResult:
    """One program's workload under both compilers; a side that failed is None."""

    name: str
    project: str
    language: str
    style: str
    split: str
    stock: Mapping[str, float] | None
    """By column: :data:`RUN_COLUMNS`, and those of the build (:class:`Binary`), which are prefixed
    ``static_`` where a run counts something of the same name."""
    policy: Mapping[str, float] | None
    noise_pct: float | None
    """How far two measurements of the stock build are apart."""

    def change_pct(self, column: str = J) -> float | None:
        """Return the change of a column in per cent; None if a side failed or lacks it."""
        if self.stock is None or self.policy is None:
            return None
        if column not in self.stock or column not in self.policy:
            return None
        return change_pct(self.stock[column], self.policy[column])

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        changes = {c: self.change_pct(c) for c in self.stock or {}}
        return {**asdict(self), "change_pct": changes}


@dataclass(frozen=True)
class WorkloadEvaluation:
    """One policy against stock on the workloads of some programs."""

    problem: str
    policy: str
    programs: tuple[WorkloadResult, ...]
    """Worst first; failed programs before all."""
    failures: tuple[Failure, ...]
    hashes: Mapping[str, str | None]

    def changes(self) -> dict[str, float]:
        """Return the change of J in per cent by program, of those that both sides ran."""
        found = ((p.name, p.change_pct()) for p in self.programs)
        return {name: change for name, change in found if change is not None}

    def total(self) -> dict[str, Any]:
        """Return mean, median, worst and best change of J, with the mean's interval by project.

        There is no interval where all programs are of one project.
        """
        changes = self.changes()
        if not changes:
            return {"programs": 0}
        ordered = sorted(changes.values())
        middle = len(ordered) // 2
        median = (ordered[middle] + ordered[~middle]) / 2
        projects = [p.project for p in self.programs if p.name in changes]
        values = [changes[p.name] for p in self.programs if p.name in changes]
        return {
            "programs": len(ordered),
            "mean_pct": sum(ordered) / len(ordered),
            "ci95": list(mean_interval(projects, values)) if len(set(projects)) > 1 else None,
            "median_pct": median,
            "worst_pct": ordered[-1],
            "best_pct": ordered[0],
        }

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data (docs/reference/formats.md)."""
        return {
            "problem": self.problem,
            "policy": self.policy,
            "programs": [p.to_json() for p in self.programs],
            "total": self.total(),
            "failures": [asdict(f) for f in self.failures],
            "hashes": dict(self.hashes),
        }


def require_workloads(
    corpus: Corpus, programs: Sequence[Program], *, profile: bool = False
) -> tuple[Program, ...]:
    """Return those of ``programs`` that have a workload.

    :param profile: those whose workload has a profile run.
    :raises CorpusError: if none has one.
    """
    having = [program for program in programs if program.workload is not None]
    found = tuple(p for p in having if not profile or (p.workload and p.workload.profile))
    if not found:
        raise CorpusError(
            f"No program of the corpus {corpus.root} that was chosen has a"
            f" {'profile run' if profile else 'workload'}; 'nestor corpus capture --runs FILE'"
            " gives programs of your own theirs, and 'nestor corpus fetch speed DIR' makes a corpus"
            " of programs that have one."
        )
    return found


def measure_workloads(
    pool: Pool,
    programs: Sequence[Program],
    policies: Sequence[NamedPolicy],
    folder: Path,
    *,
    also: Sequence[NamedPolicy] = (),
    overrides: str | None = None,
    build: str | None = None,
    progress: Progress = silent,
) -> tuple[WorkloadEvaluation, ...]:
    """Build ``programs`` stock and under each policy, measure them, and compare.

    :param folder: takes the measurements, from which an interrupted evaluation goes on.
    :param also: policies about other decisions, one for each, in the compiles under each policy.
    :param overrides: the text of a file of answers that stand above every policy's.
    :param build: how programs are built, such as ``full-lto``; None links their modules' objects.
    """
    jobs = [Job(program, "gc") for program in programs]
    used = [
        Job(program, "gc", policy, also=tuple(also), overrides=overrides)
        for policy in policies
        for program in programs
    ]
    binaries = find_build(pool.problem, build).binaries(pool, [*jobs, *used], progress)
    sides = _measured(pool, binaries, folder, progress)
    stock, others = sides[: len(jobs)], sides[len(jobs) :]
    count = len(programs)
    return tuple(
        _evaluation(pool, policy, stock, others[number * count : (number + 1) * count])
        for number, policy in enumerate(policies)
    )


@dataclass(frozen=True)
class _Side:
    """One build of one program, and what its run executed."""

    binary: Binary
    measured: Repeated | None
    failure: str | None


def _measured(
    pool: Pool, binaries: Sequence[Binary], folder: Path, progress: Progress
) -> list[_Side]:
    """Measure every binary, equal ones once; stock ones twice, to learn their noise."""
    distinct: dict[tuple[str, str], bool] = {}
    for binary in binaries:
        if binary.digest is not None:
            key = (binary.job.program.name, binary.digest)
            distinct[key] = distinct.get(key, False) or binary.job.policy is None

    def one(item: tuple[tuple[str, str], bool]) -> Repeated | str:
        (name, digest), twice = item
        program = pool.corpus.program(name)
        words = program.workload.measure if program.workload is not None else ()
        path = pool.objects.path(digest)
        try:
            return measure_kept(
                pool.corpus, program, path, words, pool.plugin.toolchain, folder, twice=twice
            )
        except NestorError as error:
            return str(error)

    done = dict(
        zip(distinct, pool.map(one, list(distinct.items()), progress, "Measuring"), strict=True)
    )
    sides = []
    for binary in binaries:
        found = done.get((binary.job.program.name, binary.digest or ""), binary.failure)
        if isinstance(found, Repeated):
            sides.append(_Side(binary, found, None))
        else:
            sides.append(_Side(binary, None, found or "not built"))
    return sides


def _evaluation(
    pool: Pool, policy: NamedPolicy, stock: Sequence[_Side], used: Sequence[_Side]
) -> WorkloadEvaluation:
    rows = [_row(pool.corpus, *pair) for pair in zip(stock, used, strict=True)]
    failures = [f for pair in zip(stock, used, strict=True) for f in _failures(*pair)]
    return WorkloadEvaluation(
        pool.problem.name,
        policy.name,
        tuple(sorted(rows, key=_worst_first)),
        tuple(failures),
        digests(pool, policy),
    )


def _worst_first(row: WorkloadResult) -> tuple[bool, float, str]:
    change = row.change_pct()
    return change is not None, -(change or 0.0), row.name


def _row(corpus: Corpus, stock: _Side, used: _Side) -> WorkloadResult:
    program = stock.binary.job.program
    wrong = _other_output(stock, used)
    return WorkloadResult(
        program.name,
        program.project,
        program.language,
        corpus.project(program.project).style,
        corpus.project(program.project).split,
        _columns(stock),
        None if wrong else _columns(used),
        stock.measured.noise_pct if stock.measured is not None else None,
    )


def _columns(side: _Side) -> dict[str, float] | None:
    if side.measured is None:
        return None
    counts = side.measured.first.counts
    run = (counts.total, counts.instructions, counts.reads, counts.writes)
    built = {
        f"static_{name}" if name in RUN_COLUMNS else name: value
        for name, value in side.binary.columns.items()
    }
    return {**dict(zip(RUN_COLUMNS, run, strict=True)), **built}


def _other_output(stock: _Side, used: _Side) -> bool:
    """Tell whether the policy's build left something else than stock, which repeats itself."""
    if stock.measured is None or used.measured is None or not stock.measured.same_output:
        return False
    return stock.measured.first.left != used.measured.first.left


def _failures(stock: _Side, used: _Side) -> Iterator[Failure]:
    name = stock.binary.job.program.name
    for side, what in ((stock, "stock"), (used, "policy")):
        if side.failure is not None:
            yield Failure(name, what, side.failure)
    if _other_output(stock, used):
        yield Failure(name, "policy", "workload: another output than stock's")
