"""Scores: what a compile cost, in linked bytes."""
