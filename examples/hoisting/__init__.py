"""A decision problem of one's own: does LLVM's GVNHoist run on a module?

    nestor train examples/hoisting --corpus CORPUS --out RUN --learner ppo
    nestor evaluate --problem examples/hoisting --corpus CORPUS --policy RUN/policy.safetensors

GVNHoist moves what both sides of a branch compute to before the branch; by default it does not run.
There is one question per module, answered 0 or 1, and the score is the loadable bytes of the
object. This folder says only what is particular to that; docs/internals/add-your-own.md goes
through it.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nestor.build.build import Build
from nestor.build.objects import object_builds
from nestor.compiler.invocation import compile_command
from nestor.compiler.objects import Measure, measure
from nestor.compiler.process import run
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.policy.names import NamedPolicy
from nestor.policy.rule import THRESHOLD
from nestor.problem.decide import decide, feature_columns
from nestor.problem.problem import FeatureSets, Pool, Problem, Report
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.score import Credit, Scorers
from nestor.problem.trajectory import F64, Trajectory
from nestor.progress import Progress, silent

DEFAULT = "hoisting_default"
FEATURES = ("functions", "weak_functions", "bytes_of_code", "bytes_of_unwind_tables")
COLUMNS = (DEFAULT, "answer", "logit", "log_probability")
Compile = tuple[Trajectory, Mapping[str, float]]


@dataclass(frozen=True)
class LoadableBytes:
    """Scores a module by its object alone (nestor.problem.problem.Scorer)."""

    def parts(self, outcome: Measure) -> Mapping[str, float]:
        """Return one part: the decision affects the whole module."""
        return {"": self.total(outcome)}

    def total(self, outcome: Measure) -> float:
        """Return the loadable bytes."""
        return float(outcome.loadable)

    def to_json(self) -> dict[str, Any]:
        """Return no data: there are no settings."""
        return {}


@dataclass(frozen=True)
class Hoisting(Problem):
    """See nestor.problem.problem.Problem for what each method has to do."""

    def compile(self, request: Request, place: Workplace) -> Rollout:
        """Compile one module; features are those of its stock object."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "object"
            try:
                stock, seconds = _compiled(request, place, out, [])
                x = _features(stock)
                trajectory = _trajectory(request, x)
                outcome = stock
                if trajectory.answer[0]:
                    flags = ["-mllvm", "-enable-gvn-hoist"]
                    outcome, more = _compiled(request, place, out, flags)
                    seconds += more
            except NestorError as error:
                return Rollout.failed(request, str(error))
            kept = place.objects.put(out) if request.keep else None
        log = trajectory if request.log else None
        return Rollout(request, outcome, log, seconds, None, kept)

    def columns(self, outcome: Measure) -> Mapping[str, float]:
        """Return the loadable bytes and the code."""
        return {"object": outcome.loadable, "text": outcome.text}

    def scorers(
        self,
        pool: Pool,
        programs: Sequence[Program],
        rollouts: Mapping[str, Rollout],
        progress: Progress = silent,
    ) -> Scorers:
        """Score each module by itself."""
        return Scorers({name: LoadableBytes() for name, done in rollouts.items() if done.ok})

    def builds(self) -> Mapping[str, Build]:
        """Judge programs by their objects."""
        return object_builds()

    def scorer(self, data: Mapping[str, Any]) -> LoadableBytes:
        """Return the scorer; it has no data."""
        return LoadableBytes(**data)

    def credit(self, before: Compile, after: Compile) -> Credit:
        """Put all that changed down to the one decision."""
        change = sum(after[1].values()) - sum(before[1].values())
        left = after[0].answer != after[0].default
        return Credit(np.full(len(left), change), np.where(left, change, 0.0))


def _compiled(
    request: Request, place: Workplace, out: Path, flags: Sequence[str]
) -> tuple[Measure, float]:
    unit, bitcode = request.unit, place.corpus.bitcode(request.unit)
    command = compile_command(place.plugin.toolchain, unit.options, bitcode, out, flags)
    process = run(command, place.limits, cancelled=place.cancelled)
    if not process.ok:
        raise NestorError(process.reason)
    return measure(out), process.cpu_seconds


def _features(stock: Measure) -> F64:
    weak = sum(function.weak for function in stock.functions)
    unwind = stock.loadable - stock.text - stock.sections[".rodata"]
    return np.array([[len(stock.functions), weak, stock.text, unwind]], dtype=np.float64)


def _trajectory(request: Request, x: F64) -> Trajectory:
    named: NamedPolicy | None = request.policy
    policy = named.policy if named else None
    used = x[:, feature_columns(policy, THRESHOLD.name, FEATURES)] if policy else x
    default = np.zeros(1, dtype=np.int64)
    decided = decide(request, used, np.zeros(1, np.int64), default, [request.unit.name])
    types = [(name, "<i8") for name in COLUMNS[:2]] + [
        (n, "<f8") for n in (*COLUMNS[2:], *FEATURES)
    ]
    values = (0, decided.answer[0], decided.logit[0], decided.log_probability[0], *x[0])
    return Trajectory((*FEATURES, DEFAULT), np.array([values], dtype=types), DEFAULT)


PROBLEM = Hoisting(
    name="hoisting",
    summary="whether GVNHoist runs on a module, for the size of objects",
    rule=THRESHOLD,
    levels=("-Oz", "-Os", "-O1", "-O2", "-O3"),
    score="loadable bytes of the object",
    default_column=DEFAULT,
    features=FeatureSets(free=FEATURES, few=FEATURES, unit=FEATURES, program=FEATURES),
    report=Report(score="object", columns=("object", "text")),
)
