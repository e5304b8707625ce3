"""``nestor train``: make a policy for any problem."""

from dataclasses import asdict, dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated

import tyro

from nestor.api.learning import Trained, run_learner
from nestor.cli.console import json_text, print_json, print_line, stdout
from nestor.cli.options import OutputFolder, refuse_idle
from nestor.cli.setup import corpus_for, ready_pool
from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from nestor.files import claimed, write_atomically
from nestor.learn.accounting import Tally
from nestor.learn.budget import Budget
from nestor.learn.learners import LEARNERS, find_learner, usual_learner
from nestor.learn.setup import Setup
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import PoolSettings

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
class Train:
    r"""Train a policy for a decision problem.

    The problem is one of 'nestor problem list', or the path of a folder or .py file with a PROBLEM
    of your own, whose code is run.

    Learners:
    LEARNERS

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
        nestor train regalloc-eviction --corpus corpus/tiny-O2 --out runs/evict --learner bc
        nestor train ./hoisting --corpus corpus/tiny --out runs/hoisting --learner cma
    """

    problem: tyro.conf.Positional[str]
    """What to train for."""
    corpus: Path
    """The corpus to learn from."""
    out: OutputFolder
    """The run's folder."""
    learner: Annotated[str | None, tyro.conf.arg(metavar="{" + ",".join(LEARNERS) + "}")] = None
    """The algorithm (default: distil where programs can be searched, else ppo)."""
    init: str | None = None
    """The policy to start from: a file or a built-in (needed by es, not for bc)."""
    score: str | None = None
    """What is made small where runs are judged: 'J', or 'cycles' as the model of whole programs
    predicts them (inlining-speed only; default: J)."""
    trials: Path | None = None
    """Folder of the trials, which runs may share (distil only; default: OUT/trials)."""
    seed: int = 0
    """Seed of everything random."""
    features: tuple[str, ...] = ()
    """Features that the policy reads (default: the learner's choice, or those of --init)."""
    estimate: Path | None = None
    """A model of the score ('nestor sizes' makes one for inlining-size) by which sampled compiles
    are judged before code generation: they cost about half (not for distil, bc, es and
    portfolio, nor where only whole programs have a score)."""
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
        problem = find_problem(self.problem)
        if self.score is not None:
            problem = problem.scored_by(self.score)
        learner_name = self.learner or usual_learner(problem)
        entry = find_learner(learner_name)
        if not entry.budgeted and self.budget.units is not None:
            able = ", ".join(name for name, other in LEARNERS.items() if other.budgeted)
            raise NestorError(
                f"The learner {learner_name} has limits of its own; a budget ends {able}."
            )
        for name in LEARNERS.keys() - {learner_name}:
            settings = getattr(self.settings, name.replace("-", "_"))
            refuse_idle(settings, f"with the learner {learner_name}", prefix=f"--{name}.")
        corpus = corpus_for(problem, self.corpus, None)
        with claimed(self.out):
            self._print(self._train(problem, learner_name, corpus))
        return 0

    def _train(self, problem: Problem, learner_name: str, corpus: Corpus) -> Trained:
        settings = getattr(self.settings, learner_name.replace("-", "_"))
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            setup = Setup(
                pool=pool,
                folder=self.out,
                seed=self.seed,
                tally=Tally(),
                features=self.features,
                init=self._start(problem),
                trials=self.trials,
                budget=self.budget,
                estimate=self.estimate,
                progress=report,
            )
            return run_learner(setup, learner_name, settings)

    def _start(self, problem: Problem) -> Policy | None:
        if self.init is None:
            return None
        return problem.policy(self.init).policy

    def _print(self, trained: Trained) -> None:
        cost, tally = trained.cost, trained.tally
        summary = {
            "policy": str(trained.path),
            "digest": bundle.digest(trained.policy),
            "resumed_at": trained.result.resumed_at,
            **trained.report,
            "cost": asdict(cost)
            | {
                "overhead": cost.overhead,
                "rollouts_per_cpu_second": cost.rollouts_per_cpu_second,
            },
            "preparation": asdict(trained.preparation),
            "reused": tally.reused,
            "failures": tally.reasons,
            "metrics": dict(trained.result.last_metrics),
        }
        write_atomically(self.out / "result.json", json_text(summary))
        if self.json:
            print_json(summary)
            return
        print_line(f"policy     {trained.path}")
        for name, value in trained.report.items():
            if isinstance(value, dict):
                for program, change in value.items():
                    print_line(f"  {program:40} {change:+.2f} %")
            else:
                stdout.print(f"{name:10} {value:,}")
        stdout.print(
            f"cost       {cost.rollouts:,} rollouts (the outcome of {tally.reused:,} more followed"
            f" without compiling), {cost.failures} failed,"
            f" {cost.rollouts_per_cpu_second:.1f} rollouts per CPU-second;"
            f" learning and orchestration {100 * cost.overhead:.1f} % of"
            f" {cost.own_seconds + cost.compiler_seconds:.0f} CPU-seconds;"
            f" {cost.wall_seconds:.0f} s",
            soft_wrap=True,
        )
        for what, count in tally.reasons.items():
            print_line(f"  failed {count}×: {what}")


def _learners() -> str:
    """Return a line for each learner, for the help text."""
    return "\n".join(f"        {name:10} {entry.summary}" for name, entry in LEARNERS.items())


if Train.__doc__:  # absent under python -OO
    Train.__doc__ = Train.__doc__.replace("    LEARNERS", _learners())
