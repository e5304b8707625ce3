"""``nestor train``: make a policy."""

import dataclasses
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

from nestor import __version__
from nestor.cli.console import print_json, progress, stdout
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from nestor.learn import experience
from nestor.learn.behavioural_cloning import BehaviouralCloning, CloningSettings
from nestor.learn.distil import DISTIL_FEATURES, Distil, DistilSettings
from nestor.learn.evolution_strategies import EvolutionSettings, EvolutionStrategies
from nestor.learn.experience import Known, Tally
from nestor.learn.searches import Searches, largest_programs
from nestor.learn.training import Cost, Meter, Result, Run, train
from nestor.learn.validation import judge, mean_change
from nestor.policy import bundle
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import Policy
from nestor.problems.inlining_size import INLINING_SIZE
from nestor.progress import Progress
from nestor.rollout.pool import Pool, PoolSettings
from nestor.tune.search import SearchSettings

RELEASE_FEATURES = (
    "cost_estimate",
    "nr_ctant_params",
    "callee_basic_block_count",
    "caller_basic_block_count",
    "callee_conditionally_executed_blocks",
    "caller_conditionally_executed_blocks",
)
"""Features that cost the compiler next to nothing (docs/how-it-works.md)."""


@dataclass(frozen=True)
class InliningSize:
    r"""Train an inlining policy that makes linked programs smaller.

    Learners:
        distil  search every program, learn what leaving the default saves, search again
        bc      behavioural cloning of the default heuristic, the warm start of es
        es      evolution strategies from --init, scored by linked bytes

    Only projects in the corpus's split "train" are looked at. The folder --out gets
    policy.safetensors, curves for TensorBoard, run.json, result.json and a checkpoint: a run that
    is killed goes on where it was when the same command is given again, and ends with the same
    bytes.

    Examples:
        nestor train inlining-size --corpus corpus/bench --out runs/distil
        nestor train inlining-size --corpus corpus/tiny --out runs/bc --learner bc
        nestor train inlining-size --corpus corpus/tiny --out runs/es --learner es \
            --init runs/bc/policy.safetensors --es.steps 40
    """

    corpus: Path
    """The corpus to learn from."""
    out: Path
    """The run's folder."""
    learner: Literal["distil", "bc", "es"] = "distil"
    """The algorithm."""
    init: Path | None = None
    """The policy to start from (needed by es)."""
    trials: Path | None = None
    """Folder of the trials, which runs may share (distil only; default: OUT/trials)."""
    seed: int = 0
    """Seed of everything random."""
    features: tuple[str, ...] = ()
    """Features that the policy reads (default: cheap ones; es keeps those of --init)."""
    distil: DistilSettings = field(default_factory=DistilSettings)
    """Distillation."""
    bc: CloningSettings = field(default_factory=CloningSettings)
    """Behavioural cloning."""
    es: EvolutionSettings = field(default_factory=EvolutionSettings)
    """Evolution strategies."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Train and print what came of it."""
        meter, tally = Meter(), Tally()
        corpus = store.load(self.corpus)
        with progress() as report:
            plugin = ready_plugin(self.llvm, report)
            with Pool(corpus, plugin, self.pool) as pool:
                identity = self._identity(corpus, pool)
                run = Run(self.out, identity)
                learn = {"distil": self._distil, "bc": self._clone, "es": self._evolve}
                result, extra = learn[self.learner](pool, run, tally, report)
        policy = _with_provenance(result.policy, identity)
        path = self.out / "policy.safetensors"
        bundle.save(policy, path)
        self._print(path, policy, result, extra, meter.read(tally), tally)
        return 0

    def _identity(self, corpus: Corpus, pool: Pool) -> dict[str, Any]:
        settings: dict[str, Any] = asdict(getattr(self, self.learner))
        start = _load_start(self.init) if self.learner == "es" else None
        return {
            "nestor": __version__,
            "problem": INLINING_SIZE.name,
            "learner": self.learner,
            "settings": json.loads(json.dumps(settings)),
            "seed": self.seed,
            "features": list(start.features if start else self._features()),
            "init": bundle.digest(start) if start else None,
            "corpus": corpus.digest,
            "compiler": pool.plugin.toolchain.build_id,
            "plugin": pool.plugin.digest,
        }

    def _features(self) -> tuple[str, ...]:
        return self.features or (DISTIL_FEATURES if self.learner == "distil" else RELEASE_FEATURES)

    def _distil(
        self, pool: Pool, run: Run, tally: Tally, report: Progress
    ) -> tuple[Result, dict[str, Any]]:
        programs = largest_programs(experience.training_programs(pool.corpus))
        held_back = largest_programs(pool.corpus.programs_of("validation"))
        searches = Searches(
            pool,
            programs,
            SearchSettings(compiles=self.distil.compiles),
            self.distil.trials,
            self.seed,
            self.trials or self.out / "trials",
            tally,
            report,
        )
        changes = judge(pool, held_back, tally, self.out / "validation", report)
        # Without validation programs there is nothing to choose a candidate by.
        candidates = self.distil.candidates if held_back else 1
        learner = Distil(
            dataclasses.replace(self.distil, candidates=candidates),
            self.seed,
            self._features(),
            searches,
            lambda policy: mean_change(changes(policy)),
        )
        return train(learner, run, report, "Distilling"), {"training_programs": len(programs)}

    def _clone(
        self, pool: Pool, run: Run, tally: Tally, report: Progress
    ) -> tuple[Result, dict[str, Any]]:
        modules = pool.corpus.modules_of("train")
        rolled = experience.default_rollouts(pool, modules, tally, report).values()
        logs = [r.trajectory for r in rolled if r.trajectory is not None]
        features = self._features()
        x = np.concatenate([log.matrix(features) for log in logs])
        default = [INLINING_SIZE.default_tensor]
        answers = np.concatenate([log.matrix(default)[:, 0] for log in logs])
        learner = BehaviouralCloning.fit(self.bc, self.seed, features, x, answers)
        result = train(learner, run, report, "Cloning the default heuristic")
        agreement = float((result.policy.decide(x) == (answers > 0)).mean())
        return result, {"decisions": len(x), "agreement": agreement}

    def _evolve(
        self, pool: Pool, run: Run, tally: Tally, report: Progress
    ) -> tuple[Result, dict[str, Any]]:
        start = _load_start(self.init)
        programs = experience.training_programs(pool.corpus)
        stock = experience.baseline(pool, programs, report)
        modules = experience.modules_of(pool.corpus, stock.programs)
        defaults = experience.default_rollouts(pool, modules, tally, report)
        known = {
            name: Known.of(rolled, INLINING_SIZE, start.features)
            for name, rolled in defaults.items()
        }
        compare = experience.comparer(pool, stock, known, tally)
        deviation = experience.deviation(known)
        projects = tuple(program.project for program in stock.programs)
        learner = EvolutionStrategies(self.es, self.seed, start, projects, compare, deviation)
        result = train(learner, run, report, "Evolving")
        (changes,) = compare([result.policy])
        return result, {
            "training_programs": {
                p.name: float(100 * c) for p, c in zip(stock.programs, changes, strict=True)
            }
        }

    def _print(
        self,
        path: Path,
        policy: Policy,
        result: Result,
        extra: dict[str, Any],
        cost: Cost,
        tally: Tally,
    ) -> None:
        summary = {
            "policy": str(path),
            "digest": bundle.digest(policy),
            "resumed_at": result.resumed_at,
            **extra,
            "cost": asdict(cost)
            | {
                "overhead": cost.overhead,
                "rollouts_per_cpu_second": cost.rollouts_per_cpu_second,
            },
            "reused": tally.reused,
            "failures": tally.reasons,
            "metrics": dict(result.last_metrics),
        }
        (self.out / "result.json").write_text(json.dumps(summary, indent=2))
        if self.json:
            print_json(summary)
            return
        stdout.print(f"policy     {path}", soft_wrap=True)
        for name, value in extra.items():
            if isinstance(value, dict):
                for program, change in value.items():
                    stdout.print(f"  {program:40} {change:+.2f} %", soft_wrap=True)
            else:
                stdout.print(f"{name:10} {value:,}")
        stdout.print(
            f"cost       {cost.rollouts:,} rollouts ({tally.reused:,} more were known without"
            f" compiling), {cost.failures} failed,"
            f" {cost.rollouts_per_cpu_second:.1f} rollouts per CPU-second;"
            f" learning and orchestration {100 * cost.overhead:.1f} % of"
            f" {cost.own_seconds + cost.compiler_seconds:.0f} CPU-seconds;"
            f" {cost.wall_seconds:.0f} s",
            soft_wrap=True,
        )
        for what, count in tally.reasons.items():
            stdout.print(f"  failed {count}×: {what}", soft_wrap=True, markup=False)


def _load_start(init: Path | None) -> MlpPolicy:
    if init is None:
        raise NestorError(
            "Evolution strategies need a policy to start from: train one with --learner bc, then"
            " pass it with --init."
        )
    policy = bundle.load(init)
    if not isinstance(policy, MlpPolicy):
        raise NestorError(f"{init} is no network; evolution strategies move a network's weights.")
    return policy


def _with_provenance(policy: Policy, identity: dict[str, Any]) -> Policy:
    return dataclasses.replace(
        policy, metadata=dataclasses.replace(policy.metadata, provenance=identity)
    )
