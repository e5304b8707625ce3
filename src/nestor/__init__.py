"""Nestor: learned advisors for LLVM, on the compiler you already have.

The names in ``__all__`` are the Python API; docs/reference/python-api.md shows their use. Each is
imported when it is first used, so that ``import nestor`` itself costs nothing.
"""

import sys

# Type checkers take this name for true. The compiler wrapper imports this file: no typing here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from nestor.api.cycles import predict_cycles as predict_cycles
    from nestor.api.environments import make_environment as make_environment
    from nestor.api.learning import Trained as Trained
    from nestor.api.learning import train_policy as train_policy
    from nestor.api.programs import evaluate_policies as evaluate_policies
    from nestor.api.programs import tune_program as tune_program
    from nestor.api.releases import release_policy as release_policy
    from nestor.api.workplace import load_policy as load_policy
    from nestor.api.workplace import open_corpus as open_corpus
    from nestor.api.workplace import open_pool as open_pool
    from nestor.api.workplace import roll_out as roll_out
    from nestor.corpus.model import Corpus as Corpus
    from nestor.corpus.model import Module as Module
    from nestor.corpus.model import Program as Program
    from nestor.cost.contract import Prediction as Prediction
    from nestor.errors import NestorError as NestorError
    from nestor.evaluate.result import Evaluation as Evaluation
    from nestor.learn.budget import Budget as Budget
    from nestor.policy.names import NamedPolicy as NamedPolicy
    from nestor.problem.problem import Pool as Pool
    from nestor.problem.problem import Problem as Problem
    from nestor.problem.registry import find_problem as find_problem
    from nestor.problem.registry import problem_names as problem_names
    from nestor.problem.rollout import Request as Request
    from nestor.problem.rollout import Rollout as Rollout
    from nestor.problem.trajectory import Trajectory as Trajectory
    from nestor.tune.result import Tuned as Tuned

__version__ = "0.1.0"

_PLACES = {
    "Budget": "learn.budget",
    "Corpus": "corpus.model",
    "Evaluation": "evaluate.result",
    "Module": "corpus.model",
    "NamedPolicy": "policy.names",
    "NestorError": "errors",
    "Pool": "problem.problem",
    "Prediction": "cost.contract",
    "Problem": "problem.problem",
    "Program": "corpus.model",
    "Request": "problem.rollout",
    "Rollout": "problem.rollout",
    "Trained": "api.learning",
    "Trajectory": "problem.trajectory",
    "Tuned": "tune.result",
    "evaluate_policies": "api.programs",
    "find_problem": "problem.registry",
    "load_policy": "api.workplace",
    "make_environment": "api.environments",
    "open_corpus": "api.workplace",
    "open_pool": "api.workplace",
    "predict_cycles": "api.cycles",
    "problem_names": "problem.registry",
    "release_policy": "api.releases",
    "roll_out": "api.workplace",
    "train_policy": "api.learning",
    "tune_program": "api.programs",
}
"""The module of each public name."""

__all__ = ["__version__", *_PLACES]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    import importlib

    if name not in _PLACES:
        raise AttributeError(f"module 'nestor' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"nestor.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


# Gymnasium finds no environments by itself. Who uses it has imported it before us; who does not,
# must not wait for it.
if "gymnasium" in sys.modules:
    import importlib

    importlib.import_module("nestor.registration")
