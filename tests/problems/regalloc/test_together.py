"""Policies about several decisions in one compile."""

import pytest

from nestor.cli.policies.builds import policies_beside
from nestor.errors import NestorError
from nestor.policy.names import NamedPolicy
from nestor.problem.registry import find_policy, find_problem
from nestor.rollout.local_pool import LocalPool
from tests.problems.allocations import compiled

EVICTION = find_problem("regalloc-eviction")


def beside(*names: str) -> tuple[NamedPolicy, ...]:
    return policies_beside(EVICTION, names)


def test_each_policy_decides_its_own(pool: LocalPool, priority_pool: LocalPool) -> None:
    alone = compiled(pool, "first")
    order = compiled(priority_pool, "smallest")
    both = compiled(pool, "first", also=beside("smallest"))
    assert len({alone.object, order.object, both.object}) == 3
    same = compiled(priority_pool, "smallest", also=(EVICTION.policy("first"),))
    assert same.object == both.object
    only = compiled(pool, "default", also=beside("smallest"))
    assert only.object == order.object


def test_a_policy_about_inlining_acts_in_functions_for_size(pool: LocalPool) -> None:
    """At -O2 it has nothing to decide, so that the object is the same."""
    _, never = find_policy("never", ["inlining-size"])
    assert compiled(pool, "first", also=(never,)).object == compiled(pool, "first").object


def test_what_cannot_stand_beside_is_refused() -> None:
    with pytest.raises(NestorError, match="is for regalloc-priority: name at most one"):
        beside("smallest", "heaviest")
    with pytest.raises(NestorError, match="takes no policies about other decisions"):
        policies_beside(find_problem("inlining-size"), ["first"])
    assert [policy.name for policy in beside("shipped", "smallest")] == ["shipped", "smallest"]
    assert policies_beside(find_problem("inlining-size"), []) == ()
