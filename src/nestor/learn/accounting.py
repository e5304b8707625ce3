"""Where learners get what they learn from: trajectories, scores and checks by compiling."""

import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nestor.compiler.objects import Measure
from nestor.corpus.model import Corpus, CorpusError, Module, Program
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.problems.problem import Problem
from nestor.progress import Progress, silent
from nestor.rewards.linked_size import link
from nestor.rollout.cache import baselines
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request, Rollout

F64 = npt.NDArray[np.float64]


@dataclass
class Tally:
    """What a run's compiles came to; only ever counted up."""

    rollouts: int = 0
    reused: int = 0
    """Rollouts whose outcome was known without compiling."""
    failures: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    """How often what failed for which reason."""
    prices: Mapping[str, float] = field(default_factory=dict, repr=False)
    """CPU seconds by module and program; what is not listed costs nothing."""
    microseconds: int = 0
    """What the compiles and links cost by the prices; whole, so that sums are exact."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, rollouts: Sequence[Rollout]) -> None:
        """Count ``rollouts``, and what they cost."""
        self.count(len(rollouts))
        self.charge([rolled.request.module.name for rolled in rollouts])
        for failed in (r for r in rollouts if not r.ok):
            self.fail(f"{failed.request.module.name}: {failed.failure}")

    def count(self, rollouts: int) -> None:
        """Count so many rollouts; from any thread."""
        with self._lock:
            self.rollouts += rollouts

    def charge(self, names: Sequence[str]) -> None:
        """Count the prices of a compile of each module and of a link of each program named."""
        cost = sum(round(1e6 * self.prices.get(name, 0.0)) for name in names)
        with self._lock:
            self.microseconds += cost

    def fail(self, what: str) -> None:
        """Count one failure; from any thread."""
        with self._lock:
            self.failures += 1
            self.reasons[what] = self.reasons.get(what, 0) + 1


def training_programs(corpus: Corpus) -> tuple[Program, ...]:
    """Return the programs that a learner may look at.

    :raises CorpusError: if the corpus has none.
    """
    programs = corpus.programs_of("train")
    if not programs:
        raise CorpusError(
            f"The corpus {corpus.root} has no programs in the split train, so nothing can be"
            " scored; 'nestor corpus info' shows its splits."
        )
    return programs


def modules_of(corpus: Corpus, programs: Sequence[Program]) -> tuple[Module, ...]:
    """Return the modules of ``programs``, each once."""
    names = dict.fromkeys(name for program in programs for name in program.modules)
    return tuple(corpus.module(name) for name in names)


def default_rollouts(
    pool: Pool, modules: Sequence[Module], tally: Tally, progress: Progress = silent
) -> dict[str, Rollout]:
    """Return what the default heuristic does in each module; those that fail are absent.

    :raises CorpusError: if there is not one decision to learn from.
    """
    requests = [Request(module, "default", log=True) for module in modules]
    done = pool.run(requests, progress, "Recording the default heuristic")
    tally.add(done)
    if not any(len(r.trajectory) for r in done if r.trajectory is not None):
        reasons = "; ".join(sorted(tally.reasons)[:3]) or "nothing to inline"
        raise CorpusError(f"No module of the corpus gave a decision to learn from: {reasons}.")
    return {r.request.module.name: r for r in done if r.ok}


@dataclass(frozen=True)
class Baseline:
    """The training programs under stock."""

    programs: tuple[Program, ...]
    linked: F64
    """Linked bytes by program."""
    objects: dict[str, Path]
    """The stock object of each module."""


def baseline(pool: Pool, programs: Sequence[Program], progress: Progress = silent) -> Baseline:
    """Compile (cached by content) and link the programs by the stock compiler.

    Programs that fail are left out; :raises CorpusError: if none is left.
    """
    modules = modules_of(pool.corpus, programs)
    objects = baselines(pool, modules, None, progress, "Compiling stock")

    def sizes(program: Program) -> Measure | None:
        return link(
            pool.plugin.toolchain, pool.corpus, program, objects, limits=pool.limits
        ).measure

    linked = pool.map(sizes, programs, progress, "Linking stock")
    usable = [(p, m.loadable) for p, m in zip(programs, linked, strict=True) if m is not None]
    if not usable:
        raise CorpusError("None of the training programs can be linked; try 'nestor evaluate'.")
    return Baseline(
        tuple(program for program, _ in usable),
        np.array([size for _, size in usable], dtype=np.float64),
        objects,
    )


@dataclass(frozen=True)
class Known:
    """A trajectory whose object is known.

    The features of a decision follow from the decisions before it. So a policy that gives the
    known answer to every question of a known trajectory is asked just these questions, and its
    compile need not be made.
    """

    features: F64
    """``[decisions, policy features]``."""
    answers: npt.NDArray[np.bool_]

    @staticmethod
    def of(rolled: Rollout, problem: Problem, features: Sequence[str]) -> "Known":
        """Take the trajectory of a logged rollout of the default heuristic."""
        log = rolled.trajectory
        if log is None:
            raise ValueError("the rollout was not logged")
        return Known(log.matrix(features), log.matrix([problem.default_tensor])[:, 0] > 0)

    def deviations(self, policy: Policy) -> int:
        """Return how many of these questions ``policy`` answers differently."""
        return int((policy.answer(self.features) != self.answers).sum())

    def holds_for(self, policy: Policy) -> bool:
        """Tell whether ``policy`` would take this trajectory."""
        return self.deviations(policy) == 0


def deviation(known: Mapping[str, Known]) -> Callable[[Policy], float]:
    """Return the function that gives the part of all known questions answered differently."""
    total = sum(len(trajectory.answers) for trajectory in known.values())

    def part(policy: Policy) -> float:
        return sum(trajectory.deviations(policy) for trajectory in known.values()) / total

    return part


def comparer(
    pool: Pool, stock: Baseline, known: Mapping[str, Known], tally: Tally
) -> Callable[[Sequence[Policy]], F64]:
    """Return the function that links the training programs under policies.

    It gives the relative change of each program against stock, ``[policies, programs]``, NaN
    where a compile or a link failed. Modules of which a policy is known to make the stock object
    are not compiled, and programs of stock objects are not linked.

    :param known: the default heuristic's trajectory by module, for the policies' features.
    """
    modules = modules_of(pool.corpus, stock.programs)

    def run(policies: Sequence[Policy]) -> F64:
        with tempfile.TemporaryDirectory(prefix="nestor-compare-") as text:
            folder = Path(text)
            requests, owners = [], []
            for number, policy in enumerate(policies):
                path = folder / f"{number}.safetensors"
                path.write_bytes(bundle.to_bytes(policy))
                for index, module in enumerate(modules):
                    if module.name in known and known[module.name].holds_for(policy):
                        tally.reused += 1
                        continue
                    keep = folder / f"{number}-{index}.o"
                    requests.append(Request(module, path, keep=keep))
                    owners.append(number)
            done = pool.run(requests)
            tally.add(done)
            changed: list[dict[str, Path | None]] = [{} for _ in policies]
            for number, rolled in zip(owners, done, strict=True):
                changed[number][rolled.request.module.name] = (
                    rolled.request.keep if rolled.ok else None
                )

            def change(pair: tuple[int, int]) -> float:
                program, new = stock.programs[pair[1]], changed[pair[0]]
                if not any(name in new for name in program.modules):
                    return 0.0
                objects = stock.objects | new
                usable = {name: path for name, path in objects.items() if path is not None}
                linked = link(
                    pool.plugin.toolchain, pool.corpus, program, usable, limits=pool.limits
                )
                if linked.measure is None:
                    return float("nan")
                before = float(stock.linked[pair[1]])
                return (linked.measure.loadable - before) / before

            pairs = [(i, j) for i in range(len(policies)) for j in range(len(stock.programs))]
            changes = pool.map(change, pairs)
            tally.charge(
                [
                    stock.programs[j].name
                    for i, j in pairs
                    if any(name in changed[i] for name in stock.programs[j].modules)
                ]
            )
        return np.array(changes).reshape(len(policies), len(stock.programs))

    return run
