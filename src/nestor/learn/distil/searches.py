"""Searches as experience: every training program, every round, kept on disk."""

import hashlib
import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from nestor.compiler.lto import LtoKind
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.learn.experience import Tally
from nestor.learn.trials import Recorder, Trials, TrialsError, join, read, write
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent
from nestor.rollout.pool import Pool
from nestor.rollout.summaries import summaries
from nestor.tune.build import BuildError
from nestor.tune.lto_build import make_builder
from nestor.tune.search import Point, SearchSettings, State, search

MODES: tuple[LinkMode, ...] = get_args(LinkMode)
"""A policy is to serve every way of linking, so trials are paid in each."""

LTO_MODES: tuple[LinkMode, ...] = ("gc",)
"""Under LTO every mode costs a whole compile, and unused functions are gone before the link."""


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
    """Searches of the training programs from one policy after the other.

    Several programs are searched at once, which keeps the cores busy while one of them links or
    waits for its largest module; the trials do not depend on it.
    """

    pool: Pool
    programs: tuple[Program, ...]
    settings: SearchSettings
    rows: int
    """Trials after which a program has told enough in a round."""
    seed: int
    folder: Path
    """Where the trials are kept, by what they depend on; runs may share it."""
    tally: Tally
    progress: Progress = silent
    lto: LtoKind | None = None
    """Search inside the linker, under LTO of this kind, linked as ``gc``."""

    def __call__(self, earlier: Sequence[str], policy: Policy | None) -> Trials:
        """Return the trials of searches from ``earlier`` policies and from ``policy``.

        :param earlier: digests of the policies of the rounds before, whose trials are only read.
        :param policy: None is the default heuristic.
        :raises TrialsError: if those of an earlier round are gone, or nothing could be tried.
        """
        known = [
            read(self._path(number, start, program))
            for number, start in enumerate(earlier)
            for program in self.programs
        ]
        if any(trials is None for trials in known):
            raise TrialsError(f"Trials in {self.folder} are missing: take another --out.")
        stage, total = f"Searching, round {len(earlier) + 1}", len(self.programs)
        with (
            tempfile.TemporaryDirectory(prefix="nestor-searches-") as text,
            ThreadPoolExecutor(self.pool.settings.jobs + 1, "nestor-search") as threads,
        ):
            start, path = start_digest(policy), None
            if policy is not None:
                path = Path(text) / "policy.safetensors"
                bundle.save(policy, path)

            def one(program: Program) -> Trials:
                place = self._path(len(earlier), start, program)
                kept = read(place)
                if kept is None:
                    kept = self._search(len(earlier), program, path or "default")
                    write(kept, place)
                return kept

            self.progress(stage, 0, total)
            futures = [threads.submit(one, program) for program in self.programs]
            try:
                for done, _ in enumerate(as_completed(futures), 1):
                    self.progress(stage, done, total)
            except BaseException:  # an interrupt: the searches end with their compilers
                self.pool.cancel()
                raise
            known += [future.result() for future in futures]
        return join([trials for trials in known if trials is not None])

    def _path(self, number: int, start: str, program: Program) -> Path:
        """Return the file of one search, named by the hash of everything it depends on."""
        modules = [self.pool.corpus.module(name) for name in program.modules]
        depends = [
            self.pool.plugin.toolchain.build_id,
            self.pool.plugin.digest,
            [program.name, program.language, [[i.kind, i.value] for i in program.inputs]],
            [[module.name, module.digest, list(module.options)] for module in modules],
            start,
            [asdict(self.settings), self.rows, self.seed, number],
            *([] if self.lto is None else [self.lto]),
        ]
        digest = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
        return self.folder / f"{digest[:32]}.safetensors"

    def _search(self, number: int, program: Program, policy: Path | str) -> Trials:
        recorder = Recorder(program.name, 0.0)
        with tempfile.TemporaryDirectory(prefix="nestor-search-") as text:
            summary, modes = None, LTO_MODES
            if self.lto is None:
                told = summaries(self.pool, [program], ["gc"], Path(text))
                summary, modes = told.get((program.name, "gc")), MODES
            builder = make_builder(self.pool, program, policy, modes, summary, self.lto)
            try:
                first = builder.build({})
                recorder = Recorder(program.name, first.total)
                state = State(curve=(Point(builder.compiles, first.total, first.text),))
                seed = self.seed * 1000 + number
                search(
                    builder,
                    state,
                    self.settings,
                    seed,
                    observe=recorder.observe,
                    enough=lambda: len(recorder) >= self.rows,
                )
            except BuildError as error:
                self.tally.fail(f"{program.name}: {error}")
            finally:
                self.tally.count(builder.rollouts)
                builder.close()
        if self.pool.cancelled:  # what failed for this reason must not be taken for experience
            raise CancelledError
        return recorder.trials()


def start_digest(policy: Policy | None) -> str:
    """Return the digest of the policy that a search starts from, zeros for the default."""
    return "0" * 64 if policy is None else bundle.digest(policy)
