"""Inlining for size: which call sites to inline."""

from nestor.problems.problem import Problem

INLINING_SIZE = Problem(
    name="inlining-size",
    actions=2,
    default_tensor="inlining_default",
    decision_tensor="answer",
    capture_level="-Oz",
    score="loadable bytes of the linked program",
)
