"""Searches as experience: every training program, every round, kept on disk."""

import hashlib
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from nestor.compiler.program_summary import summarise
from nestor.corpus.model import Corpus, Module, Program
from nestor.corpus.relink import LinkMode
from nestor.learn.experience import Tally
from nestor.learn.trials import Recorder, Trials, TrialsError, join, read, write
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent
from nestor.rollout.cache import baselines
from nestor.rollout.pool import Pool
from nestor.tune.build import Builder, BuildError
from nestor.tune.search import Point, SearchSettings, State, search

MODES: tuple[LinkMode, ...] = get_args(LinkMode)
"""A policy is to serve every way of linking, so trials are paid in each."""


def largest_programs(programs: Sequence[Program]) -> tuple[Program, ...]:
    """Return the program of most modules of each project: the others repeat most of its code."""
    best: dict[str, Program] = {}
    for program in programs:
        known = best.get(program.project)
        if known is None or len(program.modules) > len(known.modules):
            best[program.project] = program
    return tuple(best.values())


@dataclass(frozen=True)
class Searches:
    """Searches of the training programs from one policy after the other."""

    pool: Pool
    programs: tuple[Program, ...]
    settings: SearchSettings
    seed: int
    folder: Path
    """Where the trials are kept, by round and program."""
    run: str
    """Digest of what they depend on."""
    tally: Tally
    progress: Progress = silent

    def __call__(self, number: int, policy: Policy | None) -> Trials:
        """Return the trials of rounds 0 to ``number``; that one searches from ``policy``.

        :param policy: None is the default heuristic.
        :raises TrialsError: if those of an earlier round are gone, or nothing could be tried.
        """
        known = [self._read(earlier, p) for earlier in range(number) for p in self.programs]
        missing = [trials for trials in known if trials is None]
        if missing:
            raise TrialsError(f"Trials in {self.folder} are missing: take another --out.")
        with tempfile.TemporaryDirectory(prefix="nestor-searches-") as text:
            path: Path | str = "default"
            if policy is not None:
                path = Path(text) / "policy.safetensors"
                bundle.save(policy, path)
            for done, program in enumerate(self.programs):
                self.progress(f"Searching, round {number + 1}", done, len(self.programs))
                known.append(
                    self._read(number, program) or self._search(number, program, path, Path(text))
                )
        self.progress(f"Searching, round {number + 1}", len(self.programs), len(self.programs))
        return join([trials for trials in known if trials is not None])

    def _path(self, number: int, program: Program) -> Path:
        name = hashlib.sha256(program.name.encode()).hexdigest()[:16]
        return self.folder / str(number) / f"{name}.safetensors"

    def _read(self, number: int, program: Program) -> Trials | None:
        return read(self._path(number, program), f"{self.run}/{number}")

    def _search(self, number: int, program: Program, policy: Path | str, folder: Path) -> Trials:
        recorder = Recorder(program.name)
        summary = summary_of(self.pool, program, "gc", folder / "summary")
        builder = Builder(self.pool, program, policy, MODES, summary)
        try:
            first = builder.build({})
            state = State(curve=(Point(builder.compiles, first.total, first.text),))
            seed = self.seed * 1000 + number
            search(builder, state, self.settings, seed, observe=recorder.observe)
        except BuildError as error:
            self.tally.fail(f"{program.name}: {error}")
        finally:
            self.tally.rollouts += builder.rollouts
            builder.close()
        trials = recorder.trials()
        write(trials, self._path(number, program), f"{self.run}/{number}")
        return trials


def validator(
    pool: Pool, programs: Sequence[Program], tally: Tally, progress: Progress = silent
) -> Callable[[Policy], float]:
    """Return the function that builds ``programs`` under a policy.

    It gives the mean relative change of their linked bytes, over the link modes, against stock;
    infinity if one of them cannot be built, and 0 if there are none.
    """
    stock: dict[str, float] = {}

    def total(program: Program, policy: Path | str) -> float:
        builder = Builder(pool, program, policy, MODES)
        try:
            return builder.build({}).total
        finally:
            tally.rollouts += builder.rollouts
            builder.close()

    def change(policy: Policy) -> float:
        changes = []
        with tempfile.TemporaryDirectory(prefix="nestor-validate-") as text:
            path = Path(text) / "policy.safetensors"
            bundle.save(policy, path)
            for done, program in enumerate(programs):
                progress("Validating", done, len(programs))
                try:
                    before = stock.get(program.name) or total(program, "default")
                    stock[program.name] = before
                    changes.append(total(program, path) / before - 1)
                except BuildError as error:
                    tally.fail(f"{program.name}: {error}")
                    return math.inf
        progress("Validating", len(programs), len(programs))
        return sum(changes) / len(changes) if changes else 0.0

    return change


def summary_of(pool: Pool, program: Program, mode: LinkMode, path: Path) -> Path:
    """Write the summary of the stock build of ``program`` to ``path`` and return it."""
    objects = baselines(pool, _modules(pool.corpus, program), None)
    summarise(list(objects.values()), mode).save(path)
    return path


def _modules(corpus: Corpus, program: Program) -> tuple[Module, ...]:
    return tuple(corpus.module(name) for name in program.modules)
