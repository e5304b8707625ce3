"""Builds of programs whose units are compiled by themselves: many jobs, or one incrementally."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import xxhash

from nestor.build.assembly import Assembler, Assembly, program_build, sum_columns
from nestor.build.binary import link_binaries
from nestor.build.build import Binary, Build, BuildError, Built, Job, check_modes
from nestor.build.incremental import Kept, ProgramBuild, find_kept
from nestor.build.units import Compiled, compile_units, unit_request
from nestor.corpus.model import Program
from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import Overrides
from nestor.problem.problem import Pool
from nestor.problem.rollout import Rollout
from nestor.progress import Progress, silent
from nestor.rollout.kept_rollouts import keep_rollout, read_rollout


@dataclass(frozen=True)
class UnitBuild(ABC):
    """A :class:`nestor.build.build.Build` whose units are compiled by themselves.

    A way of building adds its name, its modes, and how compiled units become a program.
    """

    name: ClassVar[str]
    modes: ClassVar[tuple[str, ...]]
    options: ClassVar[str]
    whole: ClassVar[bool] = False
    product: ClassVar[str] = "object"
    least: ClassVar[float] = 0.0
    """The part of a whole-program compile that a build counts at least if anything is compiled."""

    @abstractmethod
    def assemble(
        self,
        pool: Pool,
        program: Program,
        rollouts: Mapping[str, Rollout],
        mode: str,
        keep: bool = False,
    ) -> Assembly:
        """Put the compiled units of ``program`` together.

        :param keep: keep the binary in the pool's store of objects.
        """

    def run(self, pool: Pool, jobs: Sequence[Job], progress: Progress = silent) -> list[Built]:
        """See :meth:`nestor.build.build.Build.run`."""
        return run_jobs(self, self.assemble, pool, jobs, progress)

    def binaries(
        self, pool: Pool, jobs: Sequence[Job], progress: Progress = silent
    ) -> list[Binary]:
        """See :meth:`nestor.build.build.Build.binaries`."""
        return link_binaries(pool, jobs, progress)

    def incremental(
        self,
        pool: Pool,
        program: Program,
        policy: NamedPolicy,
        modes: Sequence[str],
        summary: str | None = None,
    ) -> "UnitBuilder":
        """See :meth:`nestor.build.build.Build.incremental`."""
        return UnitBuilder(
            self, self.assemble, pool, program, policy, modes, summary, least=self.least
        )


def run_jobs(
    build: Build, assemble: Assembler, pool: Pool, jobs: Sequence[Job], progress: Progress
) -> list[Built]:
    """Compile the units of all jobs and put the programs together, equal ones once."""
    check_modes(build, [job.mode for job in jobs])
    compiled = compile_units(pool, jobs, progress)
    programs: defaultdict[object, list[int]] = defaultdict(list)
    for number, (job, units) in enumerate(zip(jobs, compiled, strict=True)):
        programs[job.program.name, job.mode, tuple(units.objects.items())].append(number)

    def one(numbers: Sequence[int]) -> Assembly:
        job, units = jobs[numbers[0]], compiled[numbers[0]]
        keep = any(jobs[number].keep for number in numbers)
        return assemble(pool, job.program, units.rollouts, job.mode, keep)

    done = pool.map(one, list(programs.values()), progress, "Linking")
    by_job = {
        number: assembly
        for numbers, assembly in zip(programs.values(), done, strict=True)
        for number in numbers
    }
    result = []
    for number, (job, units) in enumerate(zip(jobs, compiled, strict=True)):
        assembly = by_job[number]
        logs = {n: r.trajectory for n, r in units.rollouts.items() if r.trajectory is not None}
        result.append(
            Built(
                job,
                _all_columns(pool, assembly, units),
                assembly.failure,
                tuple(units.compiles.values()),
                assembly.scores,
                assembly.functions(logs) if job.log and job.names else {},
                assembly.binary if job.keep else None,
            )
        )
    return result


def _all_columns(pool: Pool, assembly: Assembly, units: Compiled) -> Mapping[str, float] | None:
    """Return the program's columns, and the sums over its units of those that it lacks."""
    if assembly.columns is None:
        return None
    outcomes = [done.outcome for done in units.rollouts.values()]
    return {**sum_columns(list(map(pool.problem.columns, outcomes))), **assembly.columns}


def _unit_file(folder: Path, name: str) -> Path:
    """Return the file of one unit's compile."""
    return folder / f"{xxhash.xxh3_64_hexdigest(name.encode())}.npz"


@dataclass(frozen=True)
class _Unit(Kept):
    """One compile of one unit."""

    rollout: Rollout


class UnitBuilder:
    """Builds of one program, unit by unit (:class:`nestor.build.incremental.ProgramBuilder`)."""

    def __init__(
        self,
        build: Build,
        assemble: Assembler,
        pool: Pool,
        program: Program,
        policy: NamedPolicy,
        modes: Sequence[str],
        summary: str | None = None,
        *,
        least: float = 0.0,
    ):
        """Prepare; nothing is compiled yet.

        :param least: see :attr:`UnitBuild.least`.
        """
        check_modes(build, modes)
        self.modes = tuple(modes)
        self.policy = policy
        self.compiled = 0.0
        self.rollouts = 0
        self.cpu_seconds = 0.0
        self._least = least
        self._assemble = assemble
        self._pool = pool
        self._job = Job(program, modes[0], policy, summary=summary, log=True, names=True)
        self._format = pool.problem.overrides()
        self._units: dict[str, list[_Unit]] = {name: [] for name in program.modules}
        self._on_disk: dict[str, Rollout] = {}

    @property
    def compiles(self) -> float:
        """Whole-program compiles so far: units compiled over the program's units."""
        return self.compiled / max(1, len(self._job.program.modules))

    def build(
        self,
        overrides: Overrides,
        progress: Progress = silent,
        modes: Sequence[str] | None = None,
    ) -> ProgramBuild:
        """Compile what changed, put the program together in every mode and measure.

        :param modes: instead of the builder's.
        :raises BuildError: if a unit or a link fails.
        """
        index = self._format.index(overrides)
        program, problem = self._job.program, self._pool.problem
        units = {name: find_kept(self._units[name], index) for name in program.modules}
        before = self.compiled
        units |= self._compile([n for n, u in units.items() if u is None], overrides, progress)
        if self.compiled > before:
            self.compiled = max(self.compiled, before + self._least * len(program.modules))
        rollouts = {name: unit.rollout for name, unit in units.items() if unit is not None}
        logs = {n: r.trajectory for n, r in rollouts.items() if r.trajectory is not None}
        wanted = self.modes if modes is None else modes
        done = self._pool.map(
            lambda mode: self._assemble(self._pool, program, rollouts, mode), wanted
        )
        assemblies = dict(zip(wanted, done, strict=True))
        return program_build(
            program,
            overrides,
            problem.report.score,
            assemblies,
            logs,
            modules={name: (name,) for name in program.modules},
            objects={name: done.object for name, done in rollouts.items() if done.object},
        )

    def keep_only(self, overrides: Overrides) -> None:
        """Forget every compile that a build under ``overrides`` does not need."""
        index = self._format.index(overrides)
        for name, units in self._units.items():
            needed = find_kept(units, index)
            self._release(unit for unit in units if unit is not needed)
            self._units[name] = [] if needed is None else [needed]

    def keep_on_disk(self, folder: Path) -> None:
        """Write the compiles that there are to ``folder``, a file for each unit.

        :raises OSError: if it cannot be written.
        """
        for name, units in self._units.items():
            rollout = units[-1].rollout if units else None
            if rollout is not None and self._on_disk.get(name) is not rollout:
                keep_rollout(self._pool, rollout, _unit_file(folder, name))
                self._on_disk[name] = rollout

    def take_from_disk(self, folder: Path) -> None:
        """Take the compiles that :meth:`keep_on_disk` wrote, as far as they are whole."""
        for name, units in self._units.items():
            request = unit_request(self._pool, self._job, name)
            rollout = read_rollout(self._pool, request, _unit_file(folder, name))
            if rollout is not None and rollout.trajectory is not None:
                questions = self._format.question_keys([rollout.trajectory])
                units.append(_Unit(questions, None, rollout))
                self._on_disk[name] = rollout

    def close(self) -> None:
        """Forget every compile."""
        for name, units in self._units.items():
            self._release(units)
            self._units[name] = []

    def _compile(
        self, names: Sequence[str], overrides: Overrides, progress: Progress
    ) -> Mapping[str, _Unit]:
        text = self._format.to_text(overrides) if overrides else None
        job = replace(self._job, overrides=text)
        requests = [unit_request(self._pool, job, name) for name in names]
        self.compiled += len(names)
        self.rollouts += len(names)
        index = self._format.index(overrides)
        result = {}
        failure = None
        for name, done in zip(names, self._pool.run(requests, progress), strict=True):
            self.cpu_seconds += done.cpu_seconds
            if done.trajectory is None or done.object is None:
                failure = failure or f"{name}: {done.failure}."
                continue
            questions = self._format.question_keys([done.trajectory])
            result[name] = _Unit(questions, questions.among(index), done)
            self._units[name].append(result[name])
        if failure is not None:
            raise BuildError(failure)
        return result

    def _release(self, units: Iterable[_Unit]) -> None:
        for unit in units:
            if unit.rollout.object is not None:
                self._pool.objects.release(unit.rollout.object)
