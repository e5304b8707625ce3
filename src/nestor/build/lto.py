"""Programs built by LTO: the policy decides inside the linker, with the whole program in view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, cast, get_args

from nestor.build.assembly import Assembly, failed_assembly, logged_id, program_build
from nestor.build.build import Binary, BuildError, Built, Compile, Job, check_modes
from nestor.build.incremental import Kept, ProgramBuild, find_kept
from nestor.build.linking import LINKED, TEXT
from nestor.build.lto_link import Flags, LtoLink, Prelinked, back_ends, lto_link, prelink
from nestor.compiler.invocation import LtoKind
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import Overrides
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder


@dataclass(frozen=True)
class LtoBuild:
    """Links programs by LTO (:class:`nestor.build.build.Build`)."""

    kind: LtoKind
    flags: Flags
    """How the plugin inside the linker is asked."""
    modes: tuple[str, ...] = get_args(LinkMode)
    whole: bool = True
    product: str = "program"
    needs_binary: ClassVar[bool] = False
    """Whether :meth:`assemble` needs the linked program itself."""

    @property
    def name(self) -> str:
        """How it is called on the command line."""
        return f"{self.kind}-lto"

    @property
    def options(self) -> str:
        """Options of clang with which users build in this way."""
        return f"-flto={self.kind}"

    def run(self, pool: Pool, jobs: Sequence[Job], progress: Progress = silent) -> list[Built]:
        """See :meth:`nestor.build.build.Build.run`; each compile is one run of the linker."""
        check_modes(self, [job.mode for job in jobs])
        objects = self.prelinked(pool, [job.program for job in jobs], progress)
        wanted = list(dict.fromkeys(replace(job, summary=None) for job in jobs))
        names = sorted({job.policy.name for job in jobs if job.policy is not None})
        stage = f"Linking {', '.join(['stock', *names])} by {self.kind} LTO"
        done = pool.map(lambda job: self._built(pool, job, objects), wanted, progress, stage)
        built = dict(zip(wanted, done, strict=True))
        return [replace(built[replace(job, summary=None)], job=job) for job in jobs]

    def binaries(
        self, pool: Pool, jobs: Sequence[Job], progress: Progress = silent
    ) -> list[Binary]:
        """See :meth:`nestor.build.build.Build.binaries`.

        :raises BuildError: for policies beside a job's own, which this link does not take.
        """
        if any(job.also for job in jobs):
            raise BuildError("A link by LTO takes one policy: leave the others beside it out.")
        objects = self.prelinked(pool, [job.program for job in jobs], progress)

        def one(job: Job) -> Binary:
            link = self._link(pool, replace(job, summary=None, keep=True), objects)
            if link.measure is None:
                return Binary(job, None, link.failure)
            own = pool.problem.columns(link.measure)
            return Binary(job, link.digest, None, link.measure, {**own, TEXT: link.measure.text})

        return pool.map(one, jobs, progress, f"Linking by {self.kind} LTO")

    def incremental(
        self,
        pool: Pool,
        program: Program,
        policy: NamedPolicy,
        modes: Sequence[str],
        summary: str | None = None,
    ) -> "LtoBuilder":
        """See :meth:`nestor.build.build.Build.incremental`."""
        return LtoBuilder(self, pool, program, policy, modes)

    def prelinked(
        self, pool: Pool, programs: Sequence[Program], progress: Progress = silent
    ) -> Prelinked:
        """Return the pre-link objects of the modules of ``programs``."""
        return prelink(pool, list(dict.fromkeys(programs)), self.kind, progress)

    def link_mode(self, mode: str) -> LinkMode:
        """Return how the program is linked in a mode of this build."""
        return cast(LinkMode, mode)

    def link(self, pool: Pool, job: Job, objects: Prelinked) -> LtoLink:
        """Link one job from pre-link objects; the program is kept if it is needed."""
        keep = job.keep or self.needs_binary
        return self._link(pool, replace(job, mode=self.link_mode(job.mode), keep=keep), objects)

    def assemble(self, pool: Pool, job: Job, link: LtoLink) -> Assembly:
        """Return what the linked program comes to."""
        if link.measure is None:
            return failed_assembly(link.failure or "not linked")
        return Assembly(
            {LINKED: link.measure.loadable, TEXT: link.measure.text},
            None,
            lambda: link.back_ends,
            lambda logs: functions_by_id(link),
        )

    def release(self, pool: Pool, link: LtoLink) -> None:
        """Give back the program of a link that was kept for :meth:`assemble` alone."""
        if self.needs_binary and link.measure is not None and link.digest is not None:
            pool.objects.release(link.digest)

    def _link(self, pool: Pool, job: Job, objects: Prelinked) -> LtoLink:
        return lto_link(pool, job, self.kind, objects, self.flags, pool.problem.read_log)

    def _built(self, pool: Pool, job: Job, objects: Prelinked) -> Built:
        link = self.link(pool, job, objects)
        assembly = self.assemble(pool, job, link)
        name = job.program.name
        done = Compile(name, link.digest, link.trajectories, link.cpu_seconds, link.failure)
        columns = assembly.columns
        if columns is not None:
            # The objects of the modules are bitcode: what counts as theirs is the program.
            columns = {**pool.problem.columns(link.measure), **columns}
        if not job.keep:
            self.release(pool, link)
        return Built(
            job,
            columns,
            assembly.failure,
            (done,),
            functions=assembly.functions(link.trajectories),
            binary=link.digest if job.keep else None,
        )


@dataclass(frozen=True)
class _Linked(Kept):
    """One build of the program in every mode."""

    build: ProgramBuild


class LtoBuilder:
    """Builds of one program by LTO (:class:`nestor.build.incremental.ProgramBuilder`).

    All decisions are made in the link, so any change of an answer means another link.
    """

    def __init__(
        self,
        build: LtoBuild,
        pool: Pool,
        program: Program,
        policy: NamedPolicy,
        modes: Sequence[str],
    ):
        """Prepare; nothing is compiled yet."""
        check_modes(build, modes)
        self.modes = tuple(modes)
        self.policy = policy
        self.compiled = 0.0
        self.rollouts = 0
        self.cpu_seconds = 0.0
        self._build = build
        self._pool = pool
        self._format = pool.problem.overrides()
        self._linked: list[_Linked] = []
        self._trials = temporary_folder("trials")
        self._job = Job(
            program, modes[0], policy, log=True, names=True, trials=Path(self._trials.name)
        )

    @property
    def compiles(self) -> float:
        """Whole-program compiles so far."""
        return self.compiled

    def build(
        self,
        overrides: Overrides,
        progress: Progress = silent,
        modes: Sequence[str] | None = None,
    ) -> ProgramBuild:
        """Link in every mode and measure, unless nothing that was asked has changed.

        :param modes: instead of the builder's; then everything is linked again.
        :raises BuildError: if a module or a link fails.
        """
        if modes is not None and tuple(modes) != self.modes:
            return self._link(overrides, modes, progress).build
        linked = find_kept(self._linked, self._format.index(overrides))
        if linked is None:
            linked = self._link(overrides, self.modes, progress)
            self._linked.append(linked)
        return replace(linked.build, overrides=dict(overrides))

    def keep_only(self, overrides: Overrides) -> None:
        """Forget every build but that under ``overrides``."""
        linked = find_kept(self._linked, self._format.index(overrides))
        self._linked = [] if linked is None else [linked]

    def keep_on_disk(self, folder: Path) -> None:
        """Write nothing: a link is made again from pre-link objects, which are cached."""

    def take_from_disk(self, folder: Path) -> None:
        """Take nothing: see :meth:`keep_on_disk`."""

    def close(self) -> None:
        """Forget every build, and what was tried for them."""
        self._linked = []
        self._trials.cleanup()

    def _link(self, overrides: Overrides, modes: Sequence[str], progress: Progress) -> _Linked:
        program = self._job.program
        objects = self._build.prelinked(self._pool, [program], progress)
        text = self._format.to_text(overrides) if overrides else None
        by_link = {self._build.link_mode(mode): mode for mode in reversed(modes)}
        jobs = [replace(self._job, mode=mode, overrides=text) for mode in by_link.values()]
        done = self._pool.map(
            lambda job: self._build.link(self._pool, job, objects), jobs, progress
        )
        self.compiled += 1
        self.rollouts += len(done)
        self.cpu_seconds += sum(link.cpu_seconds for link in done)
        links = dict(zip(by_link, done, strict=True))
        try:
            assemblies = self._assembled(modes, links)
        finally:
            for link in done:
                self._build.release(self._pool, link)
        # What the mode of the link changes comes after the decisions.
        trajectories = done[0].trajectories
        questions = self._format.question_keys(trajectories.values())
        modules: dict[str, tuple[str, ...]] = {}
        for name, back_end in back_ends(program, self._build.kind, objects.objects).items():
            modules[back_end] = (*modules.get(back_end, ()), name)
        return _Linked(
            questions,
            questions.among(self._format.index(overrides)),
            program_build(
                program,
                overrides,
                self._pool.problem.report.score,
                assemblies,
                trajectories,
                modules,
            ),
        )

    def _assembled(
        self, modes: Sequence[str], links: Mapping[LinkMode, LtoLink]
    ) -> dict[str, Assembly]:
        """Return what the links come to in each mode."""

        def one(mode: str) -> Assembly:
            link = links[self._build.link_mode(mode)]
            return self._build.assemble(self._pool, replace(self._job, mode=mode), link)

        return dict(zip(modes, self._pool.map(one, modes), strict=True))


def functions_by_id(link: LtoLink) -> dict[int, int]:
    """Return what each function takes of the program, by function id."""
    ids = {name: i for log in link.trajectories.values() for i, name in log.names.items()}
    found: dict[int, int] = {}
    for name, size in link.functions.items():
        function = logged_id(name, ids)
        found[function] = found.get(function, 0) + size
    return found
