"""Problems by name: those of Nestor, and anybody's own folder.

A name is looked up when it is used, as Gymnasium looks up environments, so that nothing below a
problem's folder imports it and a folder can be deleted without breaking anything else.
"""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from nestor.errors import meant
from nestor.policy.names import Builtins, NamedPolicy, named_policy
from nestor.policy.spec import Policy
from nestor.problem.problem import Problem, ProblemError

_HOME: Final = "nestor.problems"


def problem_names() -> tuple[str, ...]:
    """Return the names of Nestor's own problems: the folders of :mod:`nestor.problems`."""
    home = importlib.import_module(_HOME)
    folders = sorted(module.name for module in pkgutil.iter_modules(home.__path__))
    return tuple(folder.replace("_", "-") for folder in folders)


def environment_names() -> dict[str, str]:
    """Return the name of each of Nestor's own problems by that of its Gymnasium environment.

    A problem's package names its environment in an attribute ``ENVIRONMENT``, if it has one.
    """
    packages = {name: _package(name) for name in problem_names()}
    return {
        str(package.ENVIRONMENT): name
        for name, package in packages.items()
        if hasattr(package, "ENVIRONMENT")
    }


def find_problem(name: str) -> Problem:
    """Return a problem by its name, or from a folder or module of one's own.

    :param name: one of :func:`problem_names`; or the path of a folder (a package) or ``.py`` file
        with a ``PROBLEM``, whose code is run.
    :raises ProblemError: if there is none.
    """
    if name in problem_names():
        return _problem_of(_package(name), name)
    path = Path(name)
    place = path / "__init__.py" if path.is_dir() else path
    if "/" not in name and path.suffix != ".py":
        place = Path()
    if not place.is_file():
        names = problem_names()
        raise ProblemError(
            f"There is no problem '{name}'{meant(name, names)}; there are {', '.join(names)}, and"
            " the path of a folder or a .py file with a PROBLEM of your own (./NAME)."
        )
    return _problem_of(_load(place.resolve()), name)


def find_policy(name_or_path: str, problems: Sequence[str]) -> tuple[str, NamedPolicy]:
    """Return the policy that a user means, and the name of the problem that it is for.

    :param problems: whose built-in policies may be named; of two that have one of this name, as
        all have ``default``, the first is meant.
    :raises PolicyError: if there is no such policy or the file is not one.
    """
    policy = named_policy(name_or_path, _AllBuiltins(tuple(problems)))
    if policy.policy is None:
        return problems[0], policy
    return policy.policy.metadata.problem, policy


def owner_of(name: str) -> str | None:
    """Return the name of Nestor's problem that has the built-in policy ``name``, if one has."""
    for problem in problem_names():
        builtins = find_problem(problem).builtins
        if name in builtins.names:
            return problem
    return None


@dataclass(frozen=True)
class _AllBuiltins:
    """The policies of several problems that need no file; only those needed are imported."""

    problems: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self._parts() for name in part.names))

    def resolve(self, name: str) -> Policy | None:
        found = (part.resolve(name) for part in self._parts())
        return next((policy for policy in found if policy is not None), None)

    def _parts(self) -> Iterator[Builtins]:
        return (find_problem(problem).builtins for problem in self.problems)


def _package(name: str) -> ModuleType:
    return importlib.import_module(f"{_HOME}.{name.replace('-', '_')}")


def _load(place: Path) -> ModuleType:
    package = place.parent if place.name == "__init__.py" else place.with_suffix("")
    name = f"nestor_problem_{package.name}"
    if name in sys.modules and sys.modules[name].__file__ == str(place):
        return sys.modules[name]
    folders = [str(place.parent)] if place.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, place, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ProblemError(
            f"{place} is no Python module: name a folder or a .py file with a PROBLEM."
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _problem_of(module: ModuleType, name: str) -> Problem:
    problem = getattr(module, "PROBLEM", None)
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"{name} has no PROBLEM: define one as docs/internals/add-your-own.md shows."
        )
    return problem
