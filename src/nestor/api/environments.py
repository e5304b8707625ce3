"""A decision problem as a Gymnasium environment."""

from typing import TYPE_CHECKING, Any

from nestor.api.workplace import USUAL_PROBLEM
from nestor.environment import make

if TYPE_CHECKING:
    from nestor.environment.compile import Environment


def make_environment(problem: str = USUAL_PROBLEM, **settings: Any) -> "Environment":
    """Return a Gymnasium environment in which an episode is one live compile of one module.

    ``gymnasium.make("nestor.registration:nestor/InliningForSize-v0")`` gives the same one with
    Gymnasium's usual wrappers. Without ``nestor.registration:`` it does so if ``gymnasium`` was
    imported before ``nestor``.

    :param settings: those of :class:`nestor.environment.compile.CompileEnvironment`, such as
        ``corpus`` and ``split``; without a corpus a built-in module is compiled.
    :raises NestorError: if there is no such problem, or it has no environment, or a setting cannot
        be what it is.
    """
    return make(problem, **settings)
