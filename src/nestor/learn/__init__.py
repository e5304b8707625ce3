"""Learners: one algorithm a file, and the loop that they share."""
