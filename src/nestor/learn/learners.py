"""All learners for inlining, by the name that the command line knows them by.

A new one is a file with a frozen dataclass of settings and a function ``set_up``, and a line in
:data:`LEARNERS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from nestor.errors import NestorError
from nestor.learn import (
    best_of,
    cma_es,
    dqn,
    experience,
    ppo,
    random_search,
    reinforce,
)
from nestor.learn.behavioural_cloning import BehaviouralCloning, CloningSettings
from nestor.learn.distil import Distil, DistilSettings
from nestor.learn.evolution_strategies import EvolutionSettings, EvolutionStrategies
from nestor.learn.experience import Known
from nestor.learn.features import DISTIL_FEATURES, FREE_FEATURES, MODULE_FEATURES
from nestor.learn.known_range import require_size
from nestor.learn.searches import Searches, largest_programs
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import as_network
from nestor.learn.training import Result
from nestor.learn.validation import judge, verdict
from nestor.problems.inlining_size import INLINING_SIZE
from nestor.tune.search import SearchSettings


def set_up_distil(settings: DistilSettings, setup: Setup) -> Ready:
    """Make distillation of searches ready to run."""
    features = setup.features or (DISTIL_FEATURES if settings.lto is None else MODULE_FEATURES)
    require_size(features, settings.gain.outliers)
    pool = setup.pool
    programs = largest_programs(experience.training_programs(pool.corpus))
    if settings.projects:
        programs = tuple(p for p in programs if p.project in settings.projects)
    unknown = set(settings.projects) - {program.project for program in programs}
    if unknown:
        raise NestorError(
            f"The corpus has no training project {min(unknown)}; 'nestor corpus info' lists them."
        )
    held_back = largest_programs(pool.corpus.programs_of("validation"))
    searches = Searches(
        pool,
        programs,
        SearchSettings(compiles=settings.compiles, chance=0.7, hold=False),
        settings.trials,
        setup.seed,
        setup.trials or setup.folder / "trials",
        setup.tally,
        setup.progress,
        settings.lto,
    )
    changes = judge(
        pool, held_back, setup.tally, setup.folder / "validation", setup.progress, settings.lto
    )
    if not held_back:  # there is nothing to choose by: the last round is believed
        caution = (settings.gain.caution,)
        settings = replace(settings, candidates=1, cautions=caution, worthwhile=float("-inf"))
    learner = Distil(
        settings,
        setup.seed,
        features,
        searches,
        lambda policy: verdict(changes(policy)),
        setup.init,
    )
    return Ready(learner, "Distilling", features, lambda _: {"training_programs": len(programs)})


def set_up_cloning(settings: CloningSettings, setup: Setup) -> Ready:
    """Make behavioural cloning ready to run."""
    modules = setup.pool.corpus.modules_of("train")
    done = experience.default_rollouts(setup.pool, modules, setup.tally, setup.progress).values()
    logs = [rolled.trajectory for rolled in done if rolled.trajectory is not None]
    features = setup.features or FREE_FEATURES
    x = np.concatenate([log.matrix(features) for log in logs])
    answers = np.concatenate([log.matrix([INLINING_SIZE.default_tensor])[:, 0] for log in logs])
    learner = BehaviouralCloning.fit(settings, setup.seed, features, x, answers)

    def after(result: Result) -> Mapping[str, Any]:
        agreement = float((result.policy.answer(x) == (answers > 0)).mean())
        return {"decisions": len(x), "agreement": agreement}

    return Ready(learner, "Cloning the default heuristic", features, after)


def set_up_evolution(settings: EvolutionSettings, setup: Setup) -> Ready:
    """Make evolution strategies ready to run."""
    if setup.init is None:
        raise NestorError(
            "Evolution strategies need a policy to start from: train one with --learner bc, then"
            " pass it with --init."
        )
    start, tally = as_network(setup.init), setup.tally
    if start.metadata.answers != "decision":
        raise NestorError("What --init names deviates from a default; es needs a clone.")
    if setup.budget.cpu_minutes is not None:
        setup.reference(start.features)  # prices
    programs = experience.training_programs(setup.pool.corpus)
    stock = experience.baseline(setup.pool, programs, setup.progress)
    modules = experience.modules_of(setup.pool.corpus, stock.programs)
    defaults = experience.default_rollouts(setup.pool, modules, tally, setup.progress)
    known = {
        name: Known.of(rolled, INLINING_SIZE, start.features) for name, rolled in defaults.items()
    }
    compare = experience.comparer(setup.pool, stock, known, tally)
    deviation = experience.deviation(known)
    projects = tuple(program.project for program in stock.programs)

    def after(result: Result) -> Mapping[str, Any]:
        (changes,) = compare([result.policy])
        named = zip(stock.programs, changes, strict=True)
        return {"training_programs": {p.name: float(100 * c) for p, c in named}}

    learner = EvolutionStrategies(settings, setup.seed, start, projects, compare, deviation)
    return Ready(learner, "Evolving", start.features, after)


@dataclass(frozen=True)
class Entry:
    """A learner as the command line offers it."""

    settings: type[Any]
    """A frozen dataclass, whose fields are options."""
    set_up: Callable[[Any, Setup], Ready]
    summary: str
    budgeted: bool = True
    """Whether a budget of compiles or CPU minutes can end it."""


LEARNERS: Final[Mapping[str, Entry]] = {
    "distil": Entry(DistilSettings, set_up_distil, "searches, distilled", budgeted=False),
    "bc": Entry(CloningSettings, set_up_cloning, "the default heuristic, cloned", budgeted=False),
    "es": Entry(EvolutionSettings, set_up_evolution, "guarded evolution strategies"),
    "ars": Entry(random_search.RandomSearchSettings, random_search.set_up, "random search"),
    "cma": Entry(cma_es.CmaSettings, cma_es.set_up, "CMA-ES"),
    "reinforce": Entry(reinforce.ReinforceSettings, reinforce.set_up, "REINFORCE"),
    "ppo": Entry(ppo.PpoSettings, ppo.set_up, "proximal policy optimisation"),
    "dqn": Entry(dqn.DqnSettings, dqn.set_up, "deep Q-learning"),
    "best-of": Entry(best_of.BestOfSettings, best_of.set_up, "imitation of the best (BC-Max)"),
}
"""Every learner; a line each."""
