"""Compare policies with the stock compiler, program by program, by what the linker keeps.

Every module is compiled stock and, under each policy, twice: as in use, side by side with stock
so that their CPU times compare, and once more with a log, which counts the decisions and must
give the same object again. Failures are results: counted, named and never dropped.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from nestor.corpus.model import Corpus, CorpusError, Program, Split
from nestor.corpus.relink import LinkMode
from nestor.evaluate.groups import style_group
from nestor.evaluate.result import (
    Evaluation,
    Failure,
    ProgramResult,
    Sizes,
    SmokeTests,
    worst_first,
)
from nestor.evaluate.smoke import compare_runs
from nestor.progress import Progress, silent
from nestor.rewards.linked_size import link, shares
from nestor.rollout.policy_file import PolicyFile
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request, Rollout
from nestor.rollout.summaries import Summaries, reads_program, summaries

Item = TypeVar("Item")


@dataclass(frozen=True)
class EvaluateSettings:
    """What is evaluated besides the policies."""

    modes: tuple[LinkMode, ...] = ("gc",)
    """How to link."""
    overrides: Path | None = None
    """Answers that stand above every policy's."""
    summary: bool = False
    """Tell policies that read it what the rest of the program does; a module of several programs
    is then compiled for each."""
    smoke: bool = False
    """Run the programs briefly: foreign code."""


def select_programs(corpus: Corpus, split: Split | Literal["all"] | None) -> tuple[Program, ...]:
    """Return the programs to judge by: those of ``split``, or the held-out ones.

    :param split: None takes the test split, or everything in a corpus that has none.
    :raises CorpusError: if there are none.
    """
    if split is None:
        programs = corpus.programs_of("test") or corpus.programs
    else:
        programs = corpus.programs if split == "all" else corpus.programs_of(split)
    if not programs:
        raise CorpusError(
            f"The corpus {corpus.root} has no programs to link"
            f"{f' in the split {split}' if split else ''}: capture a build that links, or take "
            "another --split."
        )
    return programs


def evaluate(
    pool: Pool,
    programs: Sequence[Program],
    policies: Sequence[PolicyFile],
    settings: EvaluateSettings | None = None,
    progress: Progress = silent,
) -> tuple[Evaluation, ...]:
    """Compile and link ``programs`` stock and under each policy and compare them.

    Return an evaluation for each policy and, within it, for each link mode.
    """
    settings = settings or EvaluateSettings()
    with tempfile.TemporaryDirectory(prefix="nestor-evaluate-") as text:
        session = _Session(pool, programs, policies, settings, Path(text), progress)
        return tuple(session.evaluation(p, mode) for p, mode in product(policies, settings.modes))


class _Sides(NamedTuple, Generic[Item]):
    """One module for one policy: its compiles, or what became of them."""

    stock: Item
    policy: Item
    logged: Item


@dataclass(frozen=True)
class _Linked:
    """A program under one compiler, linked in one mode."""

    sizes: Sizes | None
    failure: str | None
    binary: Path


class _Session:
    """Every compile and link that the evaluations need, each done once."""

    def __init__(
        self,
        pool: Pool,
        programs: Sequence[Program],
        policies: Sequence[PolicyFile],
        settings: EvaluateSettings,
        folder: Path,
        progress: Progress,
    ):
        self._pool = pool
        self._programs = programs
        self._settings = settings
        self._folder = folder
        self._progress = progress
        self._summaries: Summaries = {}
        if settings.summary and any(reads_program(p.policy) for p in policies):
            where = folder / "summaries"
            self._summaries = summaries(pool, programs, settings.modes, where, progress)
        self._rollouts = self._compile(policies)
        links = list(product((None, *policies), settings.modes, programs))
        done = pool.map(lambda item: self._link(*item), links, progress, "Linking")
        self._linked = {
            (policy.name if policy else None, mode, program.name): linked
            for (policy, mode, program), linked in zip(links, done, strict=True)
        }

    def evaluation(self, policy: PolicyFile, mode: LinkMode) -> Evaluation:
        """Put together what concerns one policy and mode."""
        rollouts = [
            _Sides(*(self._rollouts[request] for request in sides))
            for sides in self._wanted([policy], [mode])
        ]
        links = [
            (p, self._linked[None, mode, p.name], self._linked[policy.name, mode, p.name])
            for p in self._programs
        ]
        smoke, broken = self._smoke(links) if self._settings.smoke else (None, [])
        logs = [(r.logged.request.module.name, r.logged.trajectory) for r in rollouts]
        return Evaluation(
            policy=policy.name,
            mode=mode,
            summary=self._settings.summary and reads_program(policy.policy),
            programs=tuple(sorted((self._result(*row) for row in links), key=worst_first)),
            failures=(*_compile_failures(rollouts), *_link_failures(links), *broken),
            compile_cpu_ratio=_cpu_ratio(rollouts),
            decisions=sum(len(log) for _, log in logs if log),
            growth_capped=tuple(
                dict.fromkeys(name for name, log in logs if log and log.growth_cap_reached)
            ),
            smoke=smoke,
            hashes=self._hashes(policy),
        )

    def _request(
        self, name: str, policy: PolicyFile | None, mode: LinkMode, program: Program
    ) -> Request:
        module = self._pool.corpus.module(name)
        if policy is None:
            return Request(module)
        reads = reads_program(policy.policy)
        return Request(
            module,
            policy.argument,
            overrides=self._settings.overrides,
            program=self._summaries.get((program.name, mode)) if reads else None,
        )

    def _wanted(
        self, policies: Sequence[PolicyFile], modes: Sequence[LinkMode]
    ) -> list[_Sides[Request]]:
        """Return the compiles for some policies and modes, module by module, equal ones once."""
        users: dict[str, list[Program]] = {}
        for program in self._programs:
            for name in program.modules:
                users.setdefault(name, []).append(program)
        wanted: dict[_Sides[Request], None] = {}
        for name, using in users.items():
            for policy, mode, program in product(policies, modes, using):
                stock = self._request(name, None, mode, program)
                used = self._request(name, policy, mode, program)
                wanted[_Sides(stock, used, replace(used, log=True))] = None
        return list(wanted)

    def _compile(self, policies: Sequence[PolicyFile]) -> dict[Request, Rollout]:
        # Side by side by module: what else the machine does then costs all sides the same.
        wanted = list(
            dict.fromkeys(chain.from_iterable(self._wanted(policies, self._settings.modes)))
        )
        kept = [
            replace(request, keep=self._folder / "objects" / f"{number}.o")
            for number, request in enumerate(wanted)
        ]
        stage = f"Compiling stock and {', '.join(p.name for p in policies)}"
        return dict(zip(wanted, self._pool.run(kept, self._progress, stage), strict=True))

    def _link(self, policy: PolicyFile | None, mode: LinkMode, program: Program) -> _Linked:
        rollouts = {
            name: self._rollouts[self._request(name, policy, mode, program)]
            for name in program.modules
        }
        objects = {n: r.request.keep for n, r in rollouts.items() if r.ok and r.request.keep}
        binary = Path(tempfile.mkdtemp(dir=self._folder)) / "program"
        linked = link(
            self._pool.plugin.toolchain,
            self._pool.corpus,
            program,
            objects,
            mode=mode,
            out=binary if self._settings.smoke else None,
            want_kept=True,
            limits=self._pool.limits,
        )
        if linked.measure is None:
            return _Linked(None, linked.failure, binary)
        measures = {name: r.measure for name, r in rollouts.items() if r.measure}
        weights = shares(program, linked, measures)
        sizes = Sizes(
            object=sum(m.loadable for m in measures.values()),
            linked=linked.measure.loadable,
            text=linked.measure.text,
            modules={name: weights.score(name, m) for name, m in measures.items()},
        )
        return _Linked(sizes, None, binary)

    def _result(self, program: Program, stock: _Linked, policy: _Linked) -> ProgramResult:
        return ProgramResult(
            program.name,
            program.project,
            program.language,
            self._pool.corpus.project(program.project).style,
            style_group(self._pool.corpus, program),
            stock.sizes,
            policy.sizes,
        )

    def _smoke(
        self, links: Sequence[tuple[Program, _Linked, _Linked]]
    ) -> tuple[SmokeTests, list[Failure]]:
        ready = [
            (program, stock.binary, policy.binary)
            for program, stock, policy in links
            if program.smoke and stock.sizes and policy.sizes
        ]
        done = self._pool.map(
            lambda item: compare_runs(self._pool.corpus, *item, self._pool.limits),
            ready,
            self._progress,
            "Running smoke tests",
        )
        failed = [failure for failure in done if failure is not None]
        count = SmokeTests(len(done) - len(failed), len(failed), len(links) - len(done))
        return count, failed

    def _hashes(self, policy: PolicyFile) -> dict[str, str | None]:
        overrides = self._settings.overrides
        text = overrides.read_bytes() if overrides else None
        return {
            "corpus": self._pool.corpus.digest,
            "compiler": self._pool.plugin.toolchain.build_id,
            "plugin": self._pool.plugin.digest,
            "policy": policy.digest,
            "overrides": None if text is None else hashlib.sha256(text).hexdigest(),
        }


def _compile_failures(rollouts: Sequence[_Sides[Rollout]]) -> Iterator[Failure]:
    found = dict.fromkeys(
        Failure(done.request.module.name, side, done.failure)
        for sides in rollouts
        for side, done in zip(_Sides._fields, sides, strict=True)
        if done.failure is not None
    )
    yield from found
    for _, used, logged in rollouts:
        if used.measure and logged.measure and _bytes(used) != _bytes(logged):
            yield Failure(
                used.request.module.name,
                "logged",
                "another object than without the log; please report this",
            )


def _link_failures(links: Sequence[tuple[Program, _Linked, _Linked]]) -> Iterator[Failure]:
    for program, *sides in links:
        for side, linked in zip(("stock", "policy"), sides, strict=True):
            if linked.failure is not None:
                yield Failure(program.name, side, linked.failure)


def _bytes(done: Rollout) -> bytes:
    return done.request.keep.read_bytes() if done.request.keep else b""


def _cpu_ratio(rollouts: Sequence[_Sides[Rollout]]) -> float | None:
    both = [sides for sides in rollouts if sides.stock.ok and sides.policy.ok]
    before = sum(sides.stock.cpu_seconds for sides in both)
    return sum(sides.policy.cpu_seconds for sides in both) / before if before > 0 else None
