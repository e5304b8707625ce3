"""What a summary of the program adds to fitted trees: the only call of a function is inlined.

A function that one call in the whole program refers to, and nothing else, goes away when that call
is inlined, if the linker drops unused sections. LLVM knows this of local functions; of others a
module cannot tell who else calls them, and a summary can. Both counts are needed: the summary
counts calls in the objects of the stock build, where several calls of a function may have become
one (in mujs 21 of ``cbinary``), and the module counts those that inlining would have to copy it to.

What goes away is certain, what comes into the caller is not: registers run out, other calls are
weighed anew, and a switch that is a table of results by itself becomes branches (in mbedtls 42
bytes became 2,863). So callees are left to the trees that are large, or that cost much more than
what goes away, and those that handle exceptions, whose tables move to the caller.

The rule is one more tree whose value is beyond every sum of the others; without a summary the
logits have the same bits as before.

Where nothing says that the linker drops what is unused, whether since there is no summary or since
the link keeps all, a function that has no COMDAT stays whatever is inlined, and what trees expect
to save by inlining it, or by keeping some of its calls, is as often a loss. Such calls can be left
to the default (:func:`leave_what_stays`). So can calls that the default inlines, where trees would
keep hardly one and a compile would read their features for nothing (:func:`leave_inlined_comdats`).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from nestor.policy.branches import NEVER, Split, one_tree
from nestor.policy.spec import F64, PolicyError
from nestor.policy.trees import ANY_VALUE, TreesPolicy, weighted_sum

_HOLDS: Final = (
    ("inlining_default", 0, 0),
    ("program_link_gc", 1, 2),
    ("program_callee_calls", 1, 1),
    ("program_callee_address_taken", 0, 0),
    ("program_callee_copies", 1, 1),
    ("callee_uses", 1, 1),
    ("callee_landing_pads", 0, 0),
)
"""What must hold of the call: features with their least and greatest values, whole numbers."""
_SIZES: Final = ("callee_instructions", "callee_code_size", "cost_estimate")
"""What the trees have a range of that is narrower than the rule's."""
_COST_OF_BYTE: Final = 3
"""The most ``cost_estimate`` for each byte that goes away; of nine callees in ten it is below 1.5.
In steps, since a tree compares numbers and not features."""
_STEPS: Final = (100, 200, 400)
"""Bytes."""
INLINE: Final = 2.0**30
"""More than any such sum and ``NEVER``, and so ``RULED``: no bytes that trees expect to save."""
STOCK: Final = -(2.0**31)
"""What leaves a call to the default, whatever trees and other rules say."""
SAVED: Final = 97.0
"""Bytes that such a call saves: mean of 24 in C programs (``benchmarks.only_call sites``)."""


@dataclass(frozen=True)
class OnlyCall:
    """The largest callee whose only call is inlined."""

    bytes: int
    """What the linker drops: code and unwind entry of the callee in the stock build."""
    code_size: int
    """What is copied: the callee at the moment of the question, in the target's estimate."""

    def __post_init__(self) -> None:
        if self.bytes < 1 or self.code_size < 1:
            raise PolicyError("the limits of a callee must be at least 1")


def inline_only_calls(policy: TreesPolicy, limit: OnlyCall) -> TreesPolicy:
    """Return ``policy`` with the rule; elsewhere its answers are the same.

    The policy's range holds for the rule too, except for the callee's size. Trees that are larger
    than those of training are refused by a tree instead of by the range.

    :raises PolicyError: if the policy does not say where to deviate, or reads too few features.
    """
    if policy.metadata.answers != "deviation" or "only call" in policy.metadata.provenance:
        raise PolicyError("only a policy that says where to deviate can have the rule, and once")
    sizes = (("program_callee_bytes", 1, limit.bytes), ("callee_code_size", 0, limit.code_size))
    steps = (*(step for step in _STEPS if step < limit.bytes), limit.bytes)
    rule = one_tree(policy, all_hold((*_HOLDS, *sizes), in_proportion(steps, INLINE)))
    parts = [(policy, 1.0), (rule, 1.0)]
    wider: F64 | None = None
    if policy.range is not None:
        names = [name for name in _SIZES if name in policy.features]
        rows = [policy.features.index(name) for name in names]
        most = [(name, float(policy.range[row, 1])) for name, row in zip(names, rows, strict=True)]
        parts.insert(1, (one_tree(policy, _beyond(most)), 1.0))
        wider = policy.range.copy()
        wider[rows, 1] = ANY_VALUE
    provenance = {**policy.metadata.provenance, "only call": asdict(limit)}
    metadata = replace(policy.metadata, provenance=provenance)
    return replace(weighted_sum(parts), metadata=metadata, range=wider)


def leave_what_stays(policy: TreesPolicy) -> TreesPolicy:
    """Return ``policy`` that leaves the calls of some functions to the default.

    Functions without a COMDAT, so none of whose copies is merged with those of other modules, where
    there is no summary or where it says that the linker keeps what is unused. C has no others, so
    that its objects are stock's there.

    :raises PolicyError: if the policy does not say where to deviate, has the rule, or does not read
        whether a callee has a COMDAT and how the program is linked.
    """
    stays = (("program_link_gc", -1, 0), ("callee_has_comdat", 0, 0))
    return _leaving(policy, stays, "what stays")


def leave_inlined_comdats(policy: TreesPolicy) -> TreesPolicy:
    """Return ``policy`` that inlines the calls of COMDAT functions that the default inlines.

    To keep one call is to keep the program's copy of the function, so trees hardly ever do it. Most
    questions of a compile of C++ are of this kind, and the rule answers them by two features that
    cost nothing to read.

    :raises PolicyError: if the policy does not say where to deviate, has the rule, or does not read
        the default's answer and whether a callee has a COMDAT.
    """
    inlined = (("inlining_default", 1, 1), ("callee_has_comdat", 1, 1))
    return _leaving(policy, inlined, "inlined comdats")


def _leaving(
    policy: TreesPolicy, conditions: Sequence[tuple[str, int, int]], name: str
) -> TreesPolicy:
    """Return ``policy`` with the default's answer where all conditions hold."""
    if policy.metadata.answers != "deviation" or name in policy.metadata.provenance:
        raise PolicyError("only a policy that says where to deviate can have the rule, and once")
    rule = one_tree(policy, all_hold(conditions, STOCK))
    found = replace(weighted_sum([(policy, 1.0), (rule, 1.0)]), range=policy.range)
    provenance = {**policy.metadata.provenance, name: "default"}
    return replace(found, metadata=replace(found.metadata, provenance=provenance))


def in_proportion(
    steps: Sequence[int], node: Split | float, otherwise: Split | float = 0.0
) -> Split | float:
    """Return the tree that is ``node`` where the cost is in proportion to the callee's bytes.

    :param steps: up to which bytes count; beyond the last the tree is ``otherwise``.
    """
    found = otherwise
    for step in reversed(steps):
        within = Split("cost_estimate", _COST_OF_BYTE * step + 0.5, node, otherwise)
        found = Split("program_callee_bytes", step + 0.5, within, found)
    return found


def all_hold(
    conditions: Sequence[tuple[str, int, int]], node: Split | float, otherwise: Split | float = 0.0
) -> Split | float:
    """Return the tree that is ``node`` where all conditions hold; halfway between numbers."""
    for name, least, most in reversed(conditions):
        node = Split(name, least - 0.5, otherwise, Split(name, most + 0.5, node, otherwise))
    return node


def _beyond(most: Sequence[tuple[str, float]]) -> Split | float:
    """Return the tree that is ``NEVER`` where a feature is beyond the greatest value given."""
    node: Split | float = 0.0
    for name, greatest in reversed(most):
        node = Split(name, greatest, node, NEVER)
    return node
