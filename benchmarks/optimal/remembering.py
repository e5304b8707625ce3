"""A pool that compiles no module again for another program that links the same library."""

from dataclasses import replace
from typing import Any

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.problem.problem import Problem
from nestor.problem.rollout import Request, Rollout
from nestor.rollout.local_pool import LocalPool


class RememberingPool(LocalPool):
    """Keeps compiles without overrides, and those of modules that ask nothing.

    A rollout is pure, and who decides does not matter where nothing is asked. Kept objects stay
    until the pool is left.
    """

    def __init__(self, problem: Problem, corpus: Corpus, plugin: Plugin):
        """Prepare; nothing runs yet."""
        super().__init__(problem, corpus, plugin)
        self._known: dict[object, Rollout] = {}

    def _rollout(self, request: Request) -> Rollout:
        undecided = replace(request, policy=None, overrides=None, summary=None)
        policy = None if request.policy is None else request.policy.digest
        decided = undecided, policy, request.overrides, request.summary
        for key in (undecided, decided):
            known = self._known.get(key)
            if known is not None and policy is not None and known.object is not None:
                self.objects.put(self.objects.path(known.object))
                return replace(known, request=request, cpu_seconds=0.0)
        done = super()._rollout(request)
        if done.ok and done.object is not None and done.trajectory is not None:
            key = decided if _asks(done.trajectory.decisions) else undecided
            if key is undecided or request.overrides is None:
                self.objects.put(self.objects.path(done.object))
                self._known[key] = done
        return done


def _asks(decisions: Any) -> bool:
    return len(decisions) > 0
