"""Build one program again and again under changing overrides, and see where its bytes are.

A compile depends on the answers to the questions that it asks and on nothing else, so a module is
compiled again only if an override of a question that it asked has changed.
"""

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import xxhash

from nestor.compiler.objects import Measure
from nestor.compiler.trajectory_log import Trajectory
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.policy.overrides import Overrides, to_text
from nestor.progress import Progress, silent
from nestor.rewards.linked_size import Link, link
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request, Rollout
from nestor.tune.asked import Answers, Asked, Made, known


class BuildError(NestorError):
    """A program that cannot be built."""


@dataclass(frozen=True)
class Build:
    """A program under some overrides."""

    overrides: Overrides
    sizes: Mapping[LinkMode, Measure]
    """The linked program, by link mode."""
    functions: Mapping[LinkMode, Mapping[int, int]]
    """Bytes that each function takes in the linked program (code, unwind entry, exception table),
    by link mode and function id."""
    trajectories: Mapping[str, Trajectory]
    """By module."""

    @property
    def total(self) -> float:
        """Loadable bytes, the mean over the link modes: what a search makes smaller."""
        return sum(m.loadable for m in self.sizes.values()) / len(self.sizes)

    @property
    def text(self) -> float:
        """Bytes of code, the mean over the link modes."""
        return sum(m.text for m in self.sizes.values()) / len(self.sizes)


class ProgramBuilder(Protocol):
    """What a search needs of one program: :class:`Builder`, or ``lto_build.LtoBuilder``."""

    modes: tuple[LinkMode, ...]
    compiled: int
    """Units compiled so far; may be set back by who resumes a search."""
    rollouts: int
    """Compilers ever run for their decisions."""

    @property
    def compiles(self) -> float:
        """Whole-program compiles so far."""

    def build(self, overrides: Overrides, progress: Progress = silent) -> Build:
        """Build under ``overrides``; raises :class:`BuildError`."""

    def keep_only(self, overrides: Overrides) -> None:
        """Forget what a build under ``overrides`` does not need."""

    def close(self) -> None:
        """Delete the files."""


@dataclass(frozen=True)
class _Made(Made):
    """One compile of one module."""

    object: Path
    rollout: Rollout
    names: Mapping[str, int]
    """Function ids by symbol name."""


class Builder:
    """Builds of one program under one policy; a context manager that owns the objects."""

    def __init__(
        self,
        pool: Pool,
        program: Program,
        policy: Path | str,
        modes: Sequence[LinkMode] = ("gc",),
        summary: Path | None = None,
    ):
        """Prepare; nothing is compiled yet.

        :param policy: a policy file or ``default``.
        :param summary: the program's summary, for policies that read one.
        """
        self.pool = pool
        self.program = program
        self.policy = policy
        self.modes = tuple(modes)
        self.summary = summary
        self.compiled = 0
        """Modules compiled so far; may be set back by who resumes a search."""
        self.rollouts = 0
        """Compiles ever made."""
        self.cpu_seconds = 0.0
        self._temporary = tempfile.TemporaryDirectory(prefix="nestor-tune-")
        self._made: dict[str, list[_Made]] = {name: [] for name in program.modules}

    def close(self) -> None:
        """Delete the objects."""
        self._temporary.cleanup()

    @property
    def compiles(self) -> float:
        """Whole-program compiles so far: modules compiled over modules."""
        return self.compiled / max(1, len(self.program.modules))

    def build(self, overrides: Overrides, progress: Progress = silent) -> Build:
        """Compile what changed, link in every mode and measure.

        :raises BuildError: if a module or a link fails.
        """
        answers = Answers.of(overrides)
        made = {name: known(self._made[name], answers) for name in self.program.modules}
        made |= self._compile([name for name, m in made.items() if m is None], overrides, progress)
        whole = {name: m for name, m in made.items() if m is not None}
        objects = {name: m.object for name, m in whole.items()}
        links = self.pool.map(lambda mode: self._link(objects, mode), self.modes)
        return Build(
            overrides=dict(overrides),
            sizes={
                mode: linked.measure
                for mode, linked in zip(self.modes, links, strict=True)
                if linked.measure is not None
            },
            functions={
                mode: _bytes(linked, whole) for mode, linked in zip(self.modes, links, strict=True)
            },
            trajectories={
                name: m.rollout.trajectory
                for name, m in whole.items()
                if m.rollout.trajectory is not None
            },
        )

    def keep_only(self, overrides: Overrides) -> None:
        """Forget every compile that a build under ``overrides`` does not need."""
        answers = Answers.of(overrides)
        for name, all_made in self._made.items():
            needed = known(all_made, answers)
            for made in all_made:
                if made is not needed:
                    made.object.unlink(missing_ok=True)
            self._made[name] = [] if needed is None else [needed]

    def _compile(
        self, modules: Sequence[str], overrides: Overrides, progress: Progress
    ) -> dict[str, _Made]:
        folder = Path(self._temporary.name)
        text = folder / "overrides"
        text.write_text(to_text(overrides))
        self.compiled += len(modules)
        requests = []
        for name in modules:
            self.rollouts += 1
            requests.append(
                Request(
                    self.pool.corpus.module(name),
                    self.policy,
                    overrides=text if overrides else None,
                    program=self.summary,
                    log=True,
                    names=True,
                    keep=folder / f"{self.rollouts}.o",
                )
            )
        result = {}
        answers = Answers.of(overrides)
        for name, done in zip(modules, self.pool.run(requests, progress), strict=True):
            self.cpu_seconds += done.cpu_seconds
            if done.trajectory is None or done.request.keep is None:
                raise BuildError(f"{name}: {done.failure}.")
            asked = Asked.of([done.trajectory])
            ids = {text: number for number, text in done.trajectory.names.items()}
            functions = done.measure.functions if done.measure else ()
            names = {
                f.name: ids.get(f.name) or xxhash.xxh3_64_intdigest(f.name.encode())
                for f in functions
            }
            made = _Made(asked, asked.among(answers), done.request.keep, done, names)
            result[name] = made
            self._made[name].append(made)
        return result

    def _link(self, objects: Mapping[str, Path], mode: LinkMode) -> Link:
        linked = link(
            self.pool.plugin.toolchain,
            self.pool.corpus,
            self.program,
            objects,
            mode=mode,
            want_kept=True,
            limits=self.pool.limits,
        )
        if linked.measure is None:
            raise BuildError(f"{self.program.name}: {linked.failure}.")
        return linked


def _bytes(linked: Link, made: Mapping[str, _Made]) -> dict[int, int]:
    """Return what each function takes of one link, by function id."""
    found: defaultdict[int, int] = defaultdict(int)
    for module, m in made.items():
        for function in m.rollout.measure.functions if m.rollout.measure else ():
            if (module, function.name) in linked.kept:
                found[m.names[function.name]] += function.size
    return dict(found)
