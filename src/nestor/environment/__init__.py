"""Any problem as a Gymnasium environment: an episode is one live compile of one module.

The compiler is the stock one; it asks over LLVM's interactive channel and waits for each action.
No plugin is involved. A round trip per question is slow beside a plugin, so the environment is for
whoever brings a learner of their own; with the default's actions it compiles as the stock compiler
does, as far as the problem can say what those are. What is decided, observed and scored is the
problem's (:class:`nestor.problem.live.Live`).
"""

from typing import TYPE_CHECKING, Any

from nestor.environment.compile import CompileEnvironment as CompileEnvironment
from nestor.problem.registry import find_problem

if TYPE_CHECKING:
    from nestor.environment.compile import Environment


def make(problem: str, **settings: Any) -> "Environment":
    """Return the environment of a problem; Gymnasium's entry point.

    :param problem: a name or a path that :func:`nestor.problem.registry.find_problem` takes.
    :param settings: those of :class:`CompileEnvironment`.
    :raises ProblemError: if there is no such problem, or it has no environment.
    """
    environment: Environment = find_problem(problem).environment(**settings)
    return environment
