"""Distillation: a policy that decides at once what search found out by trying.

Each round searches every training program from the policy of the round before (in the first from
the default, or from the user's policy) and fits a model of gains to all trials so far
(:mod:`nestor.learn.distil.gain_model`). Searching from the policy shows the model where it was
wrong, as in DAgger (Ross, Gordon and Bagnell, AISTATS 2011). A round fits several candidates and
follows each with more or less caution; the validation programs, built under all of them, choose.
Rounds end when those no longer profit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from nestor.build.build import builds_of
from nestor.errors import NestorError
from nestor.learn.distil import gain_model
from nestor.learn.distil.gain_model import GainSettings, Kind
from nestor.learn.distil.gain_network import Network
from nestor.learn.distil.gain_trees import Trees
from nestor.learn.distil.searches import Searches, start_digest
from nestor.learn.distil.trials import Trials
from nestor.learn.distil.validation import Verdict, validation, verdict
from nestor.learn.extent import require_extent
from nestor.learn.learner import Metrics
from nestor.learn.programs import largest_programs, training_programs
from nestor.learn.setup import Ready, Setup
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.problem.problem import Problem
from nestor.tune.search import SearchSettings

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class DistilSettings:
    """How often to search and retrain, and how the model is fitted."""

    rounds: int = 1
    """Policy, search, retrain: at most so often."""
    compiles: float = 13.0
    """Whole-program compiles per program and round, at most."""
    trials: int = 4000
    """Questions tried after which a program has been searched enough in a round."""
    model: Literal["trees", "network"] = "trees"
    """What kind the models are."""
    gain: GainSettings = field(default_factory=GainSettings)
    """How the models are fitted, and how the policy follows them."""
    trees: Trees = field(default_factory=Trees)
    """Models that are trees."""
    network: Network = field(default_factory=Network)
    """Models that are networks."""
    candidates: int = 5
    """Models fitted with other draws of rows and features."""
    cautions: tuple[float, ...] = (0.35, 0.5, 0.7)
    """Spreads that the predicted gain must exceed: validation chooses one, and a candidate."""
    tolerance: float = 0.001
    """How much a validation program may grow; beyond it the one that grows least is chosen."""
    detail_tolerance: float = 0.005
    """The same for the columns beside the score, such as the code of a program."""
    worthwhile: float = 0.002
    """How much smaller a later round must make the validation programs to be believed."""
    build: str | None = None
    """How programs are built for search and validation, such as full-lto (default: the problem's
    usual way). With ``copies`` they are also weighed as parts of larger programs."""
    projects: tuple[str, ...] = ()
    """Training projects to search (default: all)."""

    def kind(self) -> Kind:
        """Return how models are fitted."""
        return self.trees if self.model == "trees" else self.network


@dataclass(frozen=True)
class DistilState:
    """The run after ``step`` rounds; policies are the bytes of their files, empty for none."""

    step: int
    searched: Bytes
    """The SHA-256 of the policies that the rounds have searched from, 32 bytes each."""
    policy: Bytes
    """Of the last round: where the next searches start."""
    best: Bytes
    """The policy that made the validation programs smallest so far."""
    change: float
    """Mean relative change of the validation programs' scores under ``best``, against stock."""


Search = Callable[[Sequence[str], Policy | None], Trials]
"""The trials of searches from earlier policies, by digest, and from one (None: the default)."""

Validate = Callable[[Policy], Verdict]
"""How the validation programs change under a policy."""


@dataclass(frozen=True)
class Candidate:
    """A policy that might become the round's."""

    number: int
    caution: float
    policy: Policy
    verdict: Verdict


@dataclass(frozen=True)
class Round:
    """What a round found: all that needs a compiler."""

    candidates: tuple[Candidate, ...]
    start: Verdict | None
    """Of the user's policy, in the first round if there is one."""
    metrics: Metrics


def choose(
    found: Sequence[Candidate], tolerance: float, detail_tolerance: float = float("inf")
) -> Candidate:
    """Return the best on average of those that make no program grow beyond the tolerances.

    If all do, the one that exceeds them least is returned.
    """

    def excess(one: Candidate) -> float:
        verdict = one.verdict
        return max(verdict.worst - tolerance, verdict.detail - detail_tolerance, 0.0)

    return min(found, key=lambda one: (excess(one), one.verdict.mean))


@dataclass(frozen=True)
class Distil:
    """The learner. Settings and seed decide the result, for the same searches."""

    settings: DistilSettings
    seed: int
    features: tuple[str, ...]
    problem: Problem
    search: Search
    validate: Validate
    start: Policy | None = None
    """Where the first searches start, and what has to be beaten; None is the default heuristic."""

    @property
    def steps(self) -> int:
        """How many rounds make a run."""
        return self.settings.rounds

    def init(self) -> DistilState:
        """Return the state before the first round."""
        nothing = np.empty(0, np.uint8)
        start = nothing if self.start is None else _pack(self.start)
        return DistilState(0, nothing, start, nothing, 0.0)

    def batch(self, state: DistilState) -> Round:
        """Search from the last policy, fit models to the trials of all rounds, and validate."""
        settings, gain = self.settings, self.settings.gain
        earlier = [part.tobytes().hex() for part in state.searched.reshape(-1, 32)]
        trials = self.search(earlier, _unpack(state.policy))
        kind = settings.kind()
        data = gain_model.rows(trials, self.features, self.problem, gain, self.seed)
        across = gain_model.predict_across(kind, data, gain, self.seed)
        found = []
        for number in range(settings.candidates):
            fitted = gain_model.fit(kind, data, across, self.seed + number)
            for caution in settings.cautions:
                followed = replace(gain, caution=caution)
                own = gain_model.policy(kind, fitted, data, self.features, self.problem, followed)
                policy = self.problem.restrained(own)
                found.append(Candidate(number, caution, policy, self.validate(policy)))
        start = None
        if state.step == 0 and self.start is not None:
            start = self.validate(self.start)
        correlation = float(np.corrcoef(data.y, across[0])[0, 1])
        metrics = {"trials": float(len(trials)), "correlation across projects": correlation}
        return Round(tuple(found), start, metrics)

    def update(self, state: DistilState, batch: Round) -> tuple[DistilState, Metrics]:
        """Choose a candidate; it is the new best if it is clearly better."""
        chosen = choose(batch.candidates, self.settings.tolerance, self.settings.detail_tolerance)
        packed, change = _pack(chosen.policy), chosen.verdict.mean
        best, before = state.best, state.change
        if batch.start is not None:
            best, before = state.policy, batch.start.mean
        better = not best.size or change < before - self.settings.worthwhile
        metrics = {
            **batch.metrics,
            "candidate": float(chosen.number),
            "caution": chosen.caution,
            "validation change": change,
            "validation change, worst program": chosen.verdict.worst,
            "validation change, worst candidate": max(c.verdict.mean for c in batch.candidates),
        }
        start = bytes.fromhex(start_digest(_unpack(state.policy)))
        return DistilState(
            state.step + 1,
            np.concatenate([state.searched, np.frombuffer(start, np.uint8)]),
            packed,
            packed if better else best,
            change if better else before,
        ), metrics

    def policy(self, state: DistilState) -> Policy:
        """Return the best policy so far."""
        found = _unpack(state.best)
        if found is None:
            raise ValueError("there is no policy before the first round")
        return found


def _pack(policy: Policy) -> Bytes:
    return np.frombuffer(bundle.to_bytes(policy), np.uint8)


def _unpack(data: Bytes) -> Policy | None:
    return bundle.from_bytes(data.tobytes()) if data.size else None


def set_up(settings: DistilSettings, setup: Setup) -> Ready:
    """Make distillation of searches ready to run.

    :raises NestorError: for a build or a training project that does not exist.
    :raises ProblemError: if the problem has no moves, or no use for models of this kind.
    :raises PolicyError: if ``features`` lack one that the problem needs.
    """
    pool, problem, builds = setup.pool, setup.problem, builds_of(setup.problem)
    problem.moves()  # refuses at once if there are none
    name = settings.build or next(iter(builds))
    if name not in builds:
        raise NestorError(f"There is no build '{name}'; there are {', '.join(builds)}.")
    build = builds[name]
    sets = problem.features
    features = setup.features or (sets.unit if build.whole else sets.program)
    require_extent(features, sets.extent, settings.gain.outliers)
    problem.restrained(settings.kind().nothing(features, problem.name))  # refuses before a search
    programs = largest_programs(training_programs(pool.corpus))
    if settings.projects:
        programs = tuple(p for p in programs if p.project in settings.projects)
    unknown = set(settings.projects) - {program.project for program in programs}
    if unknown:
        raise NestorError(
            f"The corpus {pool.corpus.root} has no training project {min(unknown)}; 'nestor corpus"
            " info' lists them."
        )
    held_back = largest_programs(pool.corpus.programs_of("validation"))
    searches = Searches(
        pool,
        build,
        programs,
        SearchSettings(
            settings.compiles, chance=0.7, hold=False, exact=0, pairs=False, learned=False
        ),
        settings.trials,
        setup.seed,
        setup.trials or setup.folder / "trials",
        setup.tally,
        setup.progress,
    )
    changes = validation(pool, build, held_back, setup.tally, setup.progress)
    if not held_back:  # there is nothing to choose by: the last round is believed
        caution = (settings.gain.caution,)
        settings = replace(settings, candidates=1, cautions=caution, worthwhile=float("-inf"))
    learner = Distil(
        settings,
        setup.seed,
        features,
        problem,
        searches,
        lambda policy: verdict(changes(policy)),
        setup.init,
    )
    return Ready(learner, "Distilling", features, lambda _: {"training_programs": len(programs)})
