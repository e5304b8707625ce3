"""``nestor train``: make a policy."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from nestor import __version__
from nestor.cli.console import print_json, progress, stdout
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.errors import NestorError
from nestor.learn.budget import Budget, Budgeted
from nestor.learn.experience import Tally
from nestor.learn.learners import LEARNERS, Entry
from nestor.learn.setup import Ready, Setup
from nestor.learn.training import Cost, Meter, Result, Run, train
from nestor.policy import builtin, bundle
from nestor.policy.spec import Policy
from nestor.problems.inlining_size import INLINING_SIZE
from nestor.rollout.pool import Pool, PoolSettings
from nestor.size import model as size_model

_BUDGETED = ", ".join(name for name, entry in LEARNERS.items() if entry.budgeted)

Settings = make_dataclass(
    "Settings",
    [
        (name.replace("-", "_"), entry.settings, field(default_factory=entry.settings))
        for name, entry in LEARNERS.items()
    ],
    frozen=True,
)
"""The options of every learner, under its name."""


@dataclass(frozen=True)
class InliningSize:
    r"""Train an inlining policy that makes linked programs smaller.

    Learners:
        distil     search every program, learn what leaving the default saves, search again
        bc         behavioural cloning of the default heuristic, the warm start of es
        es         evolution strategies from --init, scored by linked bytes, never worse than before
        ars, cma   augmented random search and CMA-ES over a linear policy
        reinforce  REINFORCE, each decision paid by the functions that it reaches
        ppo        the same by proximal policy optimisation (--ppo.preset mlgo: as published)
        dqn        deep Q-learning: the value of each answer
        best-of    imitation of the best of several policies, module by module (BC-Max)

    Only projects in the corpus's split "train" are looked at. The folder --out gets
    policy.safetensors, curves for TensorBoard, run.json, result.json and a checkpoint: a run that
    is killed goes on where it was when the same command is given again, and ends with the same
    bytes; one that is done goes on with a larger budget. 'nestor compare' sets runs side by side.

    Examples:
        nestor train inlining-size --corpus corpus/bench --out runs/distil
        nestor train inlining-size --corpus corpus/tiny --out runs/bc --learner bc
        nestor train inlining-size --corpus corpus/tiny --out runs/es --learner es \
            --init runs/bc/policy.safetensors --es.steps 40
        nestor train inlining-size --corpus corpus/bench --out runs/ppo --learner ppo \
            --budget.cpu-minutes 15
    """

    corpus: Path
    """The corpus to learn from."""
    out: Path
    """The run's folder."""
    learner: Annotated[str, tyro.conf.arg(metavar="{" + ",".join(LEARNERS) + "}")] = "distil"
    """The algorithm."""
    init: str | None = None
    """The policy to start from: a file or a built-in (needed by es, not for bc)."""
    trials: Path | None = None
    """Folder of the trials, which runs may share (distil only; default: OUT/trials)."""
    seed: int = 0
    """Seed of everything random."""
    features: tuple[str, ...] = ()
    """Features that the policy reads (default: the learner's choice, or those of --init)."""
    estimate: Path | None = None
    """A size model ('nestor sizes') that pays sampled compiles in place of code: they cost about
    half (not for distil, bc and es)."""
    budget: Budget = field(default_factory=Budget)
    """What ends the run besides the learner's steps (not for distil and bc)."""
    settings: Annotated[Settings, tyro.conf.arg(name="")] = field(  # type: ignore[valid-type]
        default_factory=Settings
    )
    """Each learner's own."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Train and print what came of it."""
        entry = self._entry()
        settings = getattr(self.settings, self.learner.replace("-", "_"))
        start = builtin.resolve(self.init) if self.init else None
        meter, tally = Meter(), Tally()
        corpus = store.load(self.corpus)
        with progress() as report:
            plugin = ready_plugin(self.llvm, report)
            with Pool(corpus, plugin, self.pool) as pool:
                setup = Setup(
                    pool=pool,
                    folder=self.out,
                    seed=self.seed,
                    tally=tally,
                    features=self.features,
                    init=start,
                    trials=self.trials,
                    budget=self.budget,
                    estimate=self.estimate,
                    progress=report,
                )
                ready: Ready = entry.set_up(settings, setup)
                prepared = meter.read(tally)
                identity = self._identity(entry, settings, ready, pool, start)
                learner = ready.learner
                if entry.budgeted:
                    learner = Budgeted(learner, self.budget, tally)
                run = Run(self.out, identity, raisable=frozenset(["budget"]))
                result = train(learner, run, report, ready.stage)
                extra = ready.after(result)
        policy = _with_provenance(result.policy, identity)
        path = self.out / "policy.safetensors"
        bundle.save(policy, path)
        self._print(path, policy, result, extra, meter.read(tally), prepared, tally)
        return 0

    def _entry(self) -> Entry:
        entry = LEARNERS.get(self.learner)
        if entry is None:
            raise NestorError(
                f"There is no learner '{self.learner}'; there are: {', '.join(LEARNERS)}."
            )
        if self.estimate is not None and self.learner in ("distil", "bc", "es"):
            raise NestorError(f"The learner {self.learner} needs code: leave out --estimate.")
        if self.init is not None and self.learner == "bc":
            raise NestorError("The learner bc clones the default heuristic: leave out --init.")
        if self.trials is not None and self.learner != "distil":
            raise NestorError("Only the learner distil searches programs: leave out --trials.")
        if not entry.budgeted and self.budget.units is not None:
            raise NestorError(
                f"The learner {self.learner} has limits of its own; a budget ends {_BUDGETED}."
            )
        return entry

    def _identity(
        self, entry: Entry, settings: Any, ready: Ready, pool: Pool, start: Policy | None
    ) -> dict[str, Any]:
        identity = {
            "nestor": __version__,
            "problem": INLINING_SIZE.name,
            "learner": self.learner,
            "settings": json.loads(json.dumps(asdict(settings))),
            "seed": self.seed,
            "features": list(ready.features),
            "init": bundle.digest(start) if start is not None else None,
            "corpus": pool.corpus.digest,
            "compiler": pool.plugin.toolchain.build_id,
            "plugin": pool.plugin.digest,
        }
        if self.estimate is not None:
            identity["estimate"] = size_model.digest(self.estimate)
        if not entry.budgeted:
            return identity
        return identity | {"budget": asdict(self.budget), "budget_unit": self.budget.unit}

    def _print(
        self,
        path: Path,
        policy: Policy,
        result: Result,
        extra: Mapping[str, Any],
        cost: Cost,
        prepared: Cost,
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
            "preparation": asdict(prepared),
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


def _with_provenance(policy: Policy, identity: dict[str, Any]) -> Policy:
    return dataclasses.replace(
        policy, metadata=dataclasses.replace(policy.metadata, provenance=identity)
    )
