"""Compare a policy with the stock compiler, program by program, by what the linker keeps.

Every module is compiled three times: stock and under the policy, side by side so that their CPU
times compare, and once more under the policy with a log, which counts the decisions and must
give the same object again. Failures are results: counted, named and never dropped.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from nestor.corpus.model import Corpus, CorpusError, Program, Split
from nestor.corpus.relink import LinkMode
from nestor.evaluate.statistics import (
    change_pct,
    geometric_mean_change_pct,
    paired_bootstrap_pct,
)
from nestor.progress import Progress, silent
from nestor.rewards.linked_size import link, shares
from nestor.rollout.policy_file import PolicyFile
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request, Rollout

Side = Literal["stock", "policy", "logged"]
SIDES: tuple[Side, ...] = get_args(Side)


@dataclass(frozen=True)
class Sizes:
    """Loadable bytes of one program."""

    object: int
    """Sum over the objects of its modules."""
    linked: int
    """Of the linked program."""
    text: int
    """Code bytes of the linked program."""
    modules: Mapping[str, float]
    """What of ``linked`` is each module's, by the shares of ``rewards.linked_size``."""

    def to_json(self) -> dict[str, int]:
        """Return the sizes of the whole program."""
        return {"object": self.object, "linked": self.linked, "text": self.text}


@dataclass(frozen=True)
class ProgramResult:
    """One program under both compilers; a side that could not be linked is None."""

    name: str
    project: str
    language: str
    stock: Sizes | None
    policy: Sizes | None

    @property
    def linked_change_pct(self) -> float | None:
        """Change of the linked bytes; None if a side failed."""
        if self.stock is None or self.policy is None:
            return None
        return change_pct(self.stock.linked, self.policy.linked)

    def modules(self) -> list[dict[str, Any]]:
        """Return each module's bytes of the linked program, the worst growth first."""
        if self.stock is None or self.policy is None:
            return []
        before, after = self.stock.modules, self.policy.modules
        names = sorted(before, key=lambda name: (before[name] - after[name], name))
        return [
            {"name": n, "stock": round(before[n], 1), "policy": round(after[n], 1)} for n in names
        ]


@dataclass(frozen=True)
class Failure:
    """Something that did not work."""

    what: str
    """A module or a program."""
    side: str
    reason: str


@dataclass(frozen=True)
class Evaluation:
    """A policy against stock on some programs of a corpus."""

    policy: str
    mode: LinkMode
    programs: tuple[ProgramResult, ...]
    """Worst regression first; failed programs before all."""
    failures: tuple[Failure, ...]
    compile_cpu_ratio: float | None
    """CPU seconds under the policy over stock, of the modules that both compiled."""
    decisions: int
    growth_capped: tuple[str, ...]
    """Modules in which the advisor stopped asking because the module had doubled."""
    hashes: Mapping[str, str]

    @property
    def compared(self) -> tuple[tuple[ProgramResult, Sizes, Sizes], ...]:
        """The programs that both sides linked."""
        return tuple(
            (p, p.stock, p.policy)
            for p in self.programs
            if p.stock is not None and p.policy is not None
        )

    def total(self) -> dict[str, Any]:
        """Return the change over all programs that both sides linked."""
        rows = self.compared
        if not rows:
            return {
                "object_change_pct": None,
                "linked_change_pct": None,
                "ci95": None,
                "linked_geomean_pct": None,
            }
        stock = [s.linked for _, s, _ in rows]
        policy = [p.linked for _, _, p in rows]
        return {
            "object_change_pct": change_pct(
                sum(s.object for _, s, _ in rows), sum(p.object for _, _, p in rows)
            ),
            "linked_change_pct": change_pct(sum(stock), sum(policy)),
            "ci95": list(paired_bootstrap_pct([r.project for r, _, _ in rows], stock, policy)),
            "linked_geomean_pct": geometric_mean_change_pct(stock, policy),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data (docs/formats.md)."""
        return {
            "policy": self.policy,
            "link_mode": self.mode,
            "programs": [
                {
                    "name": p.name,
                    "project": p.project,
                    "language": p.language,
                    "stock": p.stock.to_json() if p.stock else None,
                    "policy": p.policy.to_json() if p.policy else None,
                    "linked_change_pct": p.linked_change_pct,
                    "modules": p.modules(),
                }
                for p in self.programs
            ],
            "total": self.total(),
            "compile_cpu_ratio": self.compile_cpu_ratio,
            "decisions": self.decisions,
            "growth_capped": list(self.growth_capped),
            "failures": [asdict(f) for f in self.failures],
            "hashes": dict(self.hashes),
        }


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
    policy: PolicyFile,
    *,
    mode: LinkMode = "gc",
    progress: Progress = silent,
) -> Evaluation:
    """Compile and link ``programs`` stock and under ``policy`` and compare them."""
    corpus = pool.corpus
    names = list(dict.fromkeys(chain.from_iterable(p.modules for p in programs)))
    with tempfile.TemporaryDirectory(prefix="nestor-evaluate-") as text:
        folder = Path(text)
        requests = [
            Request(
                corpus.module(name),
                policy=None if side == "stock" else policy.argument,
                log=side == "logged",
                keep=folder / side / f"{number}.o",
            )
            for number, name in enumerate(names)
            for side in SIDES
        ]
        results = pool.run(requests, progress, f"Compiling stock and {policy.name}")
        by_side = {
            side: dict(zip(names, results[i::3], strict=True)) for i, side in enumerate(SIDES)
        }
        failures = list(_compile_failures(by_side))
        outcomes = []
        for number, program in enumerate(programs):
            progress("Linking", number, len(programs))
            sides: dict[Side, Sizes | None] = {}
            for side in ("stock", "policy"):
                sides[side], failed = _linked(pool, program, by_side[side], mode)
                failures += [Failure(program.name, side, failed)] if failed else []
            outcomes.append(
                ProgramResult(
                    program.name,
                    program.project,
                    program.language,
                    sides["stock"],
                    sides["policy"],
                )
            )
        progress("Linking", len(programs), len(programs))
    logged = [r for r in by_side["logged"].values() if r.trajectory is not None]
    return Evaluation(
        policy=policy.name,
        mode=mode,
        programs=tuple(sorted(outcomes, key=_worst_first)),
        failures=tuple(failures),
        compile_cpu_ratio=_cpu_ratio(by_side["stock"], by_side["policy"]),
        decisions=sum(len(r.trajectory) for r in logged if r.trajectory),
        growth_capped=tuple(
            r.request.module.name
            for r in logged
            if r.trajectory and r.trajectory.growth_cap_reached
        ),
        hashes={
            "corpus": corpus.digest,
            "compiler": pool.plugin.toolchain.build_id,
            "plugin": pool.plugin.digest,
            "policy": policy.digest,
        },
    )


def _compile_failures(by_side: Mapping[Side, Mapping[str, Rollout]]) -> Iterator[Failure]:
    for side, rollouts in by_side.items():
        for name, done in rollouts.items():
            if done.failure is not None:
                yield Failure(name, side, done.failure)
    for name, released in by_side["policy"].items():
        logged = by_side["logged"][name]
        if released.measure and logged.measure and _bytes(released) != _bytes(logged):
            yield Failure(name, "logged", "another object than without the log; please report this")


def _bytes(done: Rollout) -> bytes:
    return done.request.keep.read_bytes() if done.request.keep else b""


def _linked(
    pool: Pool, program: Program, rollouts: Mapping[str, Rollout], mode: LinkMode
) -> tuple[Sizes | None, str | None]:
    objects = {
        name: done.request.keep
        for name, done in rollouts.items()
        if name in program.modules and done.ok and done.request.keep
    }
    linked = link(
        pool.plugin.toolchain,
        pool.corpus,
        program,
        objects,
        mode=mode,
        want_kept=True,
        limits=pool.limits,
    )
    if linked.measure is None:
        return None, linked.failure
    measures = {name: m for name in program.modules if (m := rollouts[name].measure)}
    weights = shares(program, linked, measures)
    return Sizes(
        object=sum(m.loadable for m in measures.values()),
        linked=linked.measure.loadable,
        text=linked.measure.text,
        modules={name: weights.score(name, m) for name, m in measures.items()},
    ), None


def _cpu_ratio(stock: Mapping[str, Rollout], policy: Mapping[str, Rollout]) -> float | None:
    both = [name for name in stock if stock[name].ok and policy[name].ok]
    before = sum(stock[name].cpu_seconds for name in both)
    return sum(policy[name].cpu_seconds for name in both) / before if before > 0 else None


def _worst_first(result: ProgramResult) -> tuple[bool, float, str]:
    change = result.linked_change_pct
    return (change is not None, -(change or 0.0), result.name)
