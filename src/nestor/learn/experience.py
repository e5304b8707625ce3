"""Where learners get what they learn from: trajectories, scores and checks by compiling."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nestor.compiler.objects import measure
from nestor.compiler.trajectory_log import Trajectory
from nestor.corpus.model import Corpus, CorpusError, Module, Program
from nestor.learn.evolution_strategies import Check, Checked, Compile, Perturbed
from nestor.policy import bundle
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent
from nestor.rewards.linked_size import Shares, link, shares
from nestor.rollout.cache import baselines
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool
from nestor.rollout.rollout import Request, Rollout

F64 = npt.NDArray[np.float64]


@dataclass
class Tally:
    """What a run's compiles came to; the only mutable thing in it, and only counted up."""

    rollouts: int = 0
    failures: int = 0
    compiler_seconds: float = 0.0
    reasons: dict[str, int] | None = None

    def add(self, rollouts: Sequence[Rollout]) -> None:
        """Count ``rollouts``."""
        self.rollouts += len(rollouts)
        self.compiler_seconds += sum(r.cpu_seconds for r in rollouts)
        for failed in (r for r in rollouts if not r.ok):
            self.failures += 1
            self.reasons = self.reasons or {}
            what = f"{failed.request.module.name}: {failed.failure}"
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


def default_trajectories(
    pool: Pool, modules: Sequence[Module], tally: Tally, progress: Progress = silent
) -> dict[str, Trajectory]:
    """Return what the default heuristic decides in each module; those that fail are absent.

    :raises CorpusError: if there is not one decision to learn from.
    """
    requests = [Request(module, "default", log=True) for module in modules]
    done = pool.run(requests, progress, "Recording the default heuristic")
    tally.add(done)
    logs = {r.request.module.name: r.trajectory for r in done if r.trajectory is not None}
    if not any(len(log) for log in logs.values()):
        reasons = "; ".join(sorted(tally.reasons or {})[:3]) or "nothing to inline"
        raise CorpusError(f"No module of the corpus gave a decision to learn from: {reasons}.")
    return logs


@dataclass(frozen=True)
class Scoring:
    """What the training programs weigh under stock, and what each function is worth."""

    programs: tuple[Program, ...]
    stock: F64
    """Linked bytes by program."""
    shares: Shares


def scoring(pool: Pool, programs: Sequence[Program], progress: Progress = silent) -> Scoring:
    """Link the baselines (cached by content): stock for the sizes, never-inline for the shares.

    Programs whose baselines fail are left out; :raises CorpusError: if none is left.
    """
    modules = modules_of(pool.corpus, programs)
    never = policy_file("never").argument
    stock_objects = baselines(pool, modules, None, progress, "Compiling stock")
    never_objects = baselines(pool, modules, never, progress, "Compiling without inlining")
    usable, stock, links = [], [], []
    toolchain = pool.plugin.toolchain
    for number, program in enumerate(programs):
        progress("Linking the baselines", number, len(programs))
        plain = link(toolchain, pool.corpus, program, stock_objects, limits=pool.limits)
        outlined = link(
            toolchain, pool.corpus, program, never_objects, want_kept=True, limits=pool.limits
        )
        if plain.measure is not None and outlined.measure is not None:
            usable.append(program)
            stock.append(plain.measure.loadable)
            links.append((program, outlined))
    progress("Linking the baselines", len(programs), len(programs))
    if not usable:
        raise CorpusError("None of the training programs can be linked; try 'nestor evaluate'.")
    sizes = {name: measure(path) for name, path in never_objects.items()}
    return Scoring(tuple(usable), np.asarray(stock, np.float64), shares(links, sizes))


def compile_and_score(pool: Pool, scored: Scoring, template: MlpPolicy, tally: Tally) -> Compile:
    """Return the function that scores perturbed parameters by the shares of linked bytes."""

    def run(tasks: Sequence[Perturbed]) -> list[float]:
        with tempfile.TemporaryDirectory(prefix="nestor-policies-") as folder:
            requests = [
                Request(
                    pool.corpus.module(task.module),
                    _write(template, task.parameters, Path(folder) / f"{number}.safetensors"),
                )
                for number, task in enumerate(tasks)
            ]
            done = pool.run(requests)
        tally.add(done)
        return [
            scored.shares.score(r.request.module.name, r.measure) if r.measure else float("nan")
            for r in done
        ]

    return run


def greedy_check(pool: Pool, scored: Scoring, tally: Tally) -> Check:
    """Return the function that compiles and links the training programs under a policy."""
    modules = modules_of(pool.corpus, scored.programs)

    def run(policy: Policy) -> Checked:
        with tempfile.TemporaryDirectory(prefix="nestor-check-") as text:
            folder = Path(text)
            path = folder / "policy.safetensors"
            bundle.save(policy, path)
            keep = {m.name: folder / f"{number}.o" for number, m in enumerate(modules)}
            done = pool.run([Request(m, path, keep=keep[m.name]) for m in modules])
            tally.add(done)
            objects = {r.request.module.name: keep[r.request.module.name] for r in done if r.ok}
            sizes = [
                link(pool.plugin.toolchain, pool.corpus, p, objects, limits=pool.limits).measure
                for p in scored.programs
            ]
        linked = np.array([m.loadable if m else np.nan for m in sizes])
        return Checked((linked - scored.stock) / scored.stock)

    return run


def _write(template: MlpPolicy, parameters: F64, path: Path) -> Path:
    path.write_bytes(bundle.to_bytes(template.with_parameters(parameters.astype(np.float32))))
    return path
