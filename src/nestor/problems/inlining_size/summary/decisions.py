"""What a policy that reads a summary would decide otherwise than a compile without one did."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from nestor.policy.branches import RULED
from nestor.policy.spec import Bools, Policy
from nestor.problem.trajectory import F64, Trajectory
from nestor.problems.inlining_size.features.site import (
    IN_CALLER,
    SUMMARY_PREFIX,
    TRIALS,
)
from nestor.problems.inlining_size.summary.program_summary import FunctionUse, ProgramSummary
from nestor.problems.inlining_size.summary_rules import SAVED
from nestor.problems.inlining_size.trial_rules import ALL_SAVED, EXTENT, expected_extent

_COUNTS: Final = {
    "callee": ("copies", "bytes", "calls", "users", "address_taken"),
    "caller": ("copies", "calls"),
}
_LINK: Final = {"no-gc": 0, "gc": 1, "icf": 2}
_MISSING: Final = -1
_TYPICAL_SAVING: Final = 30.0
"""Bytes that another answer than stock's saves, where a policy does not say how many."""
_TRIED: Final = 20.0
"""Bytes that a trial saves, on average over those that save nothing, for the first of its calls."""
_KEPT: Final = 1.0
"""The same where the calls would be inlined without it, which seldom costs anything."""
_IDS: Final = (1 << 64) - 1


def reads_summary(policy: Policy) -> bool:
    """Tell whether any of the policy's features comes from a summary."""
    return any(name.startswith(SUMMARY_PREFIX) for name in policy.features)


def expected_savings(
    policy: Policy, logs: Sequence[Trajectory], summary: ProgramSummary
) -> list[float]:
    """Return what ``policy`` expects to save by the answers that it gives otherwise than logged.

    A distilled policy's logit is the number of bytes that it expects leaving stock's answer to
    save, unless it is that of a rule; of a rule, and of other policies, each such answer counts
    alike. The sum is 0 if no answer differs: then a compile under the policy asks the same
    questions in the same order and gives the same object, since every feature but those of the
    summary is that of the log. More than 0 may be wrong, such as for questions in functions of
    another level, and costs a compile.

    :param logs: of compiles by stock or under the policy without a summary, one for each module.
    :return: bytes of each; infinity for a policy whose logits do not say whether it differs from
        stock.
    """
    if policy.metadata.answers != "deviation":
        # LLVM's growth cap holds for these policies, and for stock it does not.
        return [math.inf] * len(logs)
    if not logs:
        return []
    # All at once: trees take less time for a row if there are many.
    inputs = np.concatenate([_inputs(policy.features, x, summary) for x in logs])
    logits = policy.logits(inputs)
    hangs = _hang_on_trials(policy, inputs)
    ends = np.cumsum([len(log) for log in logs])[:-1]
    own = zip(logs, np.split(logits, ends), np.split(hangs, ends), strict=True)
    return [
        _saving(policy, log, part) + _hoped_for(log, part, open_yet) for log, part, open_yet in own
    ]


def _saving(policy: Policy, log: Trajectory, logits: F64) -> float:
    if not len(log):
        return 0.0
    leaves_stock = policy.rule.greedy(logits, log.questions).astype(bool)
    left_stock = log.decisions["answer"] != log.decisions[log.default_column]
    differs = leaves_stock != left_stock
    if policy.metadata.provenance.get("learner") != "distil":
        return _TYPICAL_SAVING * int(np.count_nonzero(differs))
    expected = np.abs(logits[differs])
    return float(np.sum(np.where(expected > RULED, SAVED, expected)))


def _hang_on_trials(policy: Policy, inputs: F64) -> Bools:
    """Return where the answer hangs on what may be tried, which a log does not say."""
    columns = {name: column for column, name in enumerate(policy.features)}
    # Whether all calls of a callee can be tried, the log says; those of one caller, the policy.
    everywhere = np.ones(len(inputs), dtype=np.bool_)
    all_calls = inputs[:, columns[EXTENT[0]]] > 0 if EXTENT[0] in columns else everywhere
    tried = {
        column: everywhere if name in IN_CALLER else all_calls
        for name, column in columns.items()
        if name in TRIALS
    }
    hangs: Bools = np.logical_or.reduce([~everywhere, *tried.values()])
    best, worst = inputs[hangs], inputs[hangs]
    for column, possible in tried.items():
        best[possible[hangs], column], worst[possible[hangs], column] = ALL_SAVED, -ALL_SAVED
    hangs[hangs] = (policy.logits(best) > 0) & (policy.logits(worst) <= 0)
    return hangs


def _hoped_for(log: Trajectory, logits: F64, open_yet: Bools) -> float:
    """Return what trials are expected to save: once a function, whichever calls it has."""

    def functions(rows: Bools) -> int:
        return len(np.unique(log.decisions["callee"][rows]))

    inlined = open_yet & (logits > 0)
    return _TRIED * functions(open_yet & ~inlined) + _KEPT * functions(inlined)


def _inputs(features: tuple[str, ...], log: Trajectory, summary: ProgramSummary) -> F64:
    """Return the rows of ``log`` with what follows from ``summary``, [questions, features]."""
    inputs = log.rows(features).copy()
    for column, name in enumerate(features):
        if not name.startswith(SUMMARY_PREFIX):
            continue
        if name == "program_link_gc":
            inputs[:, column] = _LINK[summary.link]
            continue
        who, _, count = name.removeprefix(SUMMARY_PREFIX).partition("_")
        if count not in _COUNTS[who]:
            raise ValueError(f"the feature {name} is none of a summary's")
        uses = (summary.functions.get(int(key) & _IDS) for key in log.decisions[who])
        inputs[:, column] = [_count(use, count) for use in uses]
    columns = {name: inputs[:, column] for column, name in enumerate(features)}
    for name, values in expected_extent(columns).items():
        if name in features:
            inputs[:, features.index(name)] = values
    return inputs


def _count(use: FunctionUse | None, name: str) -> int:
    return _MISSING if use is None else int(getattr(use, name))
