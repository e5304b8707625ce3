"""The protocol of building a whole program under a policy, and its results.

Each unit is compiled by itself, and the program is their sum (``objects``), is linked (``link``),
also weighed as part of larger programs (``copies``), or run (``run``). Or it is built by LTO, where
the compiler sees the whole program inside the linker (``full-lto``, ``thin-lto``), and linked or
run. Evaluation, guards, searches and training all build through :class:`Build`, whichever of these
six it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from nestor.compiler.objects import Measure
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool, Problem
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent

if TYPE_CHECKING:
    from nestor.build.incremental import ProgramBuilder


class BuildError(NestorError):
    """A program that cannot be built, or not in the way that is wanted."""


@dataclass(frozen=True)
class Job:
    """Which program to build, and who decides."""

    program: Program
    mode: str
    """One of the build's modes."""
    policy: NamedPolicy | None = None
    """None is the stock compiler, of which nothing is observed."""
    also: tuple[NamedPolicy, ...] = ()
    """Policies about other decisions, in the same compiles."""
    overrides: str | None = None
    """The text of a file of overrides."""
    summary: str | None = None
    """The text of the program's summary, for policies that read one."""
    log: bool = False
    """Return the trajectories."""
    names: bool = False
    """With the log, return the names of functions and the bytes that each takes."""
    keep: bool = False
    """Keep the binary."""
    trials: Path | None = None
    """The folder of what policies have tried in earlier links of the program; LTO alone."""


@dataclass(frozen=True, eq=False)
class Compile:
    """One compile of a build; what several jobs need is one and the same Python object."""

    unit: str
    """What was compiled: a module, or the program where the compiler sees it as a whole."""
    digest: str | None
    """SHA-256 of the object or program; None if there is none."""
    trajectories: Mapping[str, Trajectory]
    """By back end: the module, or each part of a program that is optimised by itself."""
    cpu_seconds: float
    """0 if what an earlier compile made was taken."""
    failure: str | None


@dataclass(frozen=True)
class Built:
    """What became of one job; a failure is a result with its reason."""

    job: Job
    columns: Mapping[str, float] | None
    """The program by the columns of the problem's report; None if it could not be built."""
    failure: str | None
    """Why there is no program, in one line; None if there is."""
    compiles: tuple[Compile, ...]
    """Those that failed are among them."""
    scores: Callable[[], Mapping[str, float]] = field(default=dict, repr=False)
    """What of the program's score is each unit's; empty where units cannot be told apart."""
    functions: Mapping[int, float] = field(default_factory=dict)
    """What of the score each function takes, by the function's id, if the names were wanted."""
    binary: str | None = None
    """SHA-256 of the binary in the pool's store of objects, if it was to be kept."""

    @property
    def trajectories(self) -> Iterator[tuple[str, Trajectory]]:
        """The trajectories of all compiles by the name of their back end."""
        return chain.from_iterable(done.trajectories.items() for done in self.compiles)


@dataclass(frozen=True)
class Binary:
    """The program of one job, which nothing has judged; a failure is a result with its reason."""

    job: Job
    digest: str | None
    """SHA-256 of the binary in the pool's store of objects; None if it could not be built."""
    failure: str | None
    """Why there is none, in one line."""
    measure: Measure | None = None
    """The sizes of the binary."""
    columns: Mapping[str, float] = field(default_factory=dict)
    """Sums over the units by the columns of the problem's report, and the bytes of code of the
    linked program under the name ``text``."""


class Build(Protocol):
    """One way to build programs."""

    @property
    def name(self) -> str:
        """How it is called on the command line."""

    @property
    def modes(self) -> tuple[str, ...]:
        """Variants of the link; the first is the usual one."""

    @property
    def whole(self) -> bool:
        """Whether the compiler sees the program as a whole.

        Then no policy needs a summary, and any other answer means building everything again.
        """

    @property
    def options(self) -> str:
        """Options of clang with which users build in this way; empty if none are needed."""

    @property
    def product(self) -> str:
        """What a compile gives, in one word, for messages."""

    def run(self, pool: Pool, jobs: Sequence[Job], progress: Progress = silent) -> list[Built]:
        """Build every job, several at a time; results in the order of the jobs.

        What several jobs need is compiled once, and what is compared stands side by side, so that
        whatever else the machine does costs all sides the same.

        :raises BuildError: if a job has a mode that this build lacks.
        """

    def binaries(
        self, pool: Pool, jobs: Sequence[Job], progress: Progress = silent
    ) -> list[Binary]:
        """Make the program of every job and judge nothing; results in the order of the jobs.

        Modes are those of the link (:data:`nestor.corpus.relink.LinkMode`), whatever the modes of
        this build are.
        """

    def incremental(
        self,
        pool: Pool,
        program: Program,
        policy: NamedPolicy,
        modes: Sequence[str],
        summary: str | None = None,
    ) -> "ProgramBuilder":
        """Return what builds one program again and again under changing overrides.

        :param summary: the program's summary; ignored where the program is seen as a whole.
        :raises BuildError: if this build lacks one of ``modes``.
        """


def check_modes(build: Build, modes: Sequence[str]) -> None:
    """Refuse modes that ``build`` lacks.

    :raises BuildError: with the modes that there are.
    """
    for mode in modes:
        if mode not in build.modes:
            raise BuildError(
                f"The build '{build.name}' has no mode '{mode}'; there are"
                f" {', '.join(build.modes)}."
            )


def builds_of(problem: Problem) -> Mapping[str, Build]:
    """Return the ways to build programs under ``problem``, by name; the first is the usual one."""
    return cast(Mapping[str, Build], problem.builds())


def summary_for(
    pool: Pool,
    build: Build,
    program: Program,
    policy: NamedPolicy,
    mode: str,
    progress: Progress = silent,
) -> str | None:
    """Return the summary of one program for ``policy``; None if it reads none, or needs none.

    Where the compiler sees the program as a whole, no policy needs one.
    """
    if build.whole or not pool.problem.reads_summary(policy.policy):
        return None
    texts = pool.problem.summaries(pool, [program], [mode], progress)
    return texts.get((program.name, mode))


def inside_lto(build: Build) -> bool:
    """Tell whether policies decide inside LTO, in the link."""
    return build.options.startswith("-flto")


def find_build(problem: Problem, name: str | None) -> Build:
    """Return the way to build programs of this name, the problem's usual one for None.

    :raises BuildError: if the problem has no such build.
    """
    builds = builds_of(problem)
    if name is None:
        return next(iter(builds.values()))
    if name not in builds:
        raise BuildError(f"{problem.name} has no build '{name}'; there are {', '.join(builds)}.")
    return builds[name]
