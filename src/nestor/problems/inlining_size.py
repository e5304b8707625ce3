"""Inlining for size: inline this call site or keep the call?"""

from nestor.problems.problem import Problem

INLINING_SIZE = Problem(
    name="inlining-size",
    actions=2,
    default_tensor="inlining_default",
    decision_tensor="inlining_decision",
    capture_level="-Oz",
    score="loadable bytes of the linked program",
)
