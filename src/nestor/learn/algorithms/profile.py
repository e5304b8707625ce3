"""A policy from profiles: what answers would save of a run is read off counts, not tried.

The modules of the training programs are compiled by the default heuristic without a profile, and
under the same answers with one (:mod:`nestor.corpus.codegen.profiled`). Every question becomes a
row twice: with the features that it has without a profile, and with one, and both times with what
the profile says that an answer would save (:meth:`nestor.problem.problem.Problem.profiles`). A
model of gain over cost is fitted (:mod:`nestor.learn.benefit.model`), and the validation programs,
built and run without a profile under policies of several limits, choose one.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nestor.build.build import builds_of
from nestor.corpus import store
from nestor.corpus.model import Corpus, Module, Program
from nestor.errors import NestorError
from nestor.learn.accounting import Tally
from nestor.learn.benefit import model
from nestor.learn.benefit.model import BoostSettings, Rows
from nestor.learn.distil.validation import Validated, validation
from nestor.learn.extent import observed_range, require_extent
from nestor.learn.learner import Metrics
from nestor.learn.programs import default_rollouts, training_programs, units_of
from nestor.learn.setup import Ready, Setup
from nestor.policy import bundle
from nestor.policy.names import DEFAULT
from nestor.policy.spec import Policy
from nestor.policy.trees import TreesPolicy
from nestor.problem.benefit import Benefits
from nestor.problem.problem import Pool, Problem
from nestor.problem.rollout import Request, Rollout
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent
from nestor.rollout.local_pool import LocalPool, PoolSettings
from nestor.tune.moves import moves_of

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ProfileSettings:
    """Where the counts are, how the model is fitted, and which limits are tried."""

    counted: Path | None = None
    """The corpus with the counts of the same programs ('nestor corpus profile')."""
    boost: BoostSettings = field(default_factory=BoostSettings)
    """How the model is fitted."""
    take: tuple[float, ...] = (0.8, 0.6, 0.4)
    """Predicted gain over cost above which the policy says yes where the default says no: per cent
    of the run for a per cent of the code, up to a factor."""
    leave: float = 0.2
    """The same below which it says no where the default says yes; 0: nowhere."""
    growth: float = 0.02
    """How much the validation programs' code may grow on average."""
    harm: float = 0.005
    """How much worse any of them may get."""
    outliers: float = 0.02
    """Part of the questions in which a mistake can cost most, which are left to the default."""


@dataclass(frozen=True)
class ProfileState:
    """The chosen policy as the bytes of its file; none before the only step."""

    step: int
    policy: Bytes


@dataclass(frozen=True)
class Tried:
    """A policy of one limit, and how it changed the validation programs on average."""

    take: float
    policy: Policy
    score: float
    worst: float
    detail: float


@dataclass(frozen=True)
class Profile:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: ProfileSettings
    problem: Problem
    features: tuple[str, ...]
    seed: int
    rows: Callable[[], Rows]
    validate: Callable[[Policy], Validated] | None
    """None without validation programs: the first limit is taken."""

    steps = 1

    def init(self) -> ProfileState:
        """Return the state before the only step."""
        return ProfileState(0, np.empty(0, np.uint8))

    def batch(self, state: ProfileState) -> list[Tried]:
        """Fit the model, and build the validation programs under each limit."""
        settings, rows = self.settings, self.rows()
        density = model.fit(
            rows, self.features, settings.boost, self.seed, problem=self.problem.name
        )
        seen = observed_range(
            rows.x, self.features, self.problem.features.extent, settings.outliers
        )
        takes = settings.take if self.validate is not None else settings.take[:1]
        return [self._tried(density, take, seen) for take in takes]

    def _tried(self, density: TreesPolicy, take: float, seen: model.F64) -> Tried:
        limits = model.Limits(take, self.settings.leave)
        own = model.policy(density, self.problem.default_column, limits, seen)
        policy = self.problem.restrained(own)
        if self.validate is None:
            return Tried(take, policy, 0.0, 0.0, 0.0)
        found = self.validate(policy)
        scores = [value for row in found.scores.values() for value in row.values()]
        details = [value for row in found.details.values() for value in row.values()]
        return Tried(take, policy, float(np.mean(scores)), max(scores), float(np.mean(details)))

    def update(self, state: ProfileState, batch: list[Tried]) -> tuple[ProfileState, Metrics]:
        """Choose the best on average among those that hold the limits of growth and of harm."""
        growth, harm = self.settings.growth, self.settings.harm

        def beyond(tried: Tried) -> float:
            return max(0.0, tried.detail - growth) + max(0.0, tried.worst - harm)

        best = min(batch, key=lambda tried: (beyond(tried), tried.score))
        metrics = {
            "take": best.take,
            "validation change": best.score,
            "validation change, worst program": best.worst,
            "validation change, code": best.detail,
        }
        packed = np.frombuffer(bundle.to_bytes(best.policy), np.uint8)
        return ProfileState(state.step + 1, packed), metrics

    def policy(self, state: ProfileState) -> Policy:
        """Return the chosen policy."""
        if not state.policy.size:
            raise ValueError("there is no policy before the only step")
        return bundle.from_bytes(state.policy.tobytes())


def rows_of(
    problem: Problem,
    features: Sequence[str],
    programs: Sequence[Program],
    plain: dict[str, Rollout],
    counted: dict[str, Rollout],
) -> Rows:
    """Return the questions of ``programs``, each without a profile and with one.

    :param plain: what the default heuristic did, by unit; ``counted``, see
        :func:`counted_rollouts`.
    """
    both = plain.keys() & counted.keys()
    plain, counted = ({name: side[name] for name in both} for side in (plain, counted))
    x, gain, cost = [], [], []
    for program, rollouts in itertools.product(programs, (plain, counted)):
        for log, found in counted_benefits(problem, program, rollouts, counted):
            x.append(log.rows(features)[found.rows])
            gain.append(found.gain)
            cost.append(found.cost)
    if not x:
        raise NestorError("No question of the training programs has counts.")
    return Rows(np.concatenate(x).astype(np.float64), np.concatenate(gain), np.concatenate(cost))


def counted_rollouts(
    pool: Pool,
    units: Sequence[Module],
    plain: Mapping[str, Rollout],
    tally: Tally,
    progress: Progress = silent,
) -> dict[str, Rollout]:
    """Return what the counts say of the questions of ``plain``, by unit; failures are absent.

    A compiler that has a profile answers otherwise, and what it is asked then hangs on that. So it
    is given the answers of the compiles without one, and asks the same.

    :param units: those of the corpus with the counts, which is the pool's.
    """
    requests = []
    for unit in units:
        log = plain[unit.name].trajectory if unit.name in plain else None
        if log is not None:
            answers = moves_of(pool.problem).pins({unit.name: log})
            text = pool.problem.overrides().to_text(answers) if answers else None
            requests.append(Request(unit, DEFAULT, log=True, overrides=text))
    done = pool.run(requests, progress, "Recording the counts")
    tally.add(done)
    return {rollout.request.unit.name: rollout for rollout in done if rollout.ok}


def counted_benefits(
    problem: Problem,
    program: Program,
    rollouts: Mapping[str, Rollout],
    counted: Mapping[str, Rollout],
) -> Iterator[tuple[Trajectory, Benefits]]:
    """Yield the log of each unit of ``program``, and what its answers would save and cost.

    :param rollouts: by unit, ``counted`` or what they were held to.
    :return: costs are parts of the program's code in place of bytes.
    """
    names = [name for name in program.modules if name in rollouts and name in counted]
    columns = [problem.columns(rollouts[name].outcome) for name in names]
    code = sum(own[problem.report.detail[0]] for own in columns)
    for name in names:
        log, counts = rollouts[name].trajectory, counted[name].trajectory
        if log is None or counts is None or not len(log) or not code:
            continue
        found = problem.profiles().benefits(log, counts)
        yield log, replace(found, cost=found.cost / code)


def _counted_corpus(settings: ProfileSettings) -> Corpus:
    if settings.counted is None:
        raise NestorError(
            "The learner profile needs the counts of the same programs: make them with 'nestor"
            " corpus profile CORPUS PROFILED', and name --profile.counted PROFILED."
        )
    return store.load(settings.counted)


def set_up(settings: ProfileSettings, setup: Setup) -> Ready:
    """Make the learner ready to run.

    :raises NestorError: without a profiled corpus, or without programs that are in both corpora.
    """
    pool, problem = setup.pool, setup.problem
    corpus = _counted_corpus(settings)
    features = setup.features or problem.features.unit
    require_extent(features, problem.features.extent, settings.outliers)
    ran = {program.name for program in corpus.programs}
    programs = [p for p in training_programs(pool.corpus) if p.name in ran]
    if not programs:
        raise NestorError(
            f"{corpus.root} has none of the training programs of {pool.corpus.root}: make it of"
            " that corpus."
        )
    held_back = pool.corpus.programs_of("validation")
    build = next(iter(builds_of(problem).values()))

    def rows() -> Rows:
        plain = default_rollouts(pool, units_of(pool.corpus, programs), setup.tally, setup.progress)
        with LocalPool(problem, corpus, pool.plugin, PoolSettings(jobs=pool.jobs)) as other:
            units = units_of(corpus, programs)
            counted = counted_rollouts(other, units, plain, setup.tally, setup.progress)
        return rows_of(problem, features, programs, plain, counted)

    validate = validation(pool, build, held_back, setup.tally, setup.progress)
    learner = Profile(
        settings, problem, features, setup.seed, rows, validate if held_back else None
    )
    return Ready(
        learner,
        "Learning from profiles",
        features,
        lambda _: {"programs": len(programs)},
        {"counted": corpus.digest},
    )
