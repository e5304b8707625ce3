"""Searches as experience: every training program, every round, kept on disk."""

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path

from nestor.build.build import Build, BuildError
from nestor.corpus.model import Program
from nestor.learn.accounting import Tally
from nestor.learn.distil.trials import Recorder, Trials, TrialsError, join, read, write
from nestor.policy import bundle
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.spec import Policy
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.tune.moves import moves_of
from nestor.tune.search import Point, SearchSettings, State, search


def search_modes(build: Build) -> tuple[str, ...]:
    """Return the modes in which trials are scored: a policy is to serve every way of linking.

    Where the compiler sees the program as a whole every mode costs a whole compile, and unused
    functions are gone before the link: one mode is enough.
    """
    return build.modes[:1] if build.whole else build.modes


@dataclass(frozen=True)
class Searches:
    """Searches of the training programs from one policy after the other.

    Several programs are searched at once, which keeps the cores busy while one of them links or
    waits for its largest unit; the trials do not depend on it.
    """

    pool: Pool
    build: Build
    programs: tuple[Program, ...]
    settings: SearchSettings
    rows: int
    """Trials after which a program has been searched enough in a round."""
    seed: int
    folder: Path
    """Where the trials are kept, by what they depend on; runs may share it."""
    tally: Tally
    progress: Progress = silent

    def __call__(self, earlier: Sequence[str], policy: Policy | None) -> Trials:
        """Return the trials of searches from ``earlier`` policies and from ``policy``.

        :param earlier: digests of the policies of the rounds before, whose trials are only read.
        :param policy: None is the default heuristic.
        :raises TrialsError: if those of an earlier round are gone, or nothing could be tried.
        """
        found = [
            read(self._path(number, start, program))
            for number, start in enumerate(earlier)
            for program in self.programs
        ]
        if any(trials is None for trials in found):
            raise TrialsError(f"Trials in {self.folder} are missing: take another --out.")
        stage, total = f"Searching, round {len(earlier) + 1}", len(self.programs)
        start = start_digest(policy)
        named = DEFAULT if policy is None else NamedPolicy.of(policy)

        def one(program: Program) -> Trials:
            place = self._path(len(earlier), start, program)
            kept = read(place)
            if kept is None:
                kept = self._search(len(earlier), program, named)
                write(kept, place)
            return kept

        with ThreadPoolExecutor(self.pool.jobs + 1, "nestor-search") as threads:
            self.progress(stage, 0, total)
            futures = [threads.submit(one, program) for program in self.programs]
            try:
                pending = set(futures)
                while pending:
                    # A signal that comes just before a wait is seen only after it.
                    finished, pending = wait(pending, 1.0, return_when=FIRST_COMPLETED)
                    if finished:
                        self.progress(stage, total - len(pending), total)
            except BaseException:  # an interrupt: the searches end with their compilers
                self.pool.cancel()
                raise
            found += [future.result() for future in futures]
        return join([trials for trials in found if trials is not None])

    def _path(self, number: int, start: str, program: Program) -> Path:
        """Return the file of one search, named by the hash of everything it depends on."""
        units = [self.pool.corpus.module(name) for name in program.modules]
        depends = [
            self.pool.problem.name_and_score,
            self.pool.plugin.toolchain.build_id,
            self.pool.plugin.digest,
            [program.name, program.language, [[i.kind, i.value] for i in program.inputs]],
            [[unit.name, unit.digest, list(unit.options)] for unit in units],
            [self.build.name, list(search_modes(self.build))],
            start,
            [asdict(self.settings), self.rows, self.seed, number],
        ]
        digest = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
        return self.folder / f"{digest[:32]}.safetensors"

    def _search(self, number: int, program: Program, policy: NamedPolicy) -> Trials:
        problem, recorder = self.pool.problem, Recorder(program.name, 0.0)
        summary = None
        if not self.build.whole:
            mode = self.build.modes[0]
            texts = problem.summaries(self.pool, [program], [mode])
            summary = texts.get((program.name, mode))
        modes = search_modes(self.build)
        builder = self.build.incremental(self.pool, program, policy, modes, summary)
        try:
            first = builder.build({})
            recorder = Recorder(program.name, first.total)
            state = State(curve=(Point.of(builder.compiles, first),))
            search(
                builder,
                moves_of(problem, summary),
                state,
                self.settings,
                self.seed * 1000 + number,
                observe=recorder.observe,
                enough=lambda: len(recorder) >= self.rows,
            )
        except BuildError as error:
            self.tally.fail(f"{program.name}: {error}")
        finally:
            self.tally.count(builder.rollouts)
            builder.close()
        if self.pool.cancelled:  # what failed for this reason is no result of the search
            raise CancelledError
        return recorder.trials()


def start_digest(policy: Policy | None) -> str:
    """Return the digest of the policy that a search starts from, zeros for the default."""
    return "0" * 64 if policy is None else bundle.digest(policy)
