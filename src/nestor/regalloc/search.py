"""The plugin's search: it allocates a function again and again in forked children."""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.policy.names import NamedPolicy
from nestor.problem.overrides import Overrides as AnyOverrides
from nestor.problem.rollout import Rollout, Workplace
from nestor.problem.trajectory import LogError
from nestor.regalloc import allocation_log, overrides
from nestor.regalloc.allocation_log import FunctionAllocation
from nestor.regalloc.compile import run_plugin
from nestor.regalloc.outcome import ModuleCost
from nestor.regalloc.overrides import STOCK, Answer, Key
from nestor.regalloc.plugin_flags import Decision, policy_option
from nestor.temporary import temporary_folder
from nestor.tune.compiler_search import Searched, Target

_WORTH_A_SEARCH: Final = 0.999
"""Of a program's cost; the functions with the rest of it are left as they are."""
_TRIALS_A_SECOND: Final = 300
"""Roughly; it decides how many functions one compile searches."""
_LONGER: Final = 10.0
"""How many times longer than another compile one that searches may take."""


@dataclass(frozen=True)
class AllocationSearch:
    """See :class:`nestor.tune.compiler_search.CompilerSearch`."""

    decision: Decision
    """Whose answers are changed."""

    def targets(self, rollouts: Mapping[str, Rollout]) -> list[Target]:
        """Return the functions that make up nearly all of the cost, the most expensive first.

        Of a function that several modules define the copy in the first of them is searched.
        """
        costs: dict[Key, tuple[float, str]] = {}
        for unit, rollout in rollouts.items():
            for key, cost in _costs(rollout).items():
                if cost > 0:
                    costs.setdefault(key, (cost, unit))
        ranked = sorted(costs, key=lambda key: (-costs[key][0], key))
        left = _WORTH_A_SEARCH * sum(cost for cost, _ in costs.values())
        targets = []
        for key in ranked:
            if left <= 0:
                break
            left -= costs[key][0]
            targets.append(Target(costs[key][1], key))
        return targets

    def at_once(self, rollout: Rollout, trials: int) -> int:
        """Return so many functions that a compile searches for longer than it compiles."""
        return max(4, math.ceil(2 * rollout.cpu_seconds * _TRIALS_A_SECOND / max(1, trials)))

    def search(
        self,
        place: Workplace,
        rollout: Rollout,
        targets: Sequence[Target],
        policy: NamedPolicy,
        trials: int,
        seed: int,
    ) -> Searched:
        """Compile once under ``-nestor-allocation-search``; all other functions stay stock."""
        wanted = {target.key.number: target for target in targets}
        others = (f for f in rollout.outcome.functions if f.id not in wanted)
        fixed = overrides.to_text({Key("function", f.id): STOCK for f in others})
        with temporary_folder("search") as text:
            log = Path(text) / "allocations"
            options = [
                policy_option(self.decision, policy, place.files),
                f"-nestor-allocation-overrides={place.files.write(fixed.encode())}",
                f"-nestor-allocation-search={trials}",
                f"-nestor-allocation-moves={self.decision}",
                f"-nestor-allocation-log={log}",
            ]
            # A seed alone would make the policy's answers samples, not the greedy ones.
            options += [f"-nestor-seed={seed}"] if policy.policy is None else []
            limits = dataclasses.replace(place.limits, seconds=_LONGER * place.limits.seconds)
            place = dataclasses.replace(place, limits=limits)
            process = run_plugin(rollout.request.unit, place, Path(text) / "module.o", options)
            if not process.ok:
                return Searched({}, 0, process.cpu_seconds, process.reason)
            try:
                functions = allocation_log.read(log)
            except LogError as error:
                return Searched({}, 0, process.cpu_seconds, str(error))
        found = {wanted[f.id]: _choices(f) for f in functions if f.id in wanted}
        return Searched(found, sum(f.trials for f in functions), process.cpu_seconds)

    def worse(self, before: Mapping[str, Rollout], after: Mapping[str, Rollout]) -> frozenset[Key]:
        """Return the functions whose copies cost more together after than before."""
        change: dict[Key, float] = defaultdict(float)
        for sign, rollouts in ((-1, before), (1, after)):
            for rollout in rollouts.values():
                for key, cost in _costs(rollout).items():
                    change[key] += sign * cost
        return frozenset(key for key, difference in change.items() if difference > 0)

    def function_of(self, key: Key) -> Key:
        """Return the key of the whole function that ``key`` is about."""
        return Key("function", key.number)


def _costs(rollout: Rollout) -> dict[Key, float]:
    outcome: ModuleCost = rollout.outcome
    return {
        Key("function", function.id): weight * function.cost.cost
        for function, weight in zip(outcome.functions, outcome.weights, strict=True)
    }


def _choices(function: FunctionAllocation) -> AnyOverrides:
    """Return what left the stock heuristics in a function's allocation."""
    evictions: dict[Key, Answer] = {
        Key("evict", function.id, question): answer for question, answer in function.evictions
    }
    return evictions | {
        Key("priority", function.id, question): answer for question, answer in function.priorities
    }
